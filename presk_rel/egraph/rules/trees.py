"""Parts of trees and tuples: what was set is what is read, and structural operations work part by part."""

from __future__ import annotations

from presk_rel.egraph.rule import Rule


def _family(get: str, put: str, key: str, kind: str) -> tuple[Rule, ...]:
    part, other = f":{key} f", f":{key} g"
    return (
        Rule(f"{get}.{put}", f"({get} {part} ({put} {part} r v))", "v", (), f"the {kind} that was set"),
        Rule(
            f"{get}.{put}-other",
            f"({get} {other} ({put} :type t {part} r v))",
            f"({get} {other} r)",
            ("(type r t)", "(distinct f g)"),
            f"setting one {kind} leaves the others",
        ),
        Rule(
            f"{get}.zeros_like",
            f"({get} {part} (zeros_like r))",
            "(zeros :type t)",
            ("(type root t)", "(real-type t)"),
            f"every {kind} of zeros is zeros",
        ),
        *(
            Rule(
                f"{get}.{op}",
                f"({get} {part} ({op} x y))",
                f"({op} ({get} :type t {part} x) ({get} :type t {part} y))",
                ("(same-type x y)", "(type root t)", "(real-type t)"),
                f"{op} works {kind} by {kind}",
            )
            for op in ("add", "sub")
        ),
    )


RULES: tuple[Rule, ...] = (
    *_family("field", "set_field", "name", "field"),
    *_family("proj", "set_elem", "index", "component"),
)
