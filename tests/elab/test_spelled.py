"""A type parameter with the name of a bounded dim of the file is called what the user calls it."""

from pathlib import Path

import pytest

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.session import Session

HEAD = "dim B\ndim C <= 8\ntype Acts = ℝ[batch: B, c: C]\n"


def only(path: Path, text: str) -> Diagnostic:
    path.write_text(HEAD + text, encoding="utf-8")
    with pytest.raises(PreskError) as raised:
        Session(str(path)).typed  # noqa: B018
    (found,) = raised.value.diagnostics
    return found


def test_messages_labels_and_counterexamples_say_the_name_as_written(tmp_path: Path):
    found = only(tmp_path / "p.psk", "fn g{C : dim}(x : ℝ[b: B, C], y : ℝ[b: B, m: 4]) -> ℝ[b: B, C] = x + y\n")
    assert found.counterexample == (("C", 0),)
    assert "ℝ[b: B, C]" in found.message
    assert not any("C_" in text for text in (found.message, found.help or "", *(x.message for x in found.labels)))


def test_beside_the_dim_of_the_file_the_two_are_told_apart(tmp_path: Path):
    found = only(tmp_path / "p.psk", "fn h{C : dim}(x : ℝ[batch: B, c: C], y : Acts) -> Acts = x + y\n")
    assert "`C_ = C` fails" in found.message
    assert (found.help or "").endswith("`C_` is the parameter `C`, not the dim `C` of the file")


def test_a_name_of_the_users_is_no_symbol_of_another(tmp_path: Path):
    path = tmp_path / "p.psk"
    path.write_text(
        HEAD + "dim C_\nfn f{C : dim}(x : ℝ[a: C], y : ℝ[b: C_], z : ℝ[c: 2]) -> ℝ[] = sum(x)\n", encoding="utf-8"
    )
    (f,) = Session(str(path)).typed.functions

    assert [str(p.type) for p in f.params] == ["ℝ[a: C__]", "ℝ[b: C_]", "ℝ[c: 2]"]
