"""Both opinions on a proof together: the independent checker's, and that of sampling the rules it uses."""

from __future__ import annotations

from dataclasses import dataclass

from presk_rel.core.ir import Program
from presk_rel.egraph.checker import check
from presk_rel.egraph.proof import CongruenceStep, Proof, RuleStep
from presk_rel.egraph.rules import RULES
from presk_rel.exec.sampling import sample_rules


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reasons` are the checker's refusals and the disagreements of sampling; a proof is accepted when there are none.
    `sampled`: evaluations of both sides, by rule. `unsampled`: rules whose sides were undefined at every input
    tried."""

    reasons: tuple[str, ...]
    lemmas: int
    rule_steps: int
    congruences: int
    sampled: dict[str, int]

    @property
    def accepted(self) -> bool:
        return not self.reasons

    @property
    def unsampled(self) -> tuple[str, ...]:
        return tuple(rule for rule, count in self.sampled.items() if count == 0)

    def summary(self) -> str:
        if not self.accepted:
            shown = [f"  {reason}" for reason in self.reasons[:20]]
            more = [f"  … and {len(self.reasons) - 20} more"] if len(self.reasons) > 20 else []
            return "\n".join(["NOT verified:", *shown, *more])
        counts = f"{self.rule_steps} rule instances and {self.congruences} congruences in {self.lemmas} lemmas"
        rules = len(self.sampled) - len(self.unsampled)
        samples = f"{rules} rules sampled, {sum(self.sampled.values())} evaluations over balls overlap"
        text = f"verified: {counts} checked; {samples}"
        return text + (f"; not sampled: {', '.join(self.unsampled)}" if self.unsampled else "")


def verify_proof(proof: Proof, before: Program, after: Program) -> Verdict:
    """Check `proof` between the differentiated program and the optimized one, and sample its rules."""
    refusals = [str(r) for r in check(proof, RULES, before, after)]
    sampled = [] if refusals else sample_rules(proof, before.modules)
    disagreements = [f"rule `{s.rule}` is false: {s.disagreement}" for s in sampled if s.disagreement is not None]
    lemmas = [lemma for part in proof.parts for lemma in part.lemmas]
    steps = [step for lemma in lemmas for step in lemma.steps]
    return Verdict(
        (*refusals, *disagreements),
        len(lemmas),
        sum(isinstance(s, RuleStep) for s in steps),
        sum(isinstance(s, CongruenceStep) for s in steps),
        {s.rule: s.evaluations for s in sampled},
    )
