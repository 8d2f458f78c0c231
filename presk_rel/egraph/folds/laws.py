"""The laws by which one fold becomes another: named, as rewrite rules are. A step of a proof (`proof.FoldStep`) says
which it uses; the checker reads folds up to these laws, and only these (`egraph.denote_folds`)."""

from __future__ import annotations

FOLD_LAWS: dict[str, str] = {
    "fold.unread-operand": "an operand that the body does not read may be left out",
    "fold.same-operand": "an operand that is given twice may be given once",
    "fold.invariant-code": "what a body computes from extras and constants alone is the same in every iteration, so it "
    "may be computed before the fold and be an extra",
    "fold.unread-stack": "a stack of accumulators that nothing reads need not be kept",
    "fold.unread-part": "a part of the accumulator that neither the rest of the program nor another part reads may be "
    "left out",
    "fold.same-part": "parts of the accumulator that start equal and are computed alike are equal in every iteration",
    "fold.invariant-part": "a part of the accumulator that every iteration hands on as it is stays what it was",
    "fold.recompute": "what an iteration of a fold computed, and a stack keeps, can be computed again from the same "
    "slices, the accumulator before the iteration, and the extras",
}
"""Every law by its name."""
