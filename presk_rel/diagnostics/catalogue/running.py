"""E7003 … E7020: running an entry. What shows them is a command, not a program, so their examples are situations."""

from __future__ import annotations

from typing import Final, Literal

from presk_rel.diagnostics.catalogue.page import CodePage


def _page(
    code: str,
    title: str,
    meaning: str,
    failing: str,
    fixed: str,
    kind: Literal["user error", "limit"] = "user error",
) -> CodePage:
    return CodePage(code, "error", kind, title, meaning, failing, fixed, situation=True)


PAGES: Final = (
    _page(
        "E7003",
        "undefined at the dimensions given",
        "An operation of the entry, or of a function it calls, has no value at the dimensions given, whatever the"
        " arguments: a mean over no element, a selection outside its axis, embed, cross_entropy, argmax or sample with "
        "no index to choose, their derivatives, or a parameter whose type has no value (an index below 0). It is "
        "found from the types, before anything is computed.",
        "presk run mlp.psk --entry mse --dim B=0 --dim D=4        (the mean of no errors)",
        "presk run mlp.psk --entry mse --dim B=2 --dim D=4",
    ),
    _page(
        "E7004",
        "no value",
        "An operation has no value at these arguments: a division by zero, the square root of a negative number, "
        "the logarithm of a number that is not positive, a softmax of which the mask refuses every position. The "
        "message names the operation and the entry. Nothing "
        "is guessed: where it is not certain, the precision is raised first, and E7005 says when that did not "
        "help.",
        "presk run f.psk --entry f --arg x=0          with `fn f(x : ℝ[]) -> ℝ[] = log(x)`",
        "presk run f.psk --entry f --arg x=0.5",
    ),
    _page(
        "E7005",
        "not decided at the cap of precision",
        "The working precision was doubled up to the cap, and still something was not decided: the sign of an "
        "operand of a function with a jump (the derivatives of relu and abs), a choice (argmax, sample, a comparison), "
        "whether a divisor is 0, or to which"
        " decimal a result rounds. The message names the place, the value there, and the precision reached. Very "
        "often it is an exact tie, which no precision decides; ties of rational values are decided exactly. With "
        "`--kernel mpmath` it also says that a number is beyond what that kernel can take.",
        "presk run f.psk --entry g --arg x=2          with the gradient of relu at sin(x)^2 + cos(x)^2 - 1, which is 0",
        "presk run f.psk --entry g --arg x=2 --max-bits 100000, or an argument that is off the tie",
        "limit",
    ),
    _page(
        "E7006",
        "does not fit in memory",
        "The numbers a run holds at its peak were counted before it began, and do not fit in the memory a run may"
        " take (four fifths of the machine's). The message gives the count, the bytes, the limit and what holds "
        "most of them.",
        "presk run mlp.psk --entry mse_grad --dim B=2 --dim D=1000000",
        "presk run mlp.psk --entry mse_grad --dim B=2 --dim D=64, or fewer --bits, or --executor torch",
        "limit",
    ),
    _page(
        "E7010",
        "no such parameter or dimension",
        "`--arg` or `--dim` names something the entry does not have. The message lists what it has.",
        "presk run mlp.psk --entry mse --arg z=1 --dim B=2 --dim D=4",
        "presk run mlp.psk --entry mse --arg x=@x.npy --dim D=4",
    ),
    _page(
        "E7011",
        "a literal that cannot be read",
        "The value of `--arg NAME=VALUE` is a number, `true` or `false`, a list in brackets, a tuple in "
        "parentheses, or `@file`. Numbers are exact rationals, of at most 4,000 digits and an exponent of at most"
        " 10,000.",
        "presk run f.psk --entry f --arg 'x=[1, 2'",
        "presk run f.psk --entry f --arg 'x=[1, 2]'",
    ),
    _page(
        "E7012",
        "a file of arguments or results that cannot be read or written",
        "`@file` takes .npy, .npz, .safetensors and .json; `--out` writes .npz and .safetensors. Floats of at "
        "most 64 bits, integers and booleans are taken exactly; nothing else is.",
        "presk run f.psk --entry f --arg x=@notes.txt",
        "presk run f.psk --entry f --arg x=@x.npy",
    ),
    _page(
        "E7013",
        "an argument of another shape or kind",
        "The argument does not have the type of its parameter: another number of axes, another length, booleans "
        "for reals, an index beyond its bound, an entry that is no real number (NaN, an infinity), a field of the"
        " parameter tree that is missing.",
        "presk run f.psk --entry f --arg 'x=[[1, 2]]'          with `x : ℝ[N]`",
        "presk run f.psk --entry f --arg 'x=[1, 2]'",
    ),
    _page(
        "E7014",
        "an argument that has to be given",
        "Arguments that are not given are their declared defaults, or drawn from `--seed`: parameter trees, reals, "
        "indices, masks and keys. A hyperparameter without a default is not: its meaning is the author's. Nor is an "
        "irrational default (`sqrt(2)`), which has no exact value.",
        "presk run f.psk --entry f          with `fn f(n : nat) -> ℝ[] = real(n)`",
        "presk run f.psk --entry f --arg n=3",
    ),
    _page(
        "E7015",
        "dimensions that contradict each other",
        "Two arguments, or an argument and `--dim`, give one dimension two values; or no natural number fits. The"
        " message says where each comes from.",
        "presk run mlp.psk --entry mse --arg 'x=[[1, 2]]' --arg 'y=[[1, 2]]' --dim D=3",
        "presk run mlp.psk --entry mse --arg 'x=[[1, 2]]' --arg 'y=[[1, 2]]'",
    ),
    _page(
        "E7016",
        "a dimension without a value",
        "The entry's dimensions come from `--dim` and from the shapes of the arguments given. This one comes from"
        " neither.",
        "presk run mlp.psk --entry mse_grad --dim B=2",
        "presk run mlp.psk --entry mse_grad --dim B=2 --dim D=4",
    ),
    _page(
        "E7017",
        "a dimension that cannot be",
        "At the dimensions given, a length is no natural number (`D / 12` at D = 5), or a dimension is beyond the"
        " bound its declaration states.",
        "presk run f.psk --entry f --dim T=2000          with `dim T <= 1024`",
        "presk run f.psk --entry f --dim T=1024",
    ),
    _page(
        "E7018",
        "no such entry",
        "`--entry` names a function of the program: `f`, `M.apply`, `M.init`. Names that are close are suggested.",
        "presk run mlp.psk --entry mse_grd",
        "presk run mlp.psk --entry mse_grad",
    ),
    _page(
        "E7019",
        "an entry that cannot be run",
        "A parameter or the result of the entry is a function value, which has no literal and no digits; or its "
        "calls never end.",
        "presk run f.psk --entry twice          with `fn twice(f) = …`",
        "presk run f.psk --entry g          with a function that applies it",
        "limit",
    ),
    _page(
        "E7020",
        "an option out of its range",
        "`--bits` is from 24 to 10,000, `--digits` at most ⌊bits·log₁₀ 2⌋, `--max-bits` at least `--bits`, "
        "`--seed` a natural below 2^64.",
        "presk run mlp.psk --entry mse --bits 12",
        "presk run mlp.psk --entry mse --bits 24",
    ),
)
