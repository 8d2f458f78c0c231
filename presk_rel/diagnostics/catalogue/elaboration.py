"""W0001, E1004 … E1040, E2013, E2016: files, constants, dimensions, assertions, types, modules."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage
from presk_rel.diagnostics.diagnostic import Severity


def _page(
    code: str,
    title: str,
    meaning: str,
    failing: str,
    fixed: str,
    *,
    severity: Severity = "error",
    situation: bool = False,
) -> CodePage:
    return CodePage(code, severity, "user error", title, meaning, failing, fixed, situation=situation)


_SUM = "fn f(x : ℝ[{}]) -> ℝ[] = sum(x)\n"
_M = "module M{D : dim} {\n  param w : ℝ[D]\n}\n"

PAGES: Final = (
    _page(
        "W0001",
        "implicit dimension",
        "A name in a dimension position of a function's signature is declared nowhere. It is taken as a dimension of "
        "that function, found from its arguments at each call. A slip of the keyboard looks the same, so it is said.",
        _SUM.format("batch: N"),
        "dim N\n" + _SUM.format("batch: N"),
        severity="warning",
    ),
    _page(
        "E1004",
        "static assertion fails",
        "The condition does not hold for every natural value of its dimensions. The counterexample is the smallest "
        "one: the least sum of the dimensions, then the least by name. An assertion adds no fact: it is checked last, "
        "and nothing else may rely on it.",
        "dim T\nstatic assert T > 0\n",
        "dim T\nstatic assert T + 1 > 0\n",
    ),
    _page(
        "E1007",
        "not a linear dimension",
        "Dimensions are linear forms over symbols, with rational coefficients, so that their equality can be decided "
        "for all values. A product of two symbolic dimensions, and a division by one (which may be 0), are outside of "
        "that.",
        "dim D\ndim E\n" + _SUM.format("D*E"),
        "dim D\nconst E = 3\n" + _SUM.format("D*E"),
    ),
    _page(
        "E1020",
        "constant that is no natural number",
        "A constant is computed exactly from literals and earlier constants by + - * /, and the result is a natural "
        "number: 768 / 12 is 64, and 768 / 7 is none.",
        "const D = 768\nconst HD = D / 7\n",
        "const D = 768\nconst HD = D / 12\n",
    ),
    _page(
        "E1021",
        "constant of another type",
        "Constants are naturals, since they are what dimensions are made of. Other numbers are parameters of "
        "functions, with a default where there is a usual value.",
        "const rate : f64 = 1\n",
        "fn f(x : ℝ[3], rate : f64 = 0.1) -> ℝ[3] = x * real(rate)\n",
    ),
    _page(
        "E1022",
        "constant used before its declaration",
        "Constants are computed in order of declaration, own and imported ones.",
        "const A = B + 1\nconst B = 2\n",
        "const B = 2\nconst A = B + 1\n",
    ),
    _page(
        "E1023",
        "wrong --const",
        "`--const NAME=N` replaces a constant of the main file, `--const m.NAME=N` one of the file imported as m. The "
        "constant must exist, and N is a natural number up to 10^18.",
        "presk check f.psk --const W=3        with `const V = 10` and no constant W",
        "presk check f.psk --const V=3",
        situation=True,
    ),
    _page(
        "E1024",
        "file that cannot be read",
        "An imported file does not exist, may not be read, or is not UTF-8. The path is relative to the folder of the "
        "file that imports it.",
        'import "nowhere.psk" as m',
        'import "mlp.psk" as m        where mlp.psk stands beside this file',
        situation=True,
    ),
    _page(
        "E1025",
        "imports run in a circle",
        "A file imports another that leads back to it. Imports are elaborated first, so there would be no first one.",
        'a.psk: import "b.psk" as b        b.psk: import "a.psk" as a',
        'a.psk: import "c.psk" as c        b.psk: import "c.psk" as c',
        situation=True,
    ),
    _page(
        "E1026",
        "not a dimension",
        "Axis lengths, index bounds, counts of stacks and dimension arguments are built from naturals, constants, "
        "dims and type parameters by + - * /.",
        "dim D\n" + _SUM.format("D % 2"),
        "dim D\n" + _SUM.format("2*D + 1"),
    ),
    _page(
        "E1028",
        "length that is no natural number",
        "An axis length, index bound, count or dimension argument has a value that is negative or a fraction, or "
        "divides by 0.",
        "const D = 7\n" + _SUM.format("D / 2"),
        "const D = 8\n" + _SUM.format("D / 2"),
    ),
    _page(
        "E1029",
        "number out of range",
        "A dimension or constant is beyond 10^18, or a literal has more than a thousand digits before or after its "
        "point. No tensor is that long, and exact arithmetic on such numbers would not end.",
        _SUM.format("10000000000000000000"),
        _SUM.format("1000000000000000000"),
    ),
    _page(
        "E1030",
        "division that is not always exact",
        "A symbolic dimension is divided by a number that does not divide it for every value. Assertions add no "
        "facts; write the dividend as a multiple of a dimension for the quotient.",
        "dim D\nfn f(x : ℝ[D / 12]) -> ℝ[] = sum(x)\n",
        "dim HD\nfn f(x : ℝ[12*HD], y : ℝ[12*HD / 12]) -> ℝ[] = sum(x) + sum(y)\n",
    ),
    _page(
        "E1031",
        "wrong number of dimension or module arguments",
        "A module, or a function with type parameters, is given another number of arguments in braces than it "
        "declares; or `stack` is not written stack{L}(M); or something that takes none is given some.",
        _M + "module N {\n  use m : M{1, 2}\n}\n",
        _M + "module N {\n  use m : M{1}\n}\n",
    ),
    _page(
        "E1032",
        "leading axes out of place",
        "`...` (and a Shape parameter) stands for any number of leading axes: it is the first of a list of axes, and "
        "it has no place in the parameters of a module, whose axes must be known.",
        _SUM.format("3, ..."),
        _SUM.format("..., 3"),
    ),
    _page(
        "E1033",
        "axis name twice in one shape",
        "Axes are selected by name, so a shape has each name once. The second axis of a square takes another name; "
        "`seq2` beside `seq` is the usual one.",
        "dim T\n" + _SUM.format("seq: T, seq: T"),
        "dim T\n" + _SUM.format("seq: T, seq2: T"),
    ),
    _page(
        "E1034",
        "not a type",
        "A name stands where a type is expected and is none. Types are ℝ[…], idx[N][…], bool[…], nat, int, rat, f64, "
        "bool, key, params M, M{…}, tuples and aliases.",
        "const D = 3\nfn f(x : D) -> ℝ[] = sum(x)\n",
        "type D = ℝ[3]\nfn f(x : D) -> ℝ[] = sum(x)\n",
    ),
    _page(
        "E1035",
        "not a module",
        "A name stands where a module is expected and is none. In `params net`, net is a module or a module-typed "
        "parameter that stands before it in the same signature.",
        _M + "fn f(θ : params net, net : M{3}) -> params net = θ\n",
        _M + "fn f(net : M{3}, θ : params net) -> params net = θ\n",
    ),
    _page(
        "E1036",
        "parameter that is no real tensor",
        "What a module learns are real tensors.",
        "module M {\n  param t : idx[5][3]\n}\n",
        "module M {\n  param t : ℝ[3]\n}\n",
    ),
    _page(
        "E1037",
        "type out of place in a signature",
        "A function cannot give a module (modules are compile-time only), and an axis parameter has no type.",
        _M + "fn f(net : M{3}, x : ℝ[3]) -> M{3} = x\n",
        _M + "fn f(net : M{3}, θ : params net) -> params net = θ\n",
    ),
    _page(
        "E1039",
        "assertion that could not be decided",
        "The solver gave up on a static assertion within its limit. That is no proof, so it is an error and not "
        "silence.",
        "static assert on dimensions with very large coefficients",
        "the same assertion with smaller ones, or split in two",
        situation=True,
    ),
    _page(
        "E1040",
        "not an assertion",
        "A static assertion is a == b, a <= b, a < b, a >= b, a > b, or a % k == 0 with a positive number k, over "
        "dimensions.",
        "dim D\nstatic assert D % 2 == 1\n",
        "dim D\nstatic assert (2*D + 2) % 2 == 0\n",
    ),
    _page(
        "E2013",
        "not an initializer",
        "The `init =` clause has a vocabulary of four: zeros, ones, normal(std = s) with a decimal literal s, "
        "xavier_uniform. Without the clause a parameter starts at zero.",
        "module M {\n  param w : ℝ[3]  init = orthogonal\n}\n",
        "module M {\n  param w : ℝ[3]  init = normal(std = 0.02)\n}\n",
    ),
    _page(
        "E2016",
        "recursion",
        "A function calls itself, a module includes itself, or a type mentions itself, directly or through others. "
        "Iteration is a stack: `use blocks : stack{N}(M)`.",
        "fn f(x : ℝ[3]) -> ℝ[3] = g(x)\nfn g(x : ℝ[3]) -> ℝ[3] = f(x)\n",
        "fn f(x : ℝ[3]) -> ℝ[3] = g(x)\nfn g(x : ℝ[3]) -> ℝ[3] = x * 2\n",
    ),
)
