"""Golden files: a source and what is expected of it, in one file, in sections.

    === source
    fn f(x : ℝ[]) -> ℝ[] = x
    === core
    fn f(x : ℝ[]) -> ℝ[] {
      return x
    }

`pytest --update-golden` writes what the tests produce; read the diff before you commit it.
"""

from __future__ import annotations

import re
from pathlib import Path

_HEAD = re.compile(r"^=== (.+)$", re.MULTILINE)


def sections(path: Path) -> dict[str, str]:
    """The sections of a golden file, by title."""
    parts = _HEAD.split(path.read_text(encoding="utf-8"))
    return {title: text.strip("\n") for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def check(path: Path, produced: dict[str, str], update: bool) -> None:
    """Compare sections with what was produced; with `update`, write them instead."""
    expected = sections(path)
    if not update:
        for title, text in produced.items():
            assert expected.get(title) == text.strip("\n"), f"{path.name}: section {title}"
        return
    whole = {**expected, **{title: text.strip("\n") for title, text in produced.items()}}
    path.write_text("\n".join(f"=== {title}\n{text}" for title, text in whole.items()) + "\n", encoding="utf-8")
