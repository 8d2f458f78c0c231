"""The documents say what happens: their console blocks print what they show, their commands run, their links lead
somewhere, and what they say of options is what `--help` has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from presk_rel.cli.app import group
from tests.cli.harness import presk

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONTEXT = click.Context(group)
FAILING = "examples/diag/"
"""Programs with a mistake, which commands report with status 1."""


def blocks() -> Iterator[tuple[str, str, str]]:
    """The console blocks: document, command, what it shows."""
    for document in DOCUMENTS:
        for block in re.findall(r"```console\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL):
            for part in re.split(r"^\$ presk ", block, flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield document.name, command, shown


def commands() -> Iterator[tuple[str, str]]:
    """Commands elsewhere: indented, or in backquotes with a file of the repository."""
    for document in DOCUMENTS:
        text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
        found = re.findall(r"^    \$ presk (.*)$", text, re.MULTILINE)
        found += re.findall(r"`presk ([^`\n]*examples/[^`\n]*)`", text)
        yield from ((document.name, c) for c in dict.fromkeys(found))


def links() -> Iterator[tuple[str, str]]:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                yield document.name, target


def written(document: str) -> Path:
    return next(d for d in DOCUMENTS if d.name == document)


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(("document", "command", "shown"), list(blocks()))
def test_a_block_shows_what_is_printed(document: str, command: str, shown: str) -> None:
    """`…` alone on a line stands for any lines, and within a line for any text."""
    ran = presk(*shlex.split(command))
    assert ran.status == (1 if FAILING in command else 0), ran.err
    parts = re.split(r"^…\n", shown, flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join(re.escape(part).replace("…", ".*?") for part in parts)
    assert re.fullmatch(pattern, (ran.out + ran.err).strip("\n") + "\n"), ran.out + ran.err


@pytest.mark.parametrize(("document", "command"), list(commands()))
def test_a_command_runs(document: str, command: str) -> None:
    ran = presk(*shlex.split(command))
    assert ran.status == 0, ran.err


@pytest.mark.parametrize(("document", "target"), list(links()))
def test_a_link_leads_somewhere(document: str, target: str) -> None:
    path, _, heading = target.partition("#")
    found = written(document).parent / path if path else written(document)
    assert found.exists(), target
    if heading:
        titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
        assert heading in {re.sub(r"[^\w\- ]", "", t).strip().lower().replace(" ", "-") for t in titles}, target


SNIPPETS = {
    "README.md": (".", "import presk_rel, torch; x, y = torch.randn(32, 64), torch.randn(32, 64)"),
    "torch.md": ("examples", "import torch; x, y, x2, y2 = torch.randint(64, (4, 2, 16))"),
}
"""What a document's Python takes for granted: the folder it runs in, and values of its free names."""


def snippets() -> list[tuple[str, str]]:
    found = ((d.name, re.findall(r"```python\n(.*?)```", d.read_text("utf-8"), re.DOTALL)) for d in DOCUMENTS)
    return [(name, code) for name, codes in found for code in codes]


@pytest.mark.parametrize(("document", "code"), snippets(), ids=lambda text: text if text in SNIPPETS else "")
def test_python_runs(document: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, before = SNIPPETS[document]
    monkeypatch.chdir(ROOT / folder)
    names: dict[str, object] = {}
    exec(before, names)
    exec(compile(code, document, "exec"), names)


def test_every_command_has_its_paragraph() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\*\*`presk (\w+)", page, re.MULTILINE))
    assert described == set(group.list_commands(CONTEXT))


def test_every_option_that_the_page_names_is_one() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, usage in re.findall(r"^\*\*`presk (\w+) ([^`]*)`", page, re.MULTILINE):
        command = group.get_command(CONTEXT, name)
        assert command is not None
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        assert set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", usage)) <= known, name


def test_every_option_is_on_the_page() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    commands = [group.get_command(CONTEXT, name) for name in group.list_commands(CONTEXT)]
    options = {o for c in commands if c is not None for p in c.params for o in p.opts if o.startswith("--")}
    assert {o for o in options if not re.search(rf"{o}(?![\w-])", page)} == set()
