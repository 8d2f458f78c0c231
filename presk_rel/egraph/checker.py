"""The independent checker of optimization proofs: small, linear, and sharing no code with the optimizer.

It reads the data of `egraph.proof` and the texts of the rule table, and has its own reader of patterns, its own
decision of conditions and, in
`egraph.denote`, its own reading of Core. A proof is accepted when

1. every term is well-typed by the typing rules of Core, from the entry's parameters up;
2. every rule step is an instance of its rule: both sides match under the substitution, both have one type, and all
conditions hold;
3. every congruence step uses lemmas proven before, and every lemma's steps lead from its left side to its right;
4. the last lemma says `start = end`, `start` denotes what the entry computes, and `end` what the optimized program
does.

`check` returns the refusals; none means verified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

from presk_rel.core.ir import Attr, Binding, DimArgs, Fold, Function, Param, Prim, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_types
from presk_rel.core.typing_rules import infer
from presk_rel.core.verify import problems
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.checker_rules import Bound, Sexp, attributes, constant_fact, entries, parts, read, tensors
from presk_rel.egraph.denote import denote
from presk_rel.egraph.denote_terms import Terms
from presk_rel.egraph.proof import CongruenceStep, Lemma, Proof, RuleStep, Term
from presk_rel.egraph.rule import Rule
from presk_rel.elab.ty import SCALAR_REAL, Real, Type, map_dims
from presk_rel.smt.linear import Linear, constant


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a proof is not accepted: the lemma and step (None: the proof as a whole), and the reason."""

    lemma: int | None
    step: int | None
    reason: str

    def __str__(self) -> str:
        where = (
            "" if self.lemma is None else f"lemma {self.lemma}" + ("" if self.step is None else f", step {self.step}")
        )
        return f"{where}: {self.reason}" if where else self.reason


def check(
    proof: Proof, rules: Mapping[str, Rule], before: Program, after: Program, dims: Mapping[str, int] | None = None
) -> list[Refusal]:
    """Check a proof about `proof.entry` of `before` (after differentiation, calls and all) and of `after` (optimized),
    at `dims` where the optimizer was given them. Time is linear in the proof."""
    try:
        checker = _Checker(proof, rules, before, after, dims or {})
        return [*checker.terms(), *checker.lemmas(), *checker.claim(), *_ends(proof, before, after, dims or {})]
    except (PreskBug, IndexError, KeyError, ValueError, TypeError, AssertionError) as error:
        return [Refusal(None, None, f"the proof is malformed: {type(error).__name__}: {error}")]


