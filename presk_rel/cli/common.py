"""What all commands share: their common options, and how an outcome, a diagnostic or a bug leaves the program.

Exit status (docs/cli.md): 0 done, 1 the program has errors or the answer is negative, 2 wrong usage, 3 outside what
can be executed, 4 a bug in presk. Results go to stdout, diagnostics to stderr; with `--json` one document holds both.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

import click

from presk_rel.diagnostics import Diagnostic, PreskBug, PreskError
from presk_rel.diagnostics.record import mutable

if TYPE_CHECKING:
    from presk_rel.rules.engine import Engine
    from presk_rel.session import Session


@mutable
class Outcome:
    """What a command has to say: the JSON body (without schema and diagnostics), the text, and the exit status."""

    document: dict[str, Any]
    text: str = ""
    status: int = 0


@mutable
class Report:
    """Collects what is needed to print diagnostics, whatever happens: passed to the command's body."""

    command: str
    as_json: bool
    debug: bool
    sources: dict[str, str] = field(default_factory=dict[str, str])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def execute(self, body: Callable[[], Outcome]) -> None:
        """Run `body`, print what it says, and exit. No exception of presk's leaves this function as a traceback."""
        with interruptible():
            outcome = self._guarded(body)
        if self.as_json:
            self._print_json(outcome)
        else:
            self._print_text(outcome)
        gc.freeze()  # the interpreter would look for cycles in everything once more before it ends
        sys.exit(outcome.status)

    def _guarded(self, body: Callable[[], Outcome]) -> Outcome:
        try:
            outcome = body()
            if outcome.status == 0 and any(d.severity == "error" for d in self.diagnostics):
                outcome.status = 1
            return outcome
        except PreskError as error:
            self.diagnostics += [d for d in error.diagnostics if d not in self.diagnostics]
            return Outcome({}, status=error.exit_status)
        except PreskBug as bug:
            return self._bug(bug.pass_name, bug.message)
        except KeyboardInterrupt:
            return Outcome({"interrupted": True}, "interrupted", 130)
        except BrokenPipeError:
            os._exit(0)
        except click.ClickException:
            raise
        except MemoryError:
            return self._no_memory()
        except Exception as error:
            if _out_of_memory(error):
                return self._no_memory()
            return self._bug(self.command, f"{type(error).__name__}: {error}")

    def _no_memory(self) -> Outcome:
        text = f"there is not enough memory to {self.command} this"
        self.diagnostics.append(Diagnostic("E7006", text, None, help="take smaller dimensions"))
        return Outcome({}, status=3)

    def _bug(self, pass_name: str, message: str) -> Outcome:
        if self.debug:
            import traceback

            traceback.print_exc()
        said = f"{pass_name}: {message[:2000]}"
        text = f"this is a bug in presk, not in your program: {said}; please report it with the program"
        self.diagnostics.append(Diagnostic("E9999", text, None, help="--debug prints where it happened"))
        return Outcome({}, status=4)

    def _print_json(self, outcome: Outcome) -> None:
        from presk_rel.diagnostics.render import to_json
        from presk_rel.rules.json_text import json_text

        document = {"schema": f"presk.{self.command}/1", **outcome.document}
        document["diagnostics"] = [to_json(d) for d in self.diagnostics]
        click.echo(json_text(document))

    def _print_text(self, outcome: Outcome) -> None:
        if self.diagnostics:
            from presk_rel.diagnostics.render import render

            colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
            click.echo(render(self.diagnostics, self.sources, color=colour), err=True)
        if outcome.text:
            click.echo(outcome.text)


def _out_of_memory(error: Exception) -> bool:
    """Whether torch says so, of the CPU or of a GPU."""
    return isinstance(error, RuntimeError) and (
        "DefaultCPUAllocator" in str(error) or "OutOfMemory" in type(error).__name__
    )


