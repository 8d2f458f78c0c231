"""Softmax, its logarithm and cross entropy as people write them: recognised, with a proof, and computed once where
value and gradient need it."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.core.ir import Prim
from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import Node
from presk_rel.exec.render import to_json
from presk_rel.session import Request, Session

HEAD = """dim B
const V : nat = 5
type X = ℝ[batch: B, vocab: V]
type R = ℝ[batch: B]
type I = idx[V][batch: B]
"""

FORMS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "logsumexp": ("x : X", "sum(log(sum(axis vocab, exp(x))))", "logsumexp", ("softmax",)),
    "quotient": (
        "x : X, t : X",
        "sum(t * (exp(x) / sum(axis vocab, exp(x))))",
        "softmax",
        ("softmax", "softmax_vjp"),
    ),
    "difference": (
        "x : X, t : X",
        "sum(t * (x - log(sum(axis vocab, exp(x)))))",
        "log_softmax",
        ("log_softmax", "log_softmax_vjp"),
    ),
    "shifted": (
        "x : X, t : X, m : R",
        "sum(t * ((x - m) - log(sum(axis vocab, exp(x - m)))))",
        "log_softmax",
        ("log_softmax", "log_softmax_vjp"),
    ),
    "logarithm": (
        "x : X, t : X",
        "sum(t * log(softmax(axis vocab, x)))",
        "log_softmax",
        ("log_softmax", "log_softmax_vjp"),
    ),
    "picked": (
        "x : X, i : I",
        "0 - sum(one_hot(i) * log(softmax(axis vocab, x)))",
        "cross_entropy",
        ("broadcast_like", "const", "cross_entropy_vjp", "zeros"),
    ),
    "picked-mean": (
        "x : X, i : I",
        "0 - mean(sum(axis vocab, one_hot(i) * log(softmax(axis vocab, x))))",
        "cross_entropy",
        ("const", "cross_entropy_vjp", "mean_vjp", "zeros"),
    ),
    "picked-by-row": (
        "x : X, i : I",
        "sum(sum(axis vocab, one_hot(i) * (x - log(sum(axis vocab, exp(x))))))",
        "cross_entropy",
        ("broadcast_like", "const", "cross_entropy_vjp", "zeros"),
    ),
    "picked-weighted": (
        "x : X, i : I, m : R",
        "0 - sum(m * sum(axis vocab, one_hot(i) * (x - log(sum(axis vocab, exp(x))))))",
        "cross_entropy",
        ("cross_entropy_vjp",),
    ),
}
"""Parameters, the form, what it is recognised as, and the operations of the gradient in x."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    lines = ["-- forms.psk: forms of log-softmax\n", HEAD]
    for name, (params, form, _, _) in FORMS.items():
        f = name.replace("-", "_")
        given = ", ".join(p.split(" : ")[0] for p in params.split(", ")[1:])
        lines.append(f"fn {f}({params}) -> ℝ[] = {form}\n")
        lines.append(f"fn {f}_grad({params}) -> X = grad(λ x. {f}(x{', ' * bool(given)}{given}))(x)\n")
    lines.append("fn value(x : X, i : I) -> ℝ[] = mean(cross_entropy(x, i))\n")
    lines.append("fn gradient(x : X, i : I) -> X = grad(λ x. value(x, i))(x)\n")
    lines.append("fn both(x : X, i : I) -> (ℝ[], X) = (value(x, i), grad(λ x. value(x, i))(x))\n")
    lines.append("fn picked_mean_both(x : X, i : I) -> (ℝ[], X) = (picked_mean(x, i), picked_mean_grad(x, i))\n")
    path = tmp_path_factory.mktemp("forms") / "forms.psk"
    Path(path).write_text("".join(lines), encoding="utf-8")
    return Session(str(path))


def operations(session: Session, entry: str) -> list[str]:
    bindings = session.optimized(entry, {}).program.functions[session.named(entry)].bindings
    return [b.op.op for b in bindings if isinstance(b.op, Prim)]


def agree(session: Session, entry: str) -> None:
    """The proof is accepted, and no proven digit changes."""
    assert session.verified(entry, {}).reasons == ()
    given: dict[str, Node] = {}
    values = [
        to_json(session.run_exact(entry, Request(given, {"B": 2}, 0, optimize), Options(bits=64)).value)
        for optimize in (True, False)
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_recognised(session: Session, name: str) -> None:
    entry = name.replace("-", "_")
    found = operations(session, entry)
    assert FORMS[name][2] in found
    assert not set(found) & {"exp", "log", "div", "one_hot"}
    agree(session, entry)


@pytest.mark.parametrize("name", FORMS)
def test_its_gradient_is_recognised(session: Session, name: str) -> None:
    entry = f"{name.replace('-', '_')}_grad"
    assert sorted(operations(session, entry)) == sorted(FORMS[name][3])
    agree(session, entry)


def test_products_with_one_hot_cost_what_cross_entropy_does(session: Session) -> None:
    assert session.launches("picked_mean_grad", {"B": 4})[1] == session.launches("gradient", {"B": 4})[1] == 3
    assert session.launches("picked_mean_both", {"B": 4})[1] == session.launches("both", {"B": 4})[1] == 5


def test_value_and_gradient_share_the_logarithms(session: Session) -> None:
    """log-softmax, the entries and their mean; two calls more for the gradient."""
    assert [session.launches(e, {"B": 4})[1] for e in ("value", "gradient", "both")] == [3, 3, 5]
