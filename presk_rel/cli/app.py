"""`presk`: the command group. Each command is one file of this folder, imported only when it is run."""

from __future__ import annotations

import importlib
import sys

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
    """Imports a command's file when the command is asked for, so that `presk --help` imports none of them."""

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
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    group()


if __name__ == "__main__":
    main()
