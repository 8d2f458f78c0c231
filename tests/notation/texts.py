"""Sections of programs, and what is known of any LaTeX text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from presk_rel.notation.formula import Section
from presk_rel.notation.latex_names import COMMANDS
from presk_rel.notation.latex_style import MACROS
from presk_rel.notation.of_core import core_sections
from presk_rel.notation.of_typed import typed_sections
from presk_rel.notation.source_names import source_names
from presk_rel.session import Session

ENGINE = next((path for name in ("pdflatex", "tectonic", "xelatex", "lualatex") if (path := shutil.which(name))), None)

_SIGNS = [
    "allowbreak",
    "quad",
    "ldots",
    "cdot",
    "times",
    "mathbb",
    "lambda",
    "to",
    "circ",
    "mapsto",
    "le",
    "ge",
    "odot",
]
_SHAPES = ["frac", "sqrt", "surd", "lvert", "rvert", "sum", "pi"]
OURS = frozenset(re.findall(r"\\providecommand\{\\(\w+)\}", MACROS)) | {*_SIGNS, *_SHAPES}
"""Commands of fragments beside those of names."""

_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([{}])|[^\\{}]", re.DOTALL)


def elab(session: Session) -> list[Section]:
    loaded, typed = session.loaded, session.typed
    return typed_sections(typed, typed.functions, source_names(loaded.files, loaded.texts))


def after_ad(session: Session) -> list[Section]:
    program = session.differentiated
    return core_sections(program, program.functions.values())


def well_formed(text: str) -> None:
    """ASCII; braces balanced; none but known commands; nothing that TeX takes as more than a character."""
    assert text.isascii()
    depth = 0
    for token in _TOKEN.finditer(text):
        command, brace = token.group(1), token.group(2)
        depth += {"{": 1, "}": -1}.get(brace, 0)
        assert depth >= 0
        assert command is None or command in OURS | COMMANDS or command in set(r"_%{}&#$^~ ,"), command
        assert command is not None or token.group() not in "%#&$~"
    assert depth == 0


def compiles(document: str, folder: Path) -> None:
    """By the engine on PATH, or where there is none, by its structure."""
    body = document.partition("\\begin{document}\n")[2].partition("\\end{document}")[0]
    well_formed(body)
    if ENGINE is None:
        return
    (folder / "t.tex").write_text(document, encoding="utf-8")
    options = [] if ENGINE.endswith("tectonic") else ["-interaction=nonstopmode", "-halt-on-error"]
    ran = subprocess.run([ENGINE, *options, "t.tex"], cwd=folder, capture_output=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout.decode("latin-1")[-2000:]
    assert (folder / "t.pdf").exists()
