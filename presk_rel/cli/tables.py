"""The report of `presk opt`, as a table and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from presk_rel.egraph.optimize import Report, Size

COLUMNS = ("bindings", "kernels", "flops", "bytes")


def report_document(report: Report) -> dict[str, Any]:
    return {
        "before": _size(report.before),
        "after": _size(report.after),
        "rules": [{"rule": rule, "fired": fired} for rule, fired in report.fired],
        "enodes": {"before": report.e_nodes[0], "after": report.e_nodes[1]},
        "phases": dict(report.phases),
        "gap": report.gap,
        "stopped": report.stopped,
    }


def _size(size: Size) -> dict[str, int]:
    return {"bindings": size.bindings, "kernels": size.kernels, "flops": size.flops, "bytes": size.bytes}


def report_text(report: Report) -> str:
    before, after = _size(report.before), _size(report.after)
    lines = [f"-- {'':10}{'before':>14}{'after':>14}"]
    lines += [f"-- {name:10}{before[name]:>14,}{after[name]:>14,}" for name in COLUMNS]
    lines += ["--", f"-- {'rule':36}{'fired':>8}"]
    lines += [f"-- {rule:36}{fired:>8}" for rule, fired in report.fired]
    lines += [
        "--",
        f"-- e-nodes {report.e_nodes[0]} → {report.e_nodes[1]}, {report.stopped}; gap to the optimum {report.gap:.1%}",
    ]
    lines += ["-- " + " · ".join(f"{phase} {seconds:.3f} s" for phase, seconds in report.phases)]
    return "\n".join(lines)
