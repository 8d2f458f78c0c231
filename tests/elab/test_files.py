"""Spec, "Imports": relative to the importing file, loaded once, aliases, cycles."""

from __future__ import annotations

import pytest

from presk_rel.diagnostics import PreskError
from presk_rel.elab.files import load_files
from tests.types.programs import accepted, check


def test_an_import_makes_constants_types_dims_modules_and_functions_available() -> None:
    files = {
        "lib/m.psk": "const V = 5\ndim B\ntype Row = ℝ[batch: B, v: V]\n"
        "module M {\n  param w : ℝ[V]\n  fn apply(x : Row) -> Row = x * w\n}\nfn total(x : Row) -> ℝ[] = sum(x)\n"
    }
    text = (
        'import "lib/m.psk" as m\nfn f(θ : params m.M, x : m.Row) -> ℝ[] =\n'
        "  m.total(m.M.apply(θ, x))\nfn g(x : ℝ[v: m.V]) -> ℝ[v: m.V] = x\n"
    )
    checked = accepted(text, files)
    assert checked.result("g") == "ℝ[v: 5]"
    assert str(checked.fn("f").params[1].type) == "ℝ[batch: B, v: 5]"


def test_a_file_is_loaded_once_and_before_its_importers() -> None:
    files = {"a.psk": 'import "c.psk" as c\n', "b.psk": 'import "./c.psk" as d\n', "c.psk": "const V = 1\n"}
    checked = accepted('import "a.psk" as a\nimport "b.psk" as b\nconst W = 2\n', files)
    assert [f.path for f in checked.loaded.files] == ["c.psk", "a.psk", "b.psk", "main.psk"]
    assert checked.loaded.aliases == {
        "main.psk": {"a": "a.psk", "b": "b.psk"}, "a.psk": {"c": "c.psk"}, "b.psk": {"d": "c.psk"}, "c.psk": {}
    }  # fmt: skip


def test_a_path_is_relative_to_the_importing_file() -> None:
    files = {"lib/a.psk": 'import "b.psk" as b\nconst V = b.V\n', "lib/b.psk": "const V = 7\n"}
    accepted('import "lib/a.psk" as a\nstatic assert a.V == 7\n', files)


def test_a_missing_file_is_an_error_at_the_import() -> None:
    checked = check('import "nowhere.psk" as m\n')
    assert checked.codes == ["E1024"]
    assert checked.text_at(checked.only) == '"nowhere.psk"'


def test_a_cycle_of_imports_is_shown() -> None:
    files = {"a.psk": 'import "b.psk" as b\n', "b.psk": 'import "a.psk" as a\n'}
    checked = check('import "a.psk" as a\n', files)
    assert checked.codes == ["E1025"]
    assert "a.psk → b.psk → a.psk" in checked.only.message


def test_a_file_that_imports_itself() -> None:
    assert check('import "main.psk" as me\n').codes == ["E1025"]


def test_the_main_file_must_be_readable() -> None:
    with pytest.raises(PreskError) as error:
        load_files("/nowhere/at/all.psk", {})
    assert error.value.exit_status == 2


def test_files_of_one_name_in_two_folders_keep_their_declarations_apart() -> None:
    module = "module M {\n  param w : ℝ[N]\n  fn apply(x : ℝ[N]) -> ℝ[N] = x * w\n}\n"
    files = {"a/m.psk": f"const N = 2\n{module}", "b/m.psk": f"const N = 3\n{module}"}
    checked = accepted('import "a/m.psk" as a\nimport "b/m.psk" as b\nfn f(θ : params b.M) -> ℝ[3] = θ.w\n', files)
    assert checked.program is not None
    assert [m.name for m in checked.program.modules.values()] == ["m.M", "m.M_2"]


def test_declarations_of_the_main_file_keep_their_names() -> None:
    files = {"m.psk": "fn f(x : ℝ[2]) -> ℝ[2] = x\nfn g(x : ℝ[2]) -> ℝ[2] = x\n"}
    checked = accepted('import "m.psk" as m\nfn f(x : ℝ[2]) -> ℝ[2] = m.f(m.g(x))\n', files)
    assert checked.program is not None
    assert [f.name for f in checked.program.functions] == ["m.f", "g", "f"]
