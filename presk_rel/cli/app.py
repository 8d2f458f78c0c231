"""`presk`: the command group. Each command is one file of this folder, imported only when it is run."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any

import click

from presk_rel import __version__

COMMANDS = {
    "bench": "Time an entry on torch against PyTorch itself.",
    "check": "Find all mistakes of a program, with counterexamples.",
    "conform": "Compare the torch executor with the proven result.",
    "dump": "Print a program at a stage of the pipeline.",
    "explain": "Print the page of a diagnostic code.",
    "export": "Print a program as readable PyTorch.",
    "facts": "Write a program's relations for Soufflé.",
    "opt": "Print the optimized PSK-Core of an entry.",
    "prove": "Print the proof of an optimization, and verify it.",
    "query": "Ask the program's relations in Datalog.",
    "run": "Run an entry: proven digits, or torch.",
    "why": "Explain a regularity class or an effect by its proof.",
}
"""Name and one-line help of every command; the file `cli/<name>_command.py` defines `command`."""

RESERVED = ("train", "serve", "data", "solve", "fmt", "lsp", "report")
"""Names kept for later commands."""


class LazyGroup(click.Group):
    """Imports a command's file when the command is asked for, so that `presk --help` imports none of them. With
    `--json`, wrong usage too is one document."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        given = tuple(args)
        with _reported(given):
            ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[_GIVEN] = given
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        with _reported(ctx.meta[_GIVEN]):
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in RESERVED:
            raise click.UsageError(f"`presk {cmd_name}` is reserved for a later version")
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"presk_rel.cli.{cmd_name}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_GIVEN = "presk.arguments"


class _WrongUsage(click.ClickException):
    """A usage error, fit for a terminal or as JSON."""

    exit_code = 2

    def __init__(self, error: click.UsageError, given: tuple[str, ...]) -> None:
        super().__init__(error.format_message())
        self.ctx, self.given = error.ctx, given

    def show(self, file: IO[Any] | None = None) -> None:
        from presk_rel.diagnostics import Diagnostic
        from presk_rel.diagnostics.render import escaped, to_json
        from presk_rel.rules.json_text import json_text

        if "--json" not in self.given:
            click.UsageError(escaped(self.message), self.ctx).show(file)
            return
        command = next((word for word in self.given if word in COMMANDS), None)
        found = Diagnostic("E7000", self.message, None, help=f"presk {command} --help" if command else "presk --help")
        schema = f"presk.{command or 'usage'}/1"
        click.echo(json_text({"schema": schema, "diagnostics": [to_json(found)]}))


@contextmanager
def _reported(given: tuple[str, ...]) -> Generator[None]:
    try:
        yield
    except click.UsageError as error:
        raise _WrongUsage(error, given) from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="presk")
def group() -> None:
    """The relational compiler of Presk. Every answer comes with a proof that independent code checks.

    \b
    presk check  examples/mlp.psk
    presk why    examples/tour/hinge.psk hinge
    presk run    examples/mlp.psk --entry mse_grad --dim B=2 --dim D=4
    presk prove  examples/mlp.psk --entry mse_grad --verify
    """


def main() -> None:
    """Outside a command's body (`Report.execute`) Ctrl-C ends the process, with nothing to say."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        group()
    except OSError as error:
        click.echo(f"presk: cannot write the output: {error.strerror}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
