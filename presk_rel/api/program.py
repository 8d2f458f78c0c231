"""presk from Python.

    import presk_rel

    program = presk_rel.load("mlp.psk")
    program.check()                                               # diagnostics; [] when all is well
    grad = program.compile("mse_grad", dims={"B": 32, "D": 64})   # optimized, proven rewriting, torch code
    g = grad(grad.params["θ"], x, y)                              # a tree of tensors: g["l1"]["w"]

    step = program.compile("mse", dims={"B": 32, "D": 64}).to_torch()     # an nn.Module
    loss = step(x, y)                                             # in any PyTorch training loop
    loss.backward()

Tensors are torch tensors in row-major order of the axes of their Presk type; parameter trees are dicts by field,
tuples are tuples, keys are bytes or seeds, hyperparameters are numbers. In a notebook a program and a handle show
their signature, regularity and kernels.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from presk_rel.diagnostics import Diagnostic, PreskError
from presk_rel.diagnostics.render import render
from presk_rel.session import Session

if TYPE_CHECKING:
    from presk_rel.api.handle import Handle
    from presk_rel.core.ir import Function
    from presk_rel.core.lower import Mode
    from presk_rel.exec.torch.inductor import Tier
    from presk_rel.exec.torch.run import Dtype
    from presk_rel.rules.engine import Engine

_CLASSES = {"Cinf": "C∞", "C0plus": "C⁰⁺", "Disc": "Disc"}


def load(
    path: str | Path, consts: Mapping[str, int] | None = None, *, mode: Mode = "inference", engine: Engine = "auto"
) -> Program:
    """The program of a file. `consts` replaces constants by name (`m.V` for one of the file imported as `m`), as
    `--const` does; `mode` says whether `dropout` draws (`training`) or is its expectation (`inference`); `engine` is
    `auto`, `embedded` or `souffle`. Nothing is read before it is needed. PreskError (E7000) for another value."""
    _one_of("mode", mode, MODES)
    _one_of("engine", engine, ENGINES)
    return Program(Session(str(path), dict(consts or {}), engine, mode=mode))


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A Presk program. Every method but `check` raises `presk_rel.diagnostics.PreskError`, with all diagnostics, where
    the program has errors."""

    session: Session
    _lowered: dict[tuple[str, bool], Program] = field(default_factory=dict[tuple[str, bool], "Program"])

    def check(self) -> list[Diagnostic]:
        """All errors and warnings, in source order."""
        return self.session.check()

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions one can compile."""
        return tuple(name for name in self.session.core.functions if ".lambda" not in name)

    def signature(self, function: str) -> str:
        """`mse{D B}(θ : params MLP{D, 4*D}, x : ℝ[batch: B, model: D], …) -> ℝ[]`."""
        return signature(self.session.entry(function))

    def regularity(self, function: str) -> dict[str, str]:
        """The class of a function's result in each of its parameters: `C∞`, `C⁰⁺` or `Disc`."""
        found = self.session.entry(function)
        return {p.name: _CLASSES[self.session.analysis.regularity(found.name, p.name)] for p in found.params}

    def export(self) -> str:
        """The program as readable PyTorch."""
        return self.session.exported().source

    def compile(
        self,
        entry: str,
        dims: Mapping[str, int] | None = None,
        *,
        like: Mapping[str, Any] | None = None,
        dtype: Dtype = "f32",
        device: str = "cpu",
        seed: int = 0,
        optimize: bool = True,
        mode: Mode | None = None,
        unroll: bool = False,
        tier: Tier = "auto",
    ) -> Handle:
        """The optimized torch code of a function at fixed dims.

        `dims` gives every dim of the function that `like`, arrays by parameter name, does not show. `dtype` is `f64`,
        `f32` or `bf16`; `device` is `cpu`, `cuda` or `cuda:n`; `seed` draws what is not bound (parameters by `M.init`).
        `mode` is `inference` or `training` (that of `load` where it is not given); `unroll` writes `stack{L}` of
        constant L as L calls, and what folds remain as their iterations, before anything is optimized. `tier` is `emit`
        (torch calls), `inductor` (machine code, compiled at the first call, which takes half a minute once;
        `Handle.status` says what ran) or `auto`: `emit`, and machine code from the call on by which the calls so far
        would have cost as much as compiling (`exec.torch.inductor.AUTO_LAUNCHES`). On CUDA a handle is a CUDA graph:
        the next call overwrites what a call returned. PreskError with exit status 2 for no such function, 3 for no such
        device, 1 for dims that contradict each other or are missing."""
        from presk_rel.api.handle import compile_handle

        _one_of("dtype", dtype, DTYPES)
        _one_of("tier", tier, TIERS)
        if mode is not None:
            _one_of("mode", mode, MODES)
        return compile_handle(
            self.lowered(mode, unroll),
            entry,
            {name: _natural(name, n) for name, n in (dims or {}).items()},
            dict(like or {}),
            dtype,
            device,
            seed,
            optimize,
            unroll,
            tier,
        )

    def lowered(self, mode: Mode | None = None, unroll: bool = False) -> Program:
        """The same program lowered in another way; itself where it is the way it is lowered."""
        session = self.session
        wanted = (mode or session.mode, unroll or session.unroll_stack)
        if wanted == (session.mode, session.unroll_stack):
            return self
        if wanted not in self._lowered:
            other = Session(session.path, session.consts, session.engine, session.remat, *wanted)
            self._lowered[wanted] = Program(other)
        return self._lowered[wanted]

    def __reduce__(self) -> NoReturn:
        raise TypeError("a program holds the results of its passes, which are not pickled: load the file again")

    def __repr__(self) -> str:
        try:
            lines = [f"  {self.signature(f)}" for f in self.functions]
        except PreskError as error:
            return f"<presk program {self.session.path}: {len(error.diagnostics)} errors>"
        return "\n".join([f"presk program {self.session.path}", *lines])

    def _repr_html_(self) -> str:
        try:
            rows = [(f, self.signature(f), self.regularity(f)) for f in self.functions]
        except PreskError as error:
            return f"<pre>{html.escape(render(error.diagnostics, self.session.sources, color=False))}</pre>"
        cells = "".join(
            f"<tr><td><code>{html.escape(text)}</code></td><td>{html.escape(classes(found))}</td></tr>"
            for _, text, found in rows
        )
        head = "<tr><th>function</th><th>regularity</th></tr>"
        return f"<b>{html.escape(self.session.path)}</b><table>{head}{cells}</table>"


MODES, ENGINES = ("inference", "training"), ("auto", "embedded", "souffle")
DTYPES, TIERS = ("f64", "f32", "bf16"), ("auto", "emit", "inductor")


def _one_of(option: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        text = f"{option} is {', '.join(allowed[:-1])} or {allowed[-1]}, not {value!r}"
        raise PreskError([Diagnostic("E7000", text, None)], exit_status=2)


def _natural(name: str, value: Any) -> int:
    """A dim as an int, whatever integer it is."""
    try:
        return index(value)
    except TypeError as error:
        text = f"the dim {name} is a natural, not {value!r}"
        raise PreskError([Diagnostic("E7000", text, None)], exit_status=2) from error


def signature(f: Function) -> str:
    """A function's head, as `presk check --summary` prints it."""
    dims = "{" + " ".join(f.dims) + "}" if f.dims else ""
    params = ", ".join(f"{p.name} : {p.type}" for p in f.params)
    uses = f" uses {', '.join(f.uses)}" if f.uses else ""
    return f"{f.name}{dims}({params}) -> {f.result}{uses}"


def classes(found: Mapping[str, str]) -> str:
    return ", ".join(f"{c} in {p}" for p, c in found.items())
