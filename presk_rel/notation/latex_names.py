r"""Names and notes as LaTeX. Whatever the name, the result is made of fixed commands of this file, ASCII letters and
digits, so that no name can end a group, start a command or stop the compilation; a character LaTeX has no command for
becomes `\pskchar{HEX}`, which prints it where the engine can and its code point where it cannot.
"""

from __future__ import annotations

import string
from unicodedata import combining, normalize

_GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "ϵ": "epsilon", "ζ": "zeta", "η": "eta",
    "θ": "theta", "ϑ": "vartheta", "ι": "iota", "κ": "kappa", "λ": "lambda", "μ": "mu", "µ": "mu", "ν": "nu",
    "ξ": "xi", "π": "pi", "ϖ": "varpi", "ρ": "rho", "ϱ": "varrho", "σ": "sigma", "ς": "varsigma", "τ": "tau",
    "υ": "upsilon", "φ": "varphi", "ϕ": "phi", "χ": "chi", "ψ": "psi", "ω": "omega", "Γ": "Gamma", "Δ": "Delta",
    "Θ": "Theta", "Λ": "Lambda", "Ξ": "Xi", "Π": "Pi", "Σ": "Sigma", "Υ": "Upsilon", "Φ": "Phi", "Ψ": "Psi",
    "Ω": "Omega", "ℓ": "ell", "ℏ": "hbar", "ı": "imath", "ȷ": "jmath", "ℵ": "aleph",
}  # fmt: skip

_GREEK_AS_LATIN = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧο", "ABEZHIKMNOPTXo"))
"""Letters that LaTeX writes as the Latin ones they look like."""

_ACCENTS = {
    "\u0300": "grave", "\u0301": "acute", "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "overline",
    "\u0306": "breve", "\u0307": "dot", "\u0308": "ddot", "\u030a": "mathring", "\u030c": "check",
    "\u0332": "underline", "\u20d7": "vec",
}  # fmt: skip

_LOWERED = {
    **dict(zip("ₐₑₒₓₕₖₗₘₙₚₛₜᵢᵣᵤᵥⱼ", "aeoxhklmnpstiruvj")),
    **dict(zip("ᵦᵧᵨᵩᵪ", (r"{\beta}", r"{\gamma}", r"{\rho}", r"{\varphi}", r"{\chi}"))),
}
"""Letters that stand below the line."""

_PLAIN = {**{c: c for c in string.ascii_letters + string.digits}, "_": r"\_", "%": r"\%", "'": r"{}^{\prime}"}

_MOST_MARKS = 3
"""Accents over one letter; TeX nests few groups."""


def math_name(name: str) -> str:
    """A user's name in math mode: one letter as it is, more as one word; digits at its end stand below the line, as
    letters made to stand there do (`σ2`, `xᵢ`). `_` is itself, so that different names stay different."""
    body, low = _split(name)
    letters = list(_clusters(body))
    text = letters[0] if len(letters) == 1 else rf"\mathit{{{''.join(letters)}}}"
    below = "".join(_LOWERED.get(c, c) for c in low)
    return f"{text}_{{{below}}}" if below else text


def upright_name(path: str) -> str:
    """A path of names in math mode, for use inside a font command: `proj.apply`."""
    return ".".join("".join(_clusters(part)) for part in path.split("."))


def note_text(note: str) -> str:
    """Any text in text mode, on one line."""
    return "".join(_TEXT.get(s) or rf"\ensuremath{{{_cluster(s)}}}" for s in _segments(" ".join(note.split())))


def _split(name: str) -> tuple[str, str]:
    """The name without what stands below the line, and that; Core's own names (`%8`) have nothing there."""
    end = len(name)
    while end and (name[end - 1] in string.digits or name[end - 1] in _LOWERED):
        end -= 1
    return (name, "") if "%" in name or end == 0 else (name[:end], name[end:])


def _clusters(text: str) -> list[str]:
    return [_cluster(s) for s in _segments(text)]


def _segments(text: str) -> list[str]:
    """Each letter with its marks."""
    out: list[str] = []
    text, i = normalize("NFC", text), 0
    while i < len(text):
        end = i + 1
        while end < len(text) and combining(text[end]):
            end += 1
        out.append(text[i:end])
        i = end
    return out


def _cluster(cluster: str) -> str:
    base, *marks = normalize("NFD", cluster)
    letter = _letter(base)
    known = len(marks) <= _MOST_MARKS and all(m in _ACCENTS for m in marks)
    if letter is None or not known or (marks and base in "_%'"):
        return "".join(_PLAIN.get(c) or _letter(c) or _code(c) for c in cluster)
    for mark in marks:
        letter = rf"\{_ACCENTS[mark]}{{{letter}}}"
    return letter


def _letter(c: str) -> str | None:
    if c in _GREEK:
        return rf"{{\{_GREEK[c]}}}"
    if c in _GREEK_AS_LATIN:
        return rf"\mathrm{{{_GREEK_AS_LATIN[c]}}}"
    if c in _LOWERED:
        return f"{{}}_{{{_LOWERED[c]}}}"
    return _PLAIN.get(c)


def _code(c: str) -> str:
    return rf"\pskchar{{{ord(c):04X}}}"


_TEXT = {c: c for c in string.ascii_letters + string.digits + " .,:;()[]+=*/!?|'@"} | {
    "_": r"\_", "%": r"\%", "-": "-{}", "{": r"\{", "}": r"\}", "&": r"\&", "#": r"\#", "$": r"\$",
    "<": r"\ensuremath{<}", ">": r"\ensuremath{>}", "|": r"\ensuremath{|}", "∂": r"\ensuremath{\partial}",
    "\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}", "→": r"\ensuremath{\to}", "−": r"\ensuremath{-}",
}  # fmt: skip

COMMANDS = (
    frozenset(_GREEK.values())
    | frozenset(_ACCENTS.values())
    | frozenset(("mathit", "mathrm", "prime", "pskchar", "ensuremath", "partial", "textbackslash", "to"))
)
"""Every command of a name or a note."""