@contextmanager
def interruptible() -> Generator[None]:
    """Ctrl-C is a `KeyboardInterrupt` in here. Around it, `main` lets it end the process at once."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


# --------------------------------------------------------------------------------------------------------- options


def common_options(command: Callable[..., None]) -> Callable[..., None]:
    """`FILE`, `--const`, `--engine`, `--json`, `--debug`: taken by every command that reads a program."""
    for decorate in (
        click.option("--debug", is_flag=True, help="Show a Python traceback when presk itself fails."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        click.option(
            "--engine",
            type=click.Choice(["auto", "souffle", "embedded"]),
            default=lambda: os.environ.get("PRESK_ENGINE", "auto"),
            help="Datalog engine.  [default: auto, or PRESK_ENGINE]",
        ),
        click.option(
            "--const", "consts", multiple=True, metavar="NAME=N", help="Replace a constant (m.V=64: of import m)."
        ),
        click.argument("file", type=click.Path()),
    ):
        command = decorate(command)
    return command


def dims_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Bind a symbolic dimension.")(command)


def entry_option(command: Callable[..., None]) -> Callable[..., None]:
    return click.option("--entry", metavar="F", help="The function to take: `f`, `M.apply`, `M.init`.")(command)


def tier_option(command: Callable[..., None]) -> Callable[..., None]:
    """`--tier`."""
    text = "Of the torch executor: calls of torch, or machine code.  [default: auto]"
    return click.option("--tier", type=click.Choice(["auto", "emit", "inductor"]), default="auto", help=text)(command)


def remat_option(command: Callable[..., None]) -> Callable[..., None]:
    """`--remat`: what a gradient keeps of its forward pass."""
    text = (
        "What a gradient keeps of its forward pass: everything it reads, nothing, or what is cheaper to keep than to "
        "compute again (decided by the optimizer, for folds).  [default: auto]"
    )
    return click.option("--remat", type=click.Choice(["auto", "store", "recompute"]), default="auto", help=text)(
        command
    )


def time_limit_option(command: Callable[..., None]) -> Callable[..., None]:
    """`--time-limit`: seconds for the optimizer."""
    text = "Let the optimizer take no longer than this, and say what was cut; results then depend on the machine."
    kind = click.FloatRange(0, min_open=True)
    return click.option("--time-limit", type=kind, metavar="SECONDS", help=text)(command)


def lowering_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--mode`, `--unroll-stack`: how the typed program is lowered."""
    for decorate in (
        click.option("--unroll-stack", is_flag=True, help="Write `stack{L}` of constant L as L calls, not as a fold."),
        click.option(
            "--mode",
            type=click.Choice(["inference", "training"]),
            default="inference",
            help="`dropout(r, k, x)` is x, or x times its mask.  [default: inference]",
        ),
    ):
        command = decorate(command)
    return command


def source_path(file: str) -> str:
    """The path, if it is a readable file; wrong usage otherwise."""
    if os.path.isdir(file):
        raise click.UsageError(f"{file} is a folder, not a file")
    if not os.path.exists(file):
        raise click.UsageError(f"no such file: {file}")
    return file


def in_a_folder(_: click.Context, option: click.Parameter, path: str | None) -> str | None:
    """Wrong usage where the folder of a file to write is not there: said before anything is computed."""
    folder = os.path.dirname(path or "")
    if folder and not os.path.isdir(folder):
        raise click.BadParameter(f"there is no folder {folder}", param=option)
    return path


def write_text(path: str, text: str) -> None:
    """Write a file; wrong usage where it cannot be written."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise click.UsageError(f"cannot write to {path}: {error.strerror}") from error


_PAIR = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)=([0-9]+)", re.UNICODE)
MAX_DIGITS = 4000
"""Digits of a natural on the command line; Python itself refuses more."""


def naturals(pairs: tuple[str, ...], option: str) -> dict[str, int]:
    """`NAME=N` options as a table; wrong usage names the option and the pair."""
    table: dict[str, int] = {}
    for pair in (unicodedata.normalize("NFC", p) for p in pairs):
        found = _PAIR.fullmatch(pair)
        if found is None:
            raise click.UsageError(f"{option} takes NAME=N with N a natural number, not `{pair[:80]}`")
        if len(found[2]) > MAX_DIGITS:
            raise click.UsageError(f"{option} {found[1]}: a number of {len(found[2])} digits is too large")
        if table.setdefault(found[1], int(found[2])) != int(found[2]):
            raise click.UsageError(f"{option} {found[1]} is given twice, with different values")
    return table


def required(entry: str | None) -> str:
    """The entry's name, NFC-normalised as identifiers are; wrong usage when it was not given."""
    if entry is None:
        raise click.UsageError("--entry F is needed: the function to take")
    return unicodedata.normalize("NFC", entry)


def session(report: Report, path: str, consts: dict[str, int], engine: str) -> Session:
    """The program of a command: its diagnostics and sources are the report's."""
    from presk_rel.session import Session

    program = Session(path, consts, cast("Engine", engine))
    program.sources = report.sources
    program.diagnostics.items = report.diagnostics
    return program


def inputs_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--arg` and `--seed`: the values of the entry's parameters."""
    arg = click.option(
        "--arg", "args", multiple=True, metavar="NAME=VALUE", help="A literal, or @file.npy|.npz|.json|…."
    )
    seed = click.option("--seed", type=int, default=0, metavar="N", help="Seed of what is not given.  [default: 0]")
    return arg(seed(command))