@dataclass(slots=True)
class _Checker:
    proof: Proof
    rules: Mapping[str, Rule]
    before: Program
    after: Program
    dims: Mapping[str, int]
    read: dict[str, Sexp] = field(default_factory=dict[str, Sexp])

    # ------------------------------------------------------------------------------------------------------- terms

    def terms(self) -> Iterator[Refusal]:
        parameters = {p.name: _at(p.type, self.dims) for p in self.before.functions[self.proof.entry].params}
        for i, term in enumerate(self.proof.terms):
            reason = self.term_problem(i, term, parameters)
            if reason is not None:
                yield Refusal(None, None, f"term {i} ({term.op}): {reason}")
                return
        if any(term.op == "fold" for term in self.proof.terms):
            program = _straight(self.proof, len(self.proof.terms) - 1, self.before, self.after, self.dims, whole=True)
            yield from (Refusal(None, None, f"the terms are no program: {p}") for p in problems(program)[:1])

    def term_problem(self, index: int, term: Term, parameters: Mapping[str, Type]) -> str | None:
        if any(not 0 <= c < index for c in term.children):
            return "a child does not come earlier"
        if term.op == "input":
            known = parameters.get(str(term.attrs[0]))
            return None if known == term.type else f"the entry's parameter has type {known}, not {term.type}"
        if term.op == "fold":
            return None  # typed with all terms together, by the verifier of Core
        if term.op not in PRIMS:
            return "no primitive of Core"
        children = tuple(self.proof.terms[c].type for c in term.children)
        found = infer(PRIMS[term.op], term.attrs, children, term.type, self.before.modules)
        if isinstance(found, str):
            return found
        return None if compatible_types(found, term.type) else f"its type is {found}, not {term.type}"

    # ------------------------------------------------------------------------------------------------------ lemmas

    def lemmas(self) -> Iterator[Refusal]:
        for i, lemma in enumerate(self.proof.lemmas):
            at = lemma.left
            for k, step in enumerate(lemma.steps):
                reason = "the chain is broken" if step.before != at else self.step_problem(step, i)
                if reason is not None:
                    yield Refusal(i, k, reason)
                at = step.after
            if at != lemma.right:
                yield Refusal(i, None, "the steps do not lead to the right side")

    def claim(self) -> Iterator[Refusal]:
        lemmas = self.proof.lemmas
        trivial = self.proof.start == self.proof.end
        if not lemmas and trivial:
            return
        if not lemmas or (lemmas[-1].left, lemmas[-1].right) != (self.proof.start, self.proof.end):
            yield Refusal(None, None, "the last lemma is not `start = end`")

    def step_problem(self, step: RuleStep | CongruenceStep, lemma: int) -> str | None:
        match step:
            case RuleStep():
                return self.rule_problem(step)
            case CongruenceStep():
                return self.congruence_problem(step, lemma)

    def congruence_problem(self, step: CongruenceStep, lemma: int) -> str | None:
        before, after = self.proof.terms[step.before], self.proof.terms[step.after]
        if (before.op, before.attrs, before.type) != (after.op, after.attrs, after.type):
            return "congruence between different operations"
        if len(before.children) != len(after.children):
            return "congruence between different numbers of operands"
        equal: dict[int, Lemma] = {}
        for position, number, forward in zip(step.positions, step.lemmas, step.forward, strict=True):
            if not 0 <= number < lemma:
                return "a lemma is used before it is proven"
            used = self.proof.lemmas[number]
            equal[position] = used if forward else Lemma(used.right, used.left, ())
        for k, (a, b) in enumerate(zip(before.children, after.children, strict=True)):
            if k in equal and (equal[k].left, equal[k].right) != (a, b):
                return f"the lemma used for operand {k} does not say that it equals its counterpart"
            if k not in equal and a != b:
                return f"operand {k} differs and no lemma is given"
        return None

    def rule_problem(self, step: RuleStep) -> str | None:
        rule = self.rules.get(step.rule)
        if rule is None:
            return f"no rule `{step.rule}`"
        bound = dict(step.substitution)
        left, right = (step.before, step.after) if step.forward else (step.after, step.before)
        if self.proof.terms[left].type != self.proof.terms[right].type:
            return f"`{rule.name}`: the sides have different types"
        for text, term, side in ((rule.left, left, "left"), (rule.right, right, "right")):
            reason = self.mismatch(self.sexp(text), term, bound)
            if reason is not None:
                return f"`{rule.name}`: its {side} side does not match: {reason}"
        for condition in rule.conditions:
            if not self.holds(self.sexp(condition), bound, left):
                return f"`{rule.name}`: its condition {condition} does not hold"
        return None

    # ---------------------------------------------------------------------------------------------------- matching

    def sexp(self, text: str) -> Sexp:
        if text not in self.read:
            self.read[text] = read(text)
        return self.read[text]

    def mismatch(self, pattern: Sexp, index: int, bound: Bound) -> str | None:
        """Why the term is not the pattern under the substitution; None when it is."""
        if isinstance(pattern, str):
            return None if pattern in bound and bound[pattern] == index else f"`{pattern}` stands for another term"
        term = self.proof.terms[index]
        op, keywords, operands = parts(pattern)
        if op != term.op:
            return f"{op} expected, {term.op} found"
        if len(operands) != len(term.children):
            return f"{op}: {len(operands)} operands expected"
        if attributes(op, keywords, bound) != tuple(term.attrs):
            return f"{op}: other attributes"
        type_variable = keywords.get(":type")
        if isinstance(type_variable, str) and bound.get(type_variable) != term.type:
            return f"{op}: {type_variable} is another type"
        reasons = (self.mismatch(p, c, bound) for p, c in zip(operands, term.children, strict=True))
        return next((r for r in reasons if r is not None), None)

    # -------------------------------------------------------------------------------------------------- conditions

    def holds(self, condition: Sexp, bound: Bound, root: int) -> bool:
        """The truth of a condition. A name that this checker does not know is no proof of anything: False."""
        name, *arguments = condition
        values = [self.argument(a, bound, root) for a in arguments]
        of_terms = name in ("type", "same-type", "scalar", "real", "tensors")  # an integer elsewhere is an attribute
        types = [self.proof.terms[v].type if of_terms and isinstance(v, int) else v for v in values]
        match name, values:
            case "type", [int(), ty]:
                return types[0] == ty
            case "same-type", [int(), int()]:
                return types[0] == types[1]
            case "typed", [_, ty]:
                return isinstance(arguments[0], list) and self.typed(arguments[0], bound, root) == ty
            case (("scalar" | "scalar-type"), [_]):
                return isinstance(types[0], Real) and types[0].shape.prefix is None and not types[0].shape.axes
            case (("real" | "real-type"), [_]):
                return isinstance(types[0], Real)
            case "tensors", [_]:
                return tensors(types[0])
            case "entries", [ty, Fraction() as count]:
                return isinstance(ty, Real) and count != 0 and entries(ty) == count
            case _:
                return constant_fact(str(name), values)

    def argument(self, sexp: Sexp, bound: Bound, root: int) -> object:
        if isinstance(sexp, list):
            return None
        return root if sexp == "root" and "root" not in bound else bound.get(sexp)

    def typed(self, pattern: Sexp, bound: Bound, root: int) -> Any:
        """The type that Core's typing rules give to a pattern whose variables stand for terms; None for none."""
        if isinstance(pattern, str):
            value = self.argument(pattern, bound, root)
            return self.proof.terms[value].type if isinstance(value, int) else None
        op, keywords, operands = parts(pattern)
        types = [self.typed(p, bound, root) for p in operands]
        declared = bound.get(str(keywords[":type"])) if ":type" in keywords else SCALAR_REAL
        if any(t is None for t in types):
            return None
        given = cast("tuple[Attr, ...]", attributes(op, keywords, bound))
        found = infer(PRIMS[op], given, tuple(types), cast("Type", declared), self.before.modules)
        return None if isinstance(found, str) else found


