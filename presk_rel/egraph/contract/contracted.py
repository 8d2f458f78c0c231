"""The pass: contractions of the e-graph in the order that costs least, and sums of contractions as one."""

from __future__ import annotations

from presk_rel.egraph.budget import Budget
from presk_rel.egraph.choices import Weights
from presk_rel.egraph.closure import Closure
from presk_rel.egraph.contract.collect import Collector
from presk_rel.egraph.contract.read import Reader
from presk_rel.egraph.contract.unfold import Unfolder
from presk_rel.egraph.contract.write import Writer
from presk_rel.egraph.language import Terms
from presk_rel.egraph.placement import representatives
from presk_rel.egraph.snapshot import Graph


def contracted(graph: Graph, terms: Terms, closure: Closure, weights: Weights, budget: Budget) -> Graph:
    """The graph with more nodes, and more classes behind those it had: contractions in the order that costs least where
    that is less than what is there. The closure proves the new nodes equal to their classes; its instances count as
    those of `placement` do."""
    more = Graph([list(nodes) for nodes in graph.nodes], list(graph.types), graph.of_term)
    reader = Reader(more, terms, representatives(graph, terms))
    known = range(len(graph.nodes))
    collector = Collector(more, terms, reader)
    sums = [pair for c in known for pair in collector.pairs(c)]
    roots = [c for c in known if reader.is_root(c)]
    if not roots and not sums:
        return graph
    closure.settle()
    writer = Writer(more, terms, reader, Unfolder(terms, closure), weights)
    before = len(closure.instances)
    for pair in sums:
        if _over(budget, closure, before):
            return more
        collector.collect(pair, writer)
    for class_ in roots:
        if _over(budget, closure, before):
            return more
        for better in writer.better(class_):
            writer.write(better)
    return more


def _over(budget: Budget, closure: Closure, before: int) -> bool:
    """Whether the instances or the user's seconds are spent."""
    if len(closure.instances) - before <= budget.places and not budget.late():
        return False
    budget.cut("contractions")
    return True
