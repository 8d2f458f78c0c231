"""The independent checker of optimization proofs: small, linear, and sharing no code with the optimizer.

It reads the data of `egraph.proof` and the texts of the rule table, and has its own reader of patterns, its own
decision of conditions and, in `egraph.denote`, its own reading of Core. A proof is accepted when, of the entry and of
every body of a fold,

1. every term is well-typed by the typing rules of Core, from the function's parameters up;
2. every rule step is an instance of its rule: both sides match under the substitution, both have one type, and all
conditions hold;
3. every congruence step uses lemmas proven before, and every lemma's steps lead from its left side to its right;
4. the sides of every change of a fold are the same when folds are read up to the laws that it names;
5. the last lemma says `start = end`;
6. the optimized program is one of Core and takes and gives the entry's values (`egraph.checker_programs`);

and, folds of the start terms having the start terms of their bodies, and folds of the end terms the end terms
(`egraph.checker_ends`), `start` of the entry denotes what the entry computes, and `end` what the optimized program
does. A lemma holds for all values of all parameters, so a fold means the same whichever of two equal bodies it has.

`check` returns the refusals; none means verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, assert_never, cast

from presk_rel.core.ir import Attr, Program
from presk_rel.core.prims import PRIMS
from presk_rel.core.shapes import compatible_types
from presk_rel.core.typing_rules import infer
from presk_rel.diagnostics import PreskBug
from presk_rel.egraph.checker_contractions import contraction_fact
from presk_rel.egraph.checker_ends import Ends
from presk_rel.egraph.checker_products import same_products
from presk_rel.egraph.checker_programs import unlike
from presk_rel.egraph.checker_rules import (
    Bound,
    Sexp,
    attributes,
    axis_length,
    constant_fact,
    dimension_fact,
    entries,
    evaluate,
    names_are_idle,
    parts,
    read,
    tensors,
    without_axis,
)
from presk_rel.egraph.folds.laws import FOLD_LAWS
from presk_rel.egraph.proof import CongruenceStep, FoldStep, Lemma, Proof, RuleStep, Step, Term
from presk_rel.egraph.rule import Rule
from presk_rel.elab.ty import SCALAR_REAL, ModuleDef, Real, Type
from presk_rel.smt.linear import Linear, constant


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a proof is not accepted: the lemma and step (None: the proof as a whole), and the reason; `body` where it is
    the proof about the body of a fold."""

    lemma: int | None
    step: int | None
    reason: str
    body: str | None = None

    def __str__(self) -> str:
        places = [f"body {self.body}"] if self.body is not None else []
        places += [f"lemma {self.lemma}"] if self.lemma is not None else []
        places += [f"step {self.step}"] if self.step is not None else []
        return ": ".join([", ".join(places), self.reason]) if places else self.reason


def check(proof: Proof, rules: Mapping[str, Rule], before: Program, after: Program) -> list[Refusal]:
    """Check a proof about `proof.entry` of `before` (after differentiation, calls and all) and of `after` (optimized),
    at all dims: those that the optimizer was given only weighed costs. Time is linear in the proof."""
    try:
        others = [Refusal(None, None, reason) for reason in unlike(proof.entry, before, after)]
        if others:  # they may not even have an end
            return others
        ends = Ends(proof, before, after)
        found = [Refusal(None, None, reason) for reason in ends.problems()]
        for part in () if found else proof.parts:
            checker = _Checker(part, rules, ends)
            body = None if part is proof else part.entry
            for refusal in (*checker.terms(), *checker.lemmas(), *checker.claim()):
                found.append(replace(refusal, body=body))
        return [*found, *(Refusal(None, None, reason) for reason in ends.differing())]
    except (PreskBug, IndexError, KeyError, ValueError, TypeError, AssertionError) as error:
        return [Refusal(None, None, f"the proof is malformed: {type(error).__name__}: {error}")]


def no_instance(
    proof: Proof, step: RuleStep, inside: Iterable[int], rules: Mapping[str, Rule], modules: Mapping[str, ModuleDef]
) -> str | None:
    """Why a step is no instance of its rule between terms of which these are well-typed; None where it is one."""
    program = Program(dict(modules), {})
    checker = _Checker(proof, rules, Ends(proof, program, program))
    problems = (checker.term_problem(i, proof.terms[i]) for i in inside)
    return next((p for p in problems if p is not None), None) or checker.rule_problem(step)


