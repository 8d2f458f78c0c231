"""E9101 … E9130: the rule language, its engines and its proofs. Users meet them in `presk query` and `--rules`.

The examples up to E9115 are rule programs (`tests/rules/test_catalogue.py` runs them); for the rest of presk they count
as situations, since they are not programs in Presk.
"""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage, Kind


def _page(code: str, title: str, meaning: str, failing: str, fixed: str, kind: Kind = "user error") -> CodePage:
    return CodePage(code, "error", kind, title, meaning, failing, fixed, situation=True)


PAGES: Final = (
    _page(
        "E9101",
        "rules that cannot be read",
        "The text is not in the rule language: Soufflé's `.decl`, `.type`, `.input`, `.output`, `.include`, facts and "
        "rules. A name that Soufflé reserves, or cannot read, may not be declared either.",
        ".decl p(x:number)\np(x) :- p(x)",
        ".decl p(x:number)\np(x) :- p(x).",
    ),
    _page(
        "E9102",
        "rules beyond a limit",
        "A term nests deeper than 100 levels, `;` multiplies out to more than 256 alternatives, a relation has more "
        "than 20 columns, or includes nest deeper than 64 files.",
        ".decl p(x:number)\np(" + "-(" * 150 + "x" + ")" * 150 + ") :- p(x).",
        ".decl p(x:number)\np(-x) :- p(x).",
        "limit",
    ),
    _page(
        "E9103",
        "an included file that cannot be read",
        "`.include` looks beside the file that says it, and then in the folders of presk's own rules.",
        '.include "no-such-file.dl"',
        ".decl p(x:number)",
    ),
    _page(
        "E9104",
        "includes that go in a circle",
        "A file includes itself, possibly through others.",
        'a.dl has `.include "b.dl"`, and b.dl has `.include "a.dl"`',
        "what both need is in c.dl, and both include that",
    ),
    _page(
        "E9105",
        "a declaration that clashes",
        "A relation, a type or a column is declared twice, or a type is not made of `number` or of `symbol` alone.",
        ".decl p(x:number)\n.decl p(x:symbol)",
        ".decl p(x:number)\n.decl q(x:symbol)",
    ),
    _page(
        "E9106",
        "an unknown relation",
        "Every relation needs a `.decl`. `presk query --relations` lists those of the program.",
        ".decl p(x:number)\np(x) :- q(x).",
        ".decl p(x:number)\n.decl q(x:number)\np(x) :- q(x).",
    ),
    _page(
        "E9107",
        "the wrong number of arguments",
        "A relation is used with another number of columns than it is declared with, or a function with another number "
        "of arguments than it takes.",
        ".decl p(x:number)\np(x) :- p(x, _).",
        ".decl p(x:number)\np(x) :- p(x).",
    ),
    _page(
        "E9108",
        "a number for a symbol, or a symbol for a number",
        "Columns have types, variables take theirs from the columns they stand in, and arithmetic is on numbers.",
        ".decl p(x:number)\n.decl q(x:symbol)\np(x) :- q(x).",
        ".decl p(x:number)\n.decl q(x:symbol)\np(strlen(x)) :- q(x).",
    ),
    _page(
        "E9109",
        "a variable without a value",
        "Each variable must be an argument of a relation that is not negated, or equal to something that has a value. "
        "`_` has no value at all, so it stands only in relations of a body.",
        ".decl p(x:number)\n.decl q(x:number)\np(x) :- !q(x).",
        ".decl p(x:number)\n.decl q(x:number)\n.decl all(x:number)\np(x) :- all(x), !q(x).",
    ),
    _page(
        "E9110",
        "a relation that depends on its own absence",
        "Negation and aggregates need the relation they are about complete, so it may not depend on the rule's own.",
        ".decl p(x:number)\n.decl q(x:number)\np(x) :- q(x), !p(x).",
        ".decl p(x:number)\n.decl q(x:number)\n.decl r(x:number)\np(x) :- q(x), !r(x).",
    ),
    _page(
        "E9111",
        "an aggregate that could be read in two ways",
        "The variable that an aggregate ranges over also stands outside it; or `_` stands in a `count` or `sum` over "
        "more than one plain relation, where Soufflé does not count it; or an aggregate stands in a head.",
        ".decl p(x:number, y:number)\n.decl q(n:number)\nq(n) :- n = count : { p(x, _), p(_, x) }.",
        ".decl p(x:number, y:number)\n.decl q(n:number)\nq(n) :- n = count : { p(x, y), p(z, x) }.",
    ),
    _page(
        "E9112",
        "subsumption",
        "Soufflé's subsumption deletes rows again, so they could not be part of a proof. Say which row is best in a "
        "relation of its own.",
        ".decl p(x:number)\np(x) <= p(y) :- x < y.",
        ".decl p(x:number)\n.decl best(x:number)\nbest(x) :- p(x), y = max z : { p(z) }, x = y.",
    ),
    _page(
        "E9113",
        "a part of Soufflé that is not in the rule language",
        "Components, functors, pragmas, records, unsigned and floating-point numbers, and parameters of `.input` are "
        "not supported.",
        ".decl p(x:float)",
        ".decl p(x:number)",
        "limit",
    ),
    _page(
        "E9114",
        "two clauses of one name",
        "The bracketed name in the comment above a clause is what proofs show, so it names one clause only.",
        ".decl p(x:number)\n// [rule.a]\np(x) :- p(x).\n// [rule.a]\np(x) :- p(x), x > 1.",
        ".decl p(x:number)\n// [rule.a]\np(x) :- p(x).\n// [rule.b]\np(x) :- p(x), x > 1.",
    ),
    _page(
        "E9115",
        "a number beyond 32 bits",
        "Numbers of the rule language go from -2147483648 to 2147483647.",
        ".decl p(x:number)\np(2147483648).",
        ".decl p(x:number)\np(2147483647).",
    ),
    _page(
        "E9120",
        "facts that do not fit",
        "Rows are given for a relation that is not an input, or with other columns than it has, or a `.facts` file "
        "cannot be read.",
        "a line `3<tab>x` in the file r.facts of `.decl r(x:number)`",
        "a line `3`",
    ),
    _page(
        "E9121",
        "Soufflé is not installed",
        "Neither the environment's PRESK_SOUFFLE nor PATH has it. It is never needed: the embedded engine gives the "
        "same relations.",
        "presk query f.psk 'calls(f, g)' --engine souffle     where there is no Soufflé",
        "presk query f.psk 'calls(f, g)' --engine embedded",
    ),
    _page(
        "E9122",
        "Soufflé is too old",
        "Version 2.2 or newer is needed.",
        "presk query f.psk 'calls(f, g)' --engine souffle     with Soufflé 1.7",
        "presk query f.psk 'calls(f, g)' --engine embedded",
    ),
    _page(
        "E9123",
        "Soufflé failed",
        "It stopped with an error, which the message repeats, or took longer than ten minutes.",
        "presk query f.psk 'calls(f, g)' --engine souffle     where no temporary file can be written",
        "presk query f.psk 'calls(f, g)' --engine embedded",
    ),
    _page(
        "E9124",
        "symbols that Soufflé cannot represent",
        "Its files cannot hold a backslash, tab or line break, so presk escapes them; a rule that measures or orders "
        "symbols would see the escapes. The embedded engine has no such limit.",
        "presk query f.psk 'name(x), strlen(x) > 3' --engine souffle     with a tab in some name",
        "presk query f.psk 'name(x), strlen(x) > 3' --engine embedded",
        "limit",
    ),
    _page(
        "E9125",
        "nothing to prove",
        "A proof was asked of a row that does not hold.",
        "a proof of `p(2)` where only `p(1)` holds",
        "a proof of `p(1)`, or why `p(2)` is absent",
    ),
    _page(
        "E9126",
        "rules without an end",
        "Relations that depend on each other grew beyond ten million rows, or for more than a million rounds. Most "
        "often a rule counts upwards without a bound.",
        ".decl p(x:number)\np(0).\np(x + 1) :- p(x).",
        ".decl p(x:number)\np(0).\np(x + 1) :- p(x), x < 100.",
        "limit",
    ),
    _page(
        "E9127",
        "too many ways to prove it",
        "The least proof is looked for among all instances of rules that could be part of one, and there are more than "
        "two million of them. Rules that multiply a recursive relation with itself have this effect.",
        "a proof of `path(1, 2)` by `path(x, z) :- path(x, y), path(y, z).` over a graph of many cycles",
        "`path(x, z) :- path(x, y), edge(y, z).` gives the same rows",
        "limit",
    ),
    _page(
        "E9130",
        "a rule that divides by zero",
        "Guard the division: `y != 0` in the same body is always checked first.",
        ".decl p(x:number)\n.decl q(x:number)\nq(0).\np(1 / x) :- q(x).",
        ".decl p(x:number)\n.decl q(x:number)\nq(0).\np(1 / x) :- q(x), x != 0.",
    ),
)
