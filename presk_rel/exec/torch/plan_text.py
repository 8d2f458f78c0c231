"""The text of a plan: `bound`, which makes buffers and views, and in it `run`, which calls the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from presk_rel.exec.torch.graph import FAMILY
from presk_rel.exec.torch.layouts import Array, dense
from presk_rel.exec.torch.memory import Memory, Place
from presk_rel.exec.torch.trace import COPY, Dtype, Step, Verbatim

SMALL = 1 << 14
"""Entries up to which oneDNN's gelu takes longer than torch's own (9 and 31 µs against 1.3 and 3.5 on 32 entries; from
about 2^17 on it is the faster one)."""

_NUMBERS = frozenset(f"torch.{n}" for n in ("add", "sub", "mul", "div"))
"""Take a number as a tensor without axes too, which is faster; in bf16 that tensor would round the number."""
_TENSORS = frozenset({"torch.rsub", "torch.addbmm"})
"""Their `into` forms take nothing else."""


@dataclass(slots=True)
class Text:
    """Collects the lines. `draws` is whether `run` reads what `prelude` gives."""

    memory: Memory
    dtype: str
    made: list[str] = field(default_factory=list[str])
    running: list[str] = field(default_factory=list[str])
    functions: dict[str, str] = field(default_factory=dict[str, str])
    numbers: dict[tuple[float, str], str] = field(default_factory=dict[tuple[float, str], str])
    known: set[str] = field(default_factory=set[str])
    draws: bool = False

    def write(self, inputs: Sequence[str], arenas: int, given: Any, steps: Sequence[Step], results: list[str]) -> str:
        """The function `bound`."""
        read = {x for step in steps for x in _names((step.args, tuple(step.keywords.values())))}
        for name, (entries, dtype) in self.memory.pools.items():
            made = f"torch.empty({entries}, dtype=torch.{dtype}, device=device)"
            over = f"into[{name[1:]}] if {name[1:]} in into else " if name.startswith("g") else ""
            self.made.append(f"{name} = {over}{made}")
        self.given(given, "given", read)
        for step in steps:
            self.step(step)
        gelus = [s for s in steps if "gelu" in s.function]
        running = self.running or ["pass"]
        if gelus and self.dtype == "float32" and all(x.entries <= SMALL for s in gelus for x in s.results if x):
            running = ["with support.small():", *(f"    {row}" for row in running)]
        groups = [n for n in self.memory.pools if n.startswith("g")]
        lines = [
            f"({''.join(f'{n}, ' for n in inputs)}) = inputs",
            f"({''.join(f'a{k}, ' for k in range(arenas))}) = arenas",
            *self.made,
            f"def run({'given' if self.draws else ''}):",
            *(f"    {row}" for row in running),
            f"return run, ({''.join(f'{n}, ' for n in results)}), ({''.join(f'{n}, ' for n in groups)})",
        ]
        return "def bound(inputs, arenas, into):\n" + "".join(f"    {row}\n" for row in lines)

    def given(self, value: Any, path: str, read: set[str]) -> None:
        """Names for what is drawn anew in every run."""
        if isinstance(value, Array) and not value.fixed and value.name in read:
            self.running.append(f"{value.name} = {path}")
            self.draws = True
        if isinstance(value, tuple | list):
            for i, part in enumerate(cast("Sequence[Any]", value)):
                self.given(part, f"{path}[{i}]", read)

    def step(self, step: Step) -> None:
        results = [p for p in step.results if p is not None]
        for x in results:
            if x.fixed and x.name == x.root:
                self.buffer(x)
        if not step.function:
            return
        if step.function == FAMILY:
            root, start, sizes, strides, _ = step.args
            place = self.memory.at.get(root, Place(root, 0))
            self.made.append(
                f"{results[0].name} = {place.buffer}[{place.offset + start}:].as_strided({sizes}, {strides})"
            )
        elif step.view:
            names = ", ".join(x.name for x in results)
            target = f"{names}, " if len(step.results) > 1 or step.function.endswith("unbind") else names
            (self.made if results[0].fixed else self.running).append(f"{target} = {self.called(step)}")
        elif step.function == COPY:
            self.copy(step, results[0])
        elif step.call is not None and step.call.into and results[0].fixed:
            self.into(step)
        else:
            names = ", ".join("_" if p is None else p.name for p in step.results)
            target = f"{names}, " if len(step.results) > 1 else names
            self.running.append(f"{target} = {self.called(step, hoisted=True)}")

    def buffer(self, x: Array) -> None:
        place = self.memory.at[x.root]
        whole = self.memory.pools[place.buffer][0] == x.entries
        flat = place.buffer if whole else f"{place.buffer}.narrow(0, {place.offset}, {x.entries})"
        ordered = x.strides == dense(x.sizes)
        view = f"view({x.sizes})" if ordered else f"as_strided({x.sizes}, {x.strides})"
        self.made.append(f"{x.name} = {flat}.{view}")

    def copy(self, step: Step, into: Array) -> None:
        x = cast("Array", step.args[0])
        target = into.name
        if into.sizes != x.sizes:
            target = f"{into.name}_"
            self.made.append(f"{target} = {into.name}.view({x.sizes})")
        self.running.append(f"{target}.copy_({x.name})")

    def into(self, step: Step) -> None:
        assert step.call is not None
        function, *names = step.call.into
        args, keywords = [*step.args, *step.call.more], dict(step.keywords)
        if step.function == "torch.rsub":
            args.reverse()
        if step.function in ("torch.sum", "torch.mean") and len(args) == 1:
            args.append(())
        numeric = step.function in _TENSORS or (step.function in _NUMBERS and self.dtype in ("float32", "float64"))
        shown = [self.number(a) if numeric and isinstance(a, int | float) else self.shown(a) for a in args]
        shown += [f"{k}={self.shown(v)}" for k, v in keywords.items()]
        for name, x in zip(names, step.results, strict=True):
            shown.append(f"{name}={'torch.empty(0, dtype=dtype, device=device)' if x is None else x.name}")
        self.running.append(f"{self.function(function)}({', '.join(shown)})")

    def number(self, value: float) -> str:
        """A tensor without axes."""
        key = (float(value), self.dtype)
        if key not in self.numbers:
            self.numbers[key] = f"k{len(self.numbers)}"
            self.made.append(
                f"{self.numbers[key]} = torch.tensor({self.shown(float(value))}, dtype=dtype, device=device)"
            )
        return self.numbers[key]

    def function(self, name: str) -> str:
        """A local name of a function: its attributes are looked up once."""
        if name not in self.functions:
            of_aten = name.startswith("torch.ops.aten.")
            whole = f"{name}._op" if of_aten else name
            short = name.split(".")[-2 if of_aten else -1]
            self.functions[name] = f"{short}_{len(self.functions)}" if short in self.functions.values() else short
            self.made.append(f"{self.functions[name]} = {whole}")
        return self.functions[name]

    def called(self, step: Step, *, hoisted: bool = False) -> str:
        """The call as it is traced; with its function looked up once."""
        shown = [self.shown(a) for a in step.args]
        shown += [f"{k}={self.shown(v)}" for k, v in step.keywords.items()]
        if not step.method:
            of_aten = step.function.startswith("torch.ops.aten.")
            name = self.function(f"{step.function}.default" if of_aten else step.function) if hoisted else step.function
            return f"{name}({', '.join(shown)})"
        of, *rest = shown
        return f"{of}.{step.function}" if step.function in ("mT", "T") else f"{of}.{step.function}({', '.join(rest)})"

    def shown(self, value: Any) -> str:
        match value:
            case Array():
                return value.name
            case Verbatim():
                return value.text
            case Dtype():
                return f"torch.{value}"
            case float():
                return repr(value) if value - value == 0 else f'float("{value}")'
            case tuple():
                return f"({''.join(f'{self.shown(v)}, ' for v in cast('tuple[Any, ...]', value))})"
            case list():
                return f"[{', '.join(self.shown(v) for v in cast('list[Any]', value))}]"
            case _:
                return repr(value)


def _names(value: Any) -> list[str]:
    if isinstance(value, Array):
        return [value.name]
    if isinstance(value, tuple | list):
        return [x for v in cast("Sequence[Any]", value) for x in _names(v)]
    return []
