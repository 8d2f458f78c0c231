"""`presk dump --format unicode|latex` (docs/cli.md)."""

from __future__ import annotations

import pytest

from tests.cli.harness import EXAMPLES, MLP, presk, presk_json

ATTENTION = str(EXAMPLES / "tutorial" / "03_attention.psk")


def test_one_function() -> None:
    ran = presk("dump", ATTENTION, "--stage", "elab", "--format", "unicode", "--entry", "attend")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("attend, of q : Q,  k : Q,  v : Q\n")
    assert presk("dump", ATTENTION, "--stage", "elab", "--format", "latex", "--entry", "nothing").status == 2


def test_a_fragment_and_a_document() -> None:
    fragment = presk("dump", ATTENTION, "--stage", "elab", "--format", "latex").out.rstrip("\n")
    document = presk("dump", ATTENTION, "--stage", "elab", "--format", "latex", "--standalone").out
    assert fragment.startswith(r"\pskfunction{scores}")
    assert document.startswith(r"\documentclass")
    assert fragment in document


def test_in_json_the_content_is_the_text() -> None:
    args = ("dump", MLP, "--stage", "core-after-ad", "--format", "unicode")
    assert presk_json(*args).document["content"] + "\n" == presk(*args).out


@pytest.mark.parametrize(
    "args",
    [
        ("--stage", "tokens", "--format", "latex"),
        ("--stage", "facts", "--format", "unicode"),
        ("--stage", "elab", "--standalone"),
        ("--stage", "opt", "--format", "unicode"),
    ],
)
def test_wrong_usage(args: tuple[str, ...]) -> None:
    assert presk("dump", MLP, *args).status == 2
