"""Wrong usage, in text and as JSON; names of files that no terminal should be given raw."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tests.cli.harness import MLP, presk, schema


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("check", "nowhere.psk"), "no such file: nowhere.psk"),
        (("check", MLP, "--nonsense"), "No such option '--nonsense'."),
        (("check", MLP, "-W", "W9=error"), "-W takes CODE=error or CODE=ignore for a warning's code, not `W9=error`"),
        (("run", MLP), "--entry F is needed: the function to take"),
        (("run", MLP, "--entry", "mse", "--dim", "B"), "--dim takes NAME=N with N a natural number, not `B`"),
        (("prove", MLP, "--entry", "mse", "--step", "300"), "step 300"),
        (("explain", "E0"), "there is no code `E0`"),
        (("query", "--json"), "FILE and a query are needed (or --relations)"),
        (("why", MLP, "nothing"), "there is no function `nothing`"),
        (("opt", MLP, "--entry", "nothing"), "there is no function `nothing`"),
    ],
)
def test_with_json_wrong_usage_is_one_document_of_the_command(args: tuple[str, ...], said: str) -> None:
    ran = presk(*args, "--json")
    jsonschema.validate(ran.document, schema(args[0]), cls=jsonschema.Draft202012Validator)
    assert ran.status == 2 and ran.err == "" and ran.document["schema"] == f"presk.{args[0]}/1"
    (found,) = ran.document["diagnostics"]
    assert found["severity"] == "error" and said in found["message"]


@pytest.mark.parametrize("args", [("nonsense",), ("--nonsense",), ("train", "x.psk")])
def test_a_command_that_is_none_has_a_schema_too(args: tuple[str, ...]) -> None:
    ran = presk(*args, "--json")
    jsonschema.validate(ran.document, schema("usage"), cls=jsonschema.Draft202012Validator)
    assert ran.status == 2


def test_in_text_the_usage_is_shown() -> None:
    ran = presk("check", "nowhere.psk")
    assert ran.out == "" and ran.err.startswith("Usage: presk check [OPTIONS] FILE") and "no such file" in ran.err


def test_control_characters_of_a_path_are_escaped(tmp_path: Path) -> None:
    assert r"no such file: a\nb\x1b[31m.psk" in presk("check", "a\nb\x1b[31m.psk").err
    path = tmp_path / "bad\nline.psk"
    path.write_text('import "c\\nd.psk" as c\n', encoding="utf-8")
    said = presk("check", str(path)).err
    assert r"bad\nline.psk:1:8" in said and r"c\nd.psk`: no such file or directory" in said
    assert [line[:3] for line in said.splitlines() if line] == ["[E1", "   ", " 1 ", "   ", "   "]


def test_an_effect_that_there_is_not_is_wrong_usage() -> None:
    ran = presk("why", MLP, "mse", "--effect", "rand")
    assert ran.status == 2 and "there is no effect `rand`" in ran.err and "did you mean `Rand`?" in ran.err
