"""Whom a proof blames: the first primitive on the proven path that brings in the class which the proof is about."""

from __future__ import annotations

from presk_rel.rules.proof import ProofNode


def culprit(node: ProofNode) -> tuple[str | None, str]:
    """(primitive, site) for a proof of `grad_illegal`, `regularity`, `summary`, `path` or `edge`. The primitive is None
    where the blame is that of an unknown function value applied at the site."""
    while True:
        match node.rule:
            case "regularity.step":
                before, step, _ = node.because
                node = before if _class(before) == _class(node) else step
            case "regularity.via-primitive":
                source, _ = node.because
                assert source.fact is not None
                return str(source.fact[1][3]), str(source.fact[1][2])
            case "regularity.via-unknown-argument" | "regularity.via-unknown-function":
                assert node.fact is not None
                return None, str(node.fact[1][3])
            case _:
                node = next(b for b in reversed(node.because) if _relation(b) in _LEADING)


_LEADING = ("summary", "path", "some_path")


def _relation(node: ProofNode) -> str | None:
    return None if node.fact is None or node.kind == "absence" else node.fact[0]


def _class(node: ProofNode) -> str:
    assert node.fact is not None
    return str(node.fact[1][2])
