"""E2003 … E2030, E9002: what is wrong in the body of a function."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage, Kind


def _page(code: str, title: str, meaning: str, failing: str, fixed: str, kind: Kind = "user error") -> CodePage:
    return CodePage(code, "error", kind, title, meaning, failing, fixed)


_LINEAR = (
    "module Linear{In Out : dim} {\n  param w : ℝ[In, Out]\n  fn apply(x : ℝ[..., In]) -> ℝ[..., Out] = x · w\n"
    "  fn norm() -> ℝ[] = sum(w^2)\n}\n"
)

PAGES: Final = (
    _page(
        "E2003",
        "types that do not agree",
        "An argument, operand or result has another type than its place takes. Axes of different names never agree; "
        "lengths must be equal for every value of their dimensions, and the counterexample is the smallest values at "
        "which they are not. Real tensors are combined along their last axes, or by name where every axis of the "
        "smaller one is named.",
        "dim D\nfn f(x : ℝ[model: D], y : ℝ[model: 4*D]) -> ℝ[model: D] = x + y\n",
        "dim D\nfn f(x : ℝ[model: D], y : ℝ[model: D]) -> ℝ[model: D] = x + y\n",
    ),
    _page(
        "E2005",
        "operands that do not mix",
        "Numbers of two hyperparameter types do not mix; nor do reals with hyperparameters, indices or masks. "
        "real(n), (n : ℝ) and real(t) inject numbers and indices into the reals; a mask enters no arithmetic.",
        "fn f(x : ℝ[3], n : nat) -> ℝ[3] = x / n\n",
        "fn f(x : ℝ[3], n : nat) -> ℝ[3] = x / real(n)\n",
    ),
    _page(
        "E2006",
        "axes that cannot be regrouped",
        "`split` takes two lengths whose product is the axis' length for every value; `merge` joins two axes that "
        "stand beside each other, in that order.",
        "fn f(x : ℝ[model: 12]) = split(axis model, heads: 5, hd: 2, x)\n",
        "fn f(x : ℝ[model: 12]) = split(axis model, heads: 6, hd: 2, x)\n",
    ),
    _page(
        "E2008",
        "axis that is not there",
        "An axis is selected by a name that the tensor has not. Axes get their names from the types of parameters and "
        "results, and from ascriptions.",
        "fn f(x : ℝ[batch: 2, 3]) -> ℝ[batch: 2] = mean(axis model, x)\n",
        "fn f(x : ℝ[batch: 2, model: 3]) -> ℝ[batch: 2] = mean(axis model, x)\n",
    ),
    _page(
        "E2009",
        "result with one axis name twice",
        "The result of an operation would have two axes of one name. Rename one by an ascription, or name the "
        "result's axes.",
        "fn f(x : ℝ[seq: 2, 3], y : ℝ[3, seq: 2]) -> ℝ[] = sum(x · y)\n",
        "fn f(x : ℝ[seq: 2, 3], y : ℝ[3, seq2: 2]) -> ℝ[] = sum(x · y)\n",
    ),
    _page(
        "E2012",
        "no gradient",
        "`grad` takes a function of one argument whose value is ℝ[], and the argument must have reals in it: a real "
        "tensor, a parameter tree, or a tuple with one. A lambda fixes the other arguments of a function.",
        "fn g(x : ℝ[3], y : ℝ[3]) -> ℝ[] = sum(x * y)\nfn f(x : ℝ[3]) -> ℝ[3] = grad(g)(x)\n",
        "fn g(x : ℝ[3], y : ℝ[3]) -> ℝ[] = sum(x * y)\nfn f(x : ℝ[3]) -> ℝ[3] = grad(λ a. g(a, x))(x)\n",
    ),
    _page(
        "E2014",
        "selection outside its axis",
        "A slice lo..hi needs 0 ≤ lo ≤ hi ≤ the axis' length for every value of the dimensions. An index that lies "
        "outside at every value is refused as well; one that depends on the dimensions is checked when they are "
        "known.",
        "dim T\nfn f(x : ℝ[seq: T]) = x[seq: 1..T]\n",
        "dim T\nfn f(x : ℝ[seq: T + 1]) = x[seq: 1..T + 1]\n",
    ),
    _page(
        "E2017",
        "not an exponent",
        "The exponent of ^ is a natural number: a literal, a constant or what + - * / ^ make of them, up to a million "
        "(a thousand for hyperparameters). x^2^3 is x^8. x^y "
        "for a real y is exp(y * log(x)).",
        "fn f(x : ℝ[3], n : nat) -> ℝ[3] = x ^ n\n",
        "const N = 2\nfn f(x : ℝ[3]) -> ℝ[3] = x ^ N\n",
    ),
    _page(
        "E2018",
        "bound of a dimension exceeded",
        "A called function is declared for a `dim T <= N`, and this call's form for T is not at most N for every "
        "value.",
        "dim B\ndim T <= 8\nfn g(x : ℝ[seq: T]) -> ℝ[] = sum(x)\nfn f(x : ℝ[seq: B]) -> ℝ[] = g(x)\n",
        "dim B <= 8\ndim T <= 8\nfn g(x : ℝ[seq: T]) -> ℝ[] = sum(x)\nfn f(x : ℝ[seq: B]) -> ℝ[] = g(x)\n",
    ),
    _page(
        "E2020",
        "operator that has no meaning on values",
        "⊗, | and ∘ join strategies and alternatives in configuration blocks, and modules in module expressions. % is "
        "part of `static assert a % k == 0`.",
        "fn f(x : ℝ[3]) -> ℝ[3] = x ⊗ x\n",
        "fn f(x : ℝ[3]) -> ℝ[3] = x * x\n",
    ),
    _page(
        "E2021",
        "arguments that do not fit",
        "A call has too few or too many arguments, names a parameter that is not there or gives one twice, or uses an "
        "axis form that the function has not.",
        "fn g(x : ℝ[3], by : f64 = 0.5) -> ℝ[3] = x * real(by)\nfn f(x : ℝ[3]) -> ℝ[3] = g(x, of = 1)\n",
        "fn g(x : ℝ[3], by : f64 = 0.5) -> ℝ[3] = x * real(by)\nfn f(x : ℝ[3]) -> ℝ[3] = g(x, by = 1)\n",
    ),
    _page(
        "E2022",
        "not a function",
        "What stands before the parentheses, or after |>, is no function.",
        "fn f(x : ℝ[3]) -> ℝ[3] = x(2)\n",
        "fn f(x : ℝ[3]) -> ℝ[3] = x * 2\n",
    ),
    _page(
        "E2023",
        "not a value",
        "A module, type, file, effect or configuration block stands where a value is expected, or a value where a "
        "module is. Modules are compile-time only: a program calls their functions, and passes them where a module is "
        "expected. A default sees no other parameter.",
        _LINEAR + "fn f(net : Linear{3, 3}, x : ℝ[3]) -> ℝ[3] = x + net\n",
        _LINEAR + "fn f(net : Linear{3, 3}, θ : params net, x : ℝ[3]) -> ℝ[3] = x + net.apply(θ, x)\n",
    ),
    _page(
        "E2024",
        "type that cannot be inferred",
        "Nothing determines the type of a parameter, or a dimension of a called function. The parameters of lambdas, "
        "and those of functions that leave their types out, are inferred from their uses.",
        "fn f(x : ℝ[3]) -> ℝ[3] =\n  let g = λ a. a + 1\n  x\n",
        "fn f(x : ℝ[3]) -> ℝ[3] =\n  let g = λ a. a + 1\n  g(x)\n",
    ),
    _page(
        "E2025",
        "literal without meaning in an expression",
        "Strings and quantities with units belong to configuration blocks.",
        "fn f(x : ℝ[3]) -> ℝ[3] = x + 5ms\n",
        "fn f(x : ℝ[3]) -> ℝ[3] = x + 5\n",
    ),
    _page(
        "E2026",
        "pattern that does not fit",
        "A pattern of n names takes apart a tuple of n parts.",
        "fn f(x : ℝ[3]) -> ℝ[3] =\n  let (a, b) = x\n  a\n",
        "fn f(x : ℝ[3]) -> ℝ[3] =\n  let (a, b) = (x, 2)\n  a * b\n",
    ),
    _page(
        "E2027",
        "function that cannot go through a stack",
        "Through stack{L}(M), a function of M is applied L times, each time to the last result: its result must have "
        "the type of its first argument.",
        _LINEAR
        + "module Deep {\n  use blocks : stack{4}(Linear{3, 3})\n  fn apply(x : ℝ[3]) -> ℝ[] = blocks.norm()\n}\n",
        _LINEAR
        + "module Deep {\n  use blocks : stack{4}(Linear{3, 3})\n  fn apply(x : ℝ[3]) -> ℝ[3] = blocks.apply(x)\n}\n",
    ),
    _page(
        "E2028",
        "module without that function",
        "A module is asked for a function that it does not declare. A composition A ∘ B has `apply` only.",
        _LINEAR + "fn f(net : Linear{3, 3}, θ : params net, x : ℝ[3]) -> ℝ[3] = net.aply(θ, x)\n",
        _LINEAR + "fn f(net : Linear{3, 3}, θ : params net, x : ℝ[3]) -> ℝ[3] = net.apply(θ, x)\n",
    ),
    _page(
        "E2029",
        "no such field",
        "A parameter tree has the parameters and sub-modules of its module as fields; other values have none.",
        _LINEAR + "fn f(net : Linear{3, 3}, θ : params net) -> ℝ[] = sum(θ.b)\n",
        _LINEAR + "fn f(net : Linear{3, 3}, θ : params net) -> ℝ[] = sum(θ.w)\n",
    ),
    _page(
        "E2030",
        "not a default",
        "The default of a parameter is a number, a constant or a dimension, or operators on these, and its parameter "
        "declares the type of a value.",
        "fn f(x : ℝ[3], by = 0.5) -> ℝ[3] = x * by\n",
        "fn f(x : ℝ[3], by : ℝ = 0.5) -> ℝ[3] = x * by\n",
    ),
    _page(
        "E2031",
        "not a contraction",
        "In ein[out](a * b) every axis of every factor has a name, and every axis of the result is one of some factor.",
        "fn f(a : ℝ[i: 2, j: 3], b : ℝ[j: 3, k: 4]) = ein[i, m](a * b)\n",
        "fn f(a : ℝ[i: 2, j: 3], b : ℝ[j: 3, k: 4]) = ein[i, k](a * b)\n",
    ),
    _page(
        "E2032",
        "ambiguous relabelling",
        "When both factors of `ein` have an axis `seq`, and exactly one copy of it such as `seq2` is unmatched, the "
        "right factor's `seq` becomes that copy. Here more than one is unmatched.",
        "fn f(a : ℝ[seq: 2], b : ℝ[seq: 2]) = ein[seq, seq2, seq3](a * b)\n",
        "fn f(a : ℝ[seq: 2], b : ℝ[seq: 2]) = ein[seq, seq2](a * b)\n",
    ),
    _page(
        "E2033",
        "no head constants",
        "`split_heads` and `merge_heads` read the constants H and HD of the file that they stand in. `split` and "
        "`merge` say the lengths themselves.",
        "fn f(x : ℝ[seq: 2, model: 12]) = split_heads(x)\n",
        "const H = 3\nconst HD = 4\nfn f(x : ℝ[seq: 2, model: 12]) = split_heads(x)\n",
    ),
    _page(
        "E2034",
        "not a dropout rate",
        "The rate of `dropout` is a number of at least 0 and below 1, written out: the mask is scaled by 1/(1 - rate).",
        "fn f(x : ℝ[3], key : key) -> ℝ[3] uses Rand = dropout(1, key, x)\n",
        "fn f(x : ℝ[3], key : key) -> ℝ[3] uses Rand = dropout(0.1, key, x)\n",
    ),
    _page(
        "E2035",
        "axes for which a function has no meaning",
        "A function with axis parameters is checked for any axes, and once more for those of each call. Two axes of "
        "one tensor cannot have the same name then.",
        "fn f(axis a, x : ℝ[seq: 2, a: 3]) -> ℝ[seq: 2] = sum(axis a, x)\n"
        "fn g(x : ℝ[seq: 2, model: 3]) -> ℝ[seq: 2] = f(axis seq, x)\n",
        "fn f(axis a, x : ℝ[seq: 2, a: 3]) -> ℝ[seq: 2] = sum(axis a, x)\n"
        "fn g(x : ℝ[seq: 2, model: 3]) -> ℝ[seq: 2] = f(axis model, x)\n",
    ),
    _page(
        "E9002",
        "too large for this version",
        "A type, module expression or parameter tree has more parts or levels than the passes of presk walk.",
        "fn f(x : ℝ[3]) =\n" + "".join("  let x = (x, x)\n" for _ in range(12)) + "  x\n",
        "fn f(x : ℝ[3]) =\n  let x = (x, x)\n  x\n",
        "limit",
    ),
)
