"""An `ein` that is a product entry by entry, a product with a matrix or a sum is written as such before the e-graph
looks at the program: its rules know these, and an `ein` only as something whole."""

from __future__ import annotations

from presk_rel.core.ein import EinSpec
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.contract.operations import Factor, Wanted, operation
from presk_rel.egraph.contract.products import product_of
from presk_rel.egraph.contract.unfold import Unfolder
from presk_rel.egraph.language import Terms
from presk_rel.egraph.proof import TermId


def lowered(terms: Terms, closure: Closure, root: TermId) -> TermId:
    """The term that `root` is with its contractions written so, equal to it in the closure."""
    unfold = Unfolder(terms, closure)
    becomes: dict[TermId, TermId] = {}
    for t in terms.reachable(root):
        args = tuple(becomes[a] for a in terms.args[t])
        at = t if args == terms.args[t] else terms.make(terms.head[t], args)
        becomes[t] = _lower(terms, unfold, at) if terms.op(t).op == "ein" and not closure.budget.late() else at
    return becomes[root]


def _lower(terms: Terms, unfold: Unfolder, term: TermId) -> TermId:
    args, head, table = terms.args[term], terms.op(term), terms.table
    product = product_of("ein", head.attrs, tuple(table.types[terms.type[a]] for a in args))
    if product is None:
        return term
    factors = [Factor(terms.type[a], labels) for a, labels in zip(args, product.factors, strict=True)]
    found = operation(table, factors, Wanted(product.result, head.type))
    if found is None:
        return term
    other, turned = found
    made = terms.make(terms.intern(other), args[::-1] if turned else args)
    same = term
    if turned:
        spec = unfold.spec(term)
        same = unfold.ein(EinSpec(spec.operands[::-1], spec.result), args[::-1], head.type)
        unfold.say("ein.first-2-1", term, same)
    unfold.say(f"{other.op}.as-ein", made, same)
    return made
