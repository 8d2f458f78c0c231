"""A program and what can be asked of it: the passes of `pipeline`, and running what they made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from presk_rel.diagnostics import PreskError
from presk_rel.diagnostics.record import mutable, record
from presk_rel.pipeline import Pipeline

if TYPE_CHECKING:
    from presk_rel.core.ir import Program
    from presk_rel.exec.condition import Judged
    from presk_rel.exec.exact.run import Options, RunResult
    from presk_rel.exec.literals import Node
    from presk_rel.exec.torch.inductor import Tier
    from presk_rel.exec.torch.run import Dtype, TorchResult
    from presk_rel.exec.values import Value
    from presk_rel.export.torch_file import Exported


@record
class Request:
    """What a run is given: arguments by name (`exec.literals.arguments`), dims, the seed of what is not given, and
    whether to run the optimized program."""

    given: Mapping[str, Node] = field(default_factory=dict[str, "Node"])
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    seed: int = 0
    optimize: bool = True


@mutable
class Session(Pipeline):
    """A program that runs, exactly and on torch, and is exported."""

    def run_exact(
        self, entry: str, request: Request, options: Options, args: tuple[Value, ...] | None = None
    ) -> RunResult:
        """The entry's proven value (or, with the mpmath kernel, its measured one); of `args`, where these are given."""
        from presk_rel.core.expand import expanded
        from presk_rel.exec.exact.run import run_exact

        given = self._given(entry, request)
        program = expanded(self.optimized(entry, request.dims).program) if request.optimize else self.differentiated
        options = replace(options, last_use=self._last_use(program, entry))
        with self._pass("run"):
            return run_exact(program, entry, given, request.dims, request.seed, options, args)

    def judged(
        self, entry: str, request: Request, args: tuple[Value, ...], measured: Value, dtype: Dtype, device: str = "cpu"
    ) -> Judged:
        """What to say of a result that is beyond the bounds of its type (`exec.condition`), at arguments of the shapes
        that the request says."""
        from presk_rel.exec.condition import BITS, judged
        from presk_rel.exec.exact.run import Options
        from presk_rel.exec.torch.precision import rounds_to

        def run(values: tuple[Value, ...]) -> Value:
            return self.run_exact(entry, request, Options(bits=BITS), values).value

        return judged(run, args, measured, dtype, rounds_to(dtype, device))

    def run_torch(
        self, entry: str, request: Request, dtype: Dtype, device: str, tier: Tier = "auto", *, planned: bool = False
    ) -> TorchResult:
        """The entry's value on torch, from the same Core and the same arguments as the exact one; `planned`: as a
        handle of `presk_rel.load` computes it. A tier that cannot be had is a warning (W7104)."""
        from presk_rel.exec.exact.run import check_defined
        from presk_rel.exec.inputs import prepare
        from presk_rel.exec.torch.numerics import full_f32
        from presk_rel.exec.torch.run import TorchResult, compile_entry, fallen_back, run_torch

        given = self._given(entry, request)
        flat = self.optimized(entry, request.dims).program if request.optimize else self.flat(entry)
        with self._pass("run"), full_f32():
            bound, values = prepare(flat, entry, given, request.dims, request.seed)
            check_defined(flat, bound)
            compiled = compile_entry(flat, entry, bound.env, dtype, device, tier=tier, planned=planned)
            value = run_torch(compiled, {p.name: v for p, v in zip(bound.fn.params, values, strict=True)})
            self._take(fallen_back(compiled.status))
        emitted = compiled.emitted
        return TorchResult(value, dict(bound.env.dims), emitted.source, emitted.kernels, compiled.status)

    def launches(self, entry: str, dims: Mapping[str, int]) -> tuple[int | None, int | None]:
        """The kernels that tier `emit` launches in one run of an entry in f32 on the CPU, as differentiated and as
        optimized; None where a dim or a prefix is open, or where torch does not run it."""
        from presk_rel.exec.inputs import bind
        from presk_rel.exec.torch.emit import emit

        def count(program: Program) -> int | None:
            try:
                env = bind(program, entry, {}, dims).env
                return emit(program, entry, env, "float32", "cpu", unroll=False).kernels
            except PreskError:
                return None

        return count(self.flat(entry)), count(self.optimized(entry, dims).program)

    def exported(self) -> Exported:
        """The program as readable PyTorch (spec: "PyTorch export"); checked first."""
        from presk_rel.export.torch_file import export_pytorch

        self.analysis  # noqa: B018  all errors are reported before anything is printed
        return export_pytorch(self.typed, self.loaded.files, self.loaded.texts, self.names.uses)

    def _given(self, entry: str, request: Request) -> Mapping[str, Node]:
        """The arguments given, and defaults of the others (Core text has none), checked before optimizing."""
        from presk_rel.exec.defaults import complete

        name, functions = self.entry(entry).name, () if self.path.endswith(".core") else self.typed.functions
        declared = next((f.defaults for f in functions if f.name == name), ())
        with self._pass("run"):
            return complete(self.differentiated, name, declared, request.given, request.dims)

    def _last_use(self, program: Program, entry: str) -> list[tuple[str, str, int]]:
        """Where names are read last, in every function that the entry reaches, by the liveness relation of rules.dl:
        what the executor frees by."""
        from presk_rel.core.analysis import liveness, reached

        with self._pass("analyse"):
            functions = reached(program, entry)
            last_use = liveness(functions, self.engine).last_use
            return [(f.name, name, i) for f in functions for name, i in last_use.get(f.name, {}).items()]
