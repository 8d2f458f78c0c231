"""`presk dump`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from presk_rel.cli.common import (
    Outcome,
    Report,
    common_options,
    dims_option,
    entry_option,
    lowering_options,
    naturals,
    remat_option,
    required,
    session,
    source_path,
)
from presk_rel.diagnostics import PreskError
from presk_rel.session import Session

if TYPE_CHECKING:
    from presk_rel.notation.formula import Section

F = TypeVar("F")

FORMATS = ("text", "json", "unicode", "latex")
AS_MATHEMATICS = ("elab", "core", "core-after-ad", "opt")
"""The stages that can be read as equations."""

STAGES = ("tokens", "ast", "facts", "elab", "core", "core-after-ad", "opt")


@click.command("dump", epilog="Example:  presk dump examples/mlp.psk --stage core-after-ad")
@common_options
@entry_option
@dims_option
@lowering_options
@click.option("--stage", type=click.Choice(STAGES), required=True, help="Where in the pipeline.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="[default: text]")
@click.option("--standalone", is_flag=True, help="With --format latex: a whole document, not a fragment.")
@remat_option
def command(
    file: str,
    consts: tuple[str, ...],
    engine: str,
    as_json: bool,
    debug: bool,
    entry: str | None,
    dims: tuple[str, ...],
    mode: Any,
    unroll_stack: bool,
    stage: str,
    form: str,
    standalone: bool,
    remat: Any,
) -> None:
    """Print a program at a stage of the pipeline; as unicode or latex, the mathematics it denotes."""
    if standalone and form != "latex":
        raise click.UsageError("--standalone goes with --format latex")
    if form in ("unicode", "latex") and stage not in AS_MATHEMATICS:
        raise click.UsageError(f"--format {form} is for the stages {', '.join(AS_MATHEMATICS)}")
    report = Report("dump", as_json or form == "json", debug)

    def body() -> Outcome:
        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        program.remat = remat
        program.mode, program.unroll_stack = mode, unroll_stack
        stages: dict[str, Callable[[], tuple[Any, str]]] = {
            "tokens": lambda: _tokens(program),
            "ast": lambda: _ast(program),
            "facts": lambda: _facts(program),
            "elab": lambda: _elab(program),
            "core": lambda: _core(program, entry, after_ad=False),
            "core-after-ad": lambda: _core(program, entry, after_ad=True),
            "opt": lambda: _opt(program, required(entry), naturals(dims, "--dim")),
        }
        if form in ("unicode", "latex"):
            sections = _sections(program, stage, entry, naturals(dims, "--dim"))
            content = text = _mathematics(sections, form, standalone)
        else:
            content, text = stages[stage]()
        return Outcome({"stage": stage, "content": content}, text.rstrip("\n"))

    report.execute(body)


def _tokens(program: Session) -> tuple[Any, str]:
    from presk_rel.syntax.dump import tokens_to_json, tokens_to_text
    from presk_rel.syntax.parser import tokens

    program.loaded  # noqa: B018  errors of reading first
    found = tokens(program.sources[program.path], program.path)
    return tokens_to_json(found.tokens, program.path), tokens_to_text(found.tokens)


def _ast(program: Session) -> tuple[Any, str]:
    from presk_rel.syntax.dump import ast_to_json, ast_to_text

    main = program.loaded.files[-1]
    return ast_to_json(main), ast_to_text(main)


def _facts(program: Session) -> tuple[Any, str]:
    rows = program.input_facts()
    content = {name: [list(row) for row in rows[name]] for name in sorted(rows)}
    lines = [f"{name}({', '.join(map(repr, row))})" for name in sorted(rows) for row in rows[name]]
    return content, "\n".join(lines)


def _elab(program: Session) -> tuple[Any, str]:
    from presk_rel.cli.summary import summary_document, summary_text

    document = summary_document(program)
    return document, summary_text(document)


def _core(program: Session, entry: str | None, *, after_ad: bool) -> tuple[Any, str]:
    from presk_rel.core.printer import print_function, print_program

    core = program.differentiated if after_ad else program.core
    if entry is None:
        text = print_program(core)
    else:
        (function,) = _chosen(program, core.functions, entry)
        text = print_function(function, core)
    return text, text


def _opt(program: Session, entry: str, dims: dict[str, int]) -> tuple[Any, str]:
    from presk_rel.core.printer import print_program

    text = print_program(program.optimized(program.entry(entry).name, dims).program)
    return text, text


def _sections(program: Session, stage: str, entry: str | None, dims: dict[str, int]) -> list[Section]:
    """The functions of a stage as equations: all of them, or the entry."""
    from presk_rel.notation.of_core import core_sections

    match stage:
        case "elab":
            return _typed_sections(program, entry)
        case "opt":
            core = program.optimized(program.entry(required(entry)).name, dims).program
            return core_sections(core, core.functions.values())
        case _:
            core = program.differentiated if stage == "core-after-ad" else program.core
            return core_sections(core, _chosen(program, core.functions, entry))


def _typed_sections(program: Session, entry: str | None) -> list[Section]:
    from presk_rel.notation.of_typed import typed_sections
    from presk_rel.notation.source_names import source_names

    typed, loaded = program.typed, program.loaded
    functions = _chosen(program, {f.name: f for f in typed.functions}, entry)
    return typed_sections(typed, functions, source_names(loaded.files, loaded.texts))


def _chosen(program: Session, functions: Mapping[str, F], entry: str | None) -> list[F]:
    if entry is None:
        return list(functions.values())
    name = program.named(required(entry))
    if name not in functions:
        raise PreskError([program.no_function(required(entry))], exit_status=2)
    return [functions[name]]


def _mathematics(sections: list[Section], form: str, standalone: bool) -> str:
    from presk_rel.notation.latex_style import latex_text
    from presk_rel.notation.unicode_style import unicode_text

    return latex_text(sections, standalone=standalone) if form == "latex" else unicode_text(sections)
