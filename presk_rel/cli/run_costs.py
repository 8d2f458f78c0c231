"""What `presk run` says of a run besides its result: how far it is, while it runs; what it cost, after it."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from presk_rel.exec.exact.kernel import Site
    from presk_rel.exec.exact.run import BindingCost, RunResult

PATIENCE = 2.0
"""Seconds before a run says how far it is."""
REFRESH = 0.2
ROWS = 12
"""Bindings that the text shows; `--json` has all."""


class Progress:
    """Shows on a terminal how far a run is, and knows it when the run is interrupted."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.stream, self.clock = stream, clock
        self.terminal = stream.isatty()
        self.next = clock() + PATIENCE
        self.last: tuple[int, int, Site] | None = None
        self.shown = False

    def __call__(self, precision: int, total: int, site: Site) -> None:
        self.last = (precision, total, site)
        if not self.terminal or (now := self.clock()) < self.next:
            return
        self.next = now + REFRESH
        self.shown = True
        self.stream.write(f"\r\x1b[K{self._where()}")
        self.stream.flush()

    def _where(self) -> str:
        if self.last is None:
            return "nothing is computed yet"
        precision, total, site = self.last
        total = max(total, site.step)
        percent = 100 * (site.step - 1) // total
        exact = "exactly" if precision == 0 else f"at {precision} bits"
        return f"{exact}: {site.step - 1:,} of {total:,} operations ({percent} %), now in {site}"

    def clear(self) -> None:
        """Wipe the line, if there is one."""
        if self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()

    def said(self) -> str:
        """What was computed when the run was interrupted."""
        return f"interrupted {self._where()}; no digit of the result is proven yet"

    def document(self) -> dict[str, Any] | None:
        if self.last is None:
            return None
        precision, total, site = self.last
        return {"precision": precision, "done": site.step - 1, "total": max(total, site.step), "site": str(site)}


@dataclass(frozen=True, slots=True)
class Costs:
    document: dict[str, Any]
    text: str


def binding_costs(result: RunResult, *, time: bool, memory: bool) -> Costs:
    """`--time` and `--memory`: nothing when neither is asked for."""
    if not time and not memory:
        return Costs({}, "")
    document: dict[str, Any] = {
        "bindings": [
            {"function": c.function, "binding": c.binding, "type": c.type, "times": c.times, "seconds": c.seconds,
             "bytes": c.bytes}
            for c in result.costs
        ]
    }  # fmt: skip
    text = ""
    if time:
        text += _table(result, "time", lambda c: c.seconds, lambda c: f"{c.seconds:10.3f} s  ")
    if memory:
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        document["memory"] = {"peak": result.peak_bytes, "resident": resident}
        text += f"\n\nreals at the peak {_mib(result.peak_bytes)}, the process {_mib(resident)}"
        text += _table(result, "memory", lambda c: c.bytes, lambda c: f"{_mib(c.bytes):>12}")
    return Costs(document, text)


def _table(
    result: RunResult, title: str, weight: Callable[[BindingCost], float], shown: Callable[[BindingCost], str]
) -> str:
    top = sorted((c for c in result.costs if weight(c) > 0), key=weight, reverse=True)[:ROWS]
    rows = [f"{shown(c)}  {c.times:>9,} ×  {c.function}/{c.binding} : {c.type}" for c in top]
    return f"\n\n{title} per binding\n" + "\n".join(rows)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.2f} MiB"