@dataclass(slots=True)
class _Checker:
    """Checks the proof of one function."""

    proof: Proof
    rules: Mapping[str, Rule]
    ends: Ends
    read: dict[str, Sexp] = field(default_factory=dict[str, Sexp])

    # ------------------------------------------------------------------------------------------------------- terms

    def terms(self) -> Iterator[Refusal]:
        for i, term in enumerate(self.proof.terms):
            reason = self.term_problem(i, term)
            if reason is not None:
                yield Refusal(None, None, f"term {i} ({term.op}): {reason}")
                return
        if any(term.op == "fold" for term in self.proof.terms):
            reasons = self.ends.ill_typed(self.proof)
            yield from (Refusal(None, None, f"the terms are no program: {reason}") for reason in reasons)

    def term_problem(self, index: int, term: Term) -> str | None:
        if any(not 0 <= c < index for c in term.children):
            return "a child does not come earlier"
        if term.op == "input":
            return self.input_problem(term)
        if term.op == "fold":
            return None  # typed with all terms together, by the verifier of Core
        if term.op not in PRIMS:
            return "no primitive of Core"
        children = tuple(self.proof.terms[c].type for c in term.children)
        found = infer(PRIMS[term.op], term.attrs, children, term.type, self.ends.before.modules)
        if isinstance(found, str):
            return found
        return None if compatible_types(found, term.type) else f"its type is {found}, not {term.type}"

    def input_problem(self, term: Term) -> str | None:
        """Another function's parameter is any value of its type, so there must be one."""
        name, *owner = map(str, term.attrs)
        known = self.ends.parameters(owner[0] if owner else self.proof.entry).get(name)
        if owner and (known is None or not tensors(known)):
            return f"{owner[0]} has no parameter {name} of reals"
        return None if known == term.type else f"the parameter has type {known}, not {term.type}"

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

    def step_problem(self, step: Step, lemma: int) -> str | None:
        match step:
            case RuleStep():
                return self.rule_problem(step)
            case CongruenceStep():
                return self.congruence_problem(step, lemma)
            case FoldStep():
                return self.fold_problem(step)
            case _:
                assert_never(step)

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

    def fold_problem(self, step: FoldStep) -> str | None:
        unknown = [law for law in step.laws if law not in FOLD_LAWS]
        if unknown or not step.laws:
            return f"no law `{unknown[0]}`" if unknown else "a fold changes by no law"
        if self.proof.terms[step.before].type != self.proof.terms[step.after].type:
            return "the folds have different types"
        if self.ends.same_folds(self.proof, step.before, step.after, frozenset(step.laws)):
            return None
        return f"the folds differ in more than {', '.join(step.laws)}"

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
            if not self.condition(condition, rule, bound, left, right):
                return f"`{rule.name}`: its condition {condition} does not hold"
        return None

    def condition(self, text: str, rule: Rule, bound: Bound, left: int, right: int) -> bool:
        if text == "(as-inferred)":
            return self.inferred(self.sexp(rule.left), left) is not None
        if text.startswith("(contraction "):
            sides = ((self.sexp(rule.left), left), (self.sexp(rule.right), right))
            return same_products(self.proof.terms, *sides)
        return self.holds(self.sexp(text), bound, left)

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
        of_terms = name in (
            "type",
            "same-type",
            "scalar",
            "real",
            "tensors",
            "matrix",
            "stack-of",
            "lines-up-per-slice",
        )  # an integer elsewhere is an attribute
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
            case "matrix", [_]:
                return isinstance(types[0], Real) and types[0].shape.prefix is None and len(types[0].shape.axes) > 1
            case "without-axis", [name_of_axis, large, small]:
                return without_axis(name_of_axis, large, small)
            case "last-of", [str() as axis, Real(shape)]:
                return [a.name for a in shape.axes].index(axis) == len(shape.axes) - 1
            case "tensors", [_]:
                return tensors(types[0])
            case (("per-slice" | "per-slice-of" | "summed-out" | "stack-of" | "lines-up-per-slice"), _):
                return contraction_fact(str(name), arguments, types)
            case "length", [int() as term, axis, Linear() as length]:
                return axis_length(self.proof.terms[term].type, axis) == length
            case (("at-most" | "less" | "equal"), _):
                left, right = (self.dimension(a, bound) for a in arguments)
                return dimension_fact(str(name), left, right)
            case "entries", [ty, Fraction() as count]:
                return isinstance(ty, Real) and count != 0 and entries(ty) == count
            case _:
                return constant_fact(str(name), values)

    @staticmethod
    def dimension(sexp: Sexp, bound: Bound) -> object:
        """A dimension in a condition: a variable, or a number."""
        value = evaluate(sexp, bound, rational=False)
        return constant(value) if isinstance(value, int) else value

    def inferred(self, pattern: Sexp, index: int) -> Type | None:
        """The type that Core's typing rules give to a term whose parts, down the pattern, have the types that they
        give; None where a part declares another, and it matters."""
        term = self.proof.terms[index]
        if isinstance(pattern, str):
            return term.type
        given: list[Type] = []
        for p, c in zip(parts(pattern)[2], term.children, strict=True):
            ty = self.inferred(p, c)
            if ty is None:
                return None
            given.append(ty)
        declared = [self.proof.terms[c].type for c in term.children]
        if not names_are_idle(term.op, declared, given):
            return None
        found = infer(PRIMS[term.op], term.attrs, tuple(given), term.type, self.ends.before.modules)
        return None if isinstance(found, str) else found

    def argument(self, sexp: Sexp, bound: Bound, root: int) -> object:
        if isinstance(sexp, list):
            return None
        return root if sexp == "root" else bound.get(sexp)

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
        found = infer(PRIMS[op], given, tuple(types), cast("Type", declared), self.ends.before.modules)
        return None if isinstance(found, str) else found