# ------------------------------------------------------------------------------------------- the ends of the proof


def _at(ty: Type, dims: Mapping[str, int]) -> Type:
    values = {name: constant(n) for name, n in dims.items()}
    return map_dims(ty, lambda d: d.substitute(values))


def _ends(proof: Proof, before: Program, after: Program, dims: Mapping[str, int]) -> Iterator[Refusal]:
    """`start` denotes the entry before optimization and `end` the optimized one."""
    table = Terms()
    ends = (
        (proof.start, "start", denote(before, proof.entry, table, dims)),
        (proof.end, "end", denote(after, proof.entry, table, dims)),
    )
    for index, said, value in ends:
        if denote(_straight(proof, index, before, after, dims), proof.entry, table) != value:
            program = "the entry after differentiation" if said == "start" else "the optimized program"
            yield Refusal(None, None, f"the {said} term is not what {program} computes")


def _straight(
    proof: Proof, root: int, before: Program, after: Program, dims: Mapping[str, int], *, whole: bool = False
) -> Program:
    """The straight-line function that computes a term (with `whole`, every term), and the bodies of folds."""
    entry = before.functions[proof.entry]
    needed = set(range(len(proof.terms))) if whole else {root}
    for index in range(root, -1, -1):
        if index in needed:
            needed.update(proof.terms[index].children)
    names = {i: str(t.attrs[0]) if t.op == "input" else f"t{i}" for i, t in enumerate(proof.terms) if i in needed}
    bindings = tuple(
        Binding(names[i], t.type, _operation(t, tuple(names[c] for c in t.children)))
        for i, t in enumerate(proof.terms)
        if i in needed and t.op != "input"
    )
    params = tuple(Param(p.name, _at(p.type, dims)) for p in entry.params)
    function = Function(proof.entry, entry.dims, params, proof.terms[root].type, bindings, names[root])
    return Program(before.modules, {**before.functions, **after.functions, proof.entry: function})


def _operation(term: Term, args: tuple[str, ...]) -> Prim | Fold:
    """A term's operation. A fold's attributes: count, body, reverse, scan, how many are stacked, then dims in pairs."""
    if term.op != "fold":
        return Prim(term.op, term.attrs, args)
    count, body, reverse, scan, stacked, *pairs = term.attrs
    assert isinstance(count, Linear)
    assert isinstance(stacked, int)
    dims = tuple(zip(pairs[::2], pairs[1::2], strict=True))
    return Fold(
        count,
        str(body),
        cast("DimArgs", dims),
        args[:stacked],
        args[stacked],
        args[stacked + 1 :],
        bool(reverse),
        bool(scan),
    )
