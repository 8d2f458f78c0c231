"""Programs and their equations, side by side (`golden/*.psk`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from presk_rel.notation.latex_style import latex_text
from presk_rel.notation.unicode_style import unicode_text
from presk_rel.session import Session
from tests.golden import check, sections
from tests.notation.texts import after_ad, elab

FOLDER = Path(__file__).parent / "golden"
FORMS: dict[str, Callable[[Session], str]] = {
    "elab": lambda s: unicode_text(elab(s)),
    "latex": lambda s: latex_text(elab(s), standalone=False),
    "core-after-ad": lambda s: unicode_text(after_ad(s)),
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.psk")), ids=lambda p: p.stem)
def test_golden(path: Path, tmp_path: Path, update_golden: bool) -> None:
    asked = sections(path)
    source = tmp_path / path.name
    source.write_text(asked.pop("source") + "\n", encoding="utf-8")
    session = Session(str(source))
    check(path, {title: FORMS[title](session) for title in asked}, update_golden)


def test_attention_reads_as_the_specification_says() -> None:
    assert sections(FOLDER / "attention.psk")["elab"] == ATTENTION


def test_the_reverse_sweep_of_a_linear_layer() -> None:
    text = sections(FOLDER / "mlp.psk")["core-after-ad"]
    sweep = text[text.index("Linear.apply.bwd, of") :]
    assert sweep.startswith("Linear.apply.bwd, of θ : params Linear{In, Out},  x : ℝ[…, In],  ct : ℝ[…, Out]\n")
    for line in SWEEP.splitlines():
        assert line in sweep.splitlines()


ATTENTION = """\
scores, of q : Q,  k : Q
    ⟦scores⟧(q, k)[batch, heads, seq, seq2] = (∑_{hd} q[batch, heads, seq, hd] k[batch, heads, seq2, hd]) / √HD

attend, of q : Q,  k : Q,  v : Q
    s = ⟦scores⟧(q, k)
    a = softmax axis seq2 s, (causal_mask seq: T)
    ⟦attend⟧(q, k, v)[batch, heads, seq, hd] = ∑_{seq2} a[batch, heads, seq, seq2] v[batch, heads, seq2, hd]"""

SWEEP = """\
    b = θ.b                               -- primal b, kept
    %8 = sum_to ct, b                     -- adjoint of %5 (add)
    %9 = zeros_like θ                     -- adjoint of b (field)
    %10 = set_field b %9, %8              -- adjoint of b (field)
    %12 = dot_vjp_r x, ct                 -- adjoint of %3 (dot)
"""
