"""The report of `presk opt`, as a table and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presk_rel.egraph.optimize import Report, Size

Launches = tuple[int | None, int | None]
"""What tier `emit` of the torch executor launches in one run before and after; None where dims are not bound."""


def report_document(report: Report, launches: Launches) -> dict[str, Any]:
    return {
        "before": _size(report.before, launches[0]),
        "after": _size(report.after, launches[1]),
        "rules": [{"rule": rule, "fired": fired} for rule, fired in report.fired],
        "enodes": {"before": report.e_nodes[0], "after": report.e_nodes[1]},
        "phases": dict(report.phases),
        "gap": report.gap,
        "stopped": report.stopped,
        "cut": list(report.cuts),
    }


def _size(size: Size, launches: int | None) -> dict[str, int | None]:
    return {
        "bindings": size.bindings, "kernels": launches, "planned": size.kernels, "flops": size.flops,
        "bytes": size.bytes,
    }  # fmt: skip


def report_text(report: Report, launches: Launches) -> str:
    before, after = _size(report.before, launches[0]), _size(report.after, launches[1])
    lines = [f"-- {'':10}{'before':>14}{'after':>14}"]
    lines += [f"-- {name:10}{_figure(before[name]):>14}{_figure(after[name]):>14}" for name in before]
    lines += ["--", f"-- {'rule':36}{'fired':>8}"]
    lines += [f"-- {rule:36}{fired:>8}" for rule, fired in report.fired]
    lines += [
        "--",
        f"-- e-nodes {report.e_nodes[0]} → {report.e_nodes[1]}, {report.stopped}; gap to the optimum {report.gap:.1%}",
    ]
    lines += [f"-- cut short: {', '.join(report.cuts)}"] if report.cuts else []
    lines += ["-- " + " · ".join(f"{phase} {seconds:.3f} s" for phase, seconds in report.phases)]
    return "\n".join(lines)


def _figure(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
