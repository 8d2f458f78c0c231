"""E00xx: reading a file, its characters and its grammar."""

from __future__ import annotations

from typing import Final

from presk_rel.diagnostics.catalogue.page import CodePage

_NESTED: Final = "const A = " + "(" * 201 + "1" + ")" * 201 + "\n"

PAGES: Final = (
    CodePage(
        "E0001",
        "error",
        "user error",
        "unexpected character",
        "The character is no part of the language outside strings and comments. Signs that look alike are told apart: "
        'the contraction is `·` (U+00B7) or `@`, the minus is `-`, strings are written with `"`.',
        "const A = 2 × 3\n",
        "const A = 2 * 3\n",
    ),
    CodePage(
        "E0002",
        "error",
        "user error",
        "syntax error",
        "The text does not follow the grammar here. The message names what could have stood in this place. A "
        "declaration, a member and an item of a configuration block end with their line; an expression goes on only "
        "where the next line starts with an operator that cannot begin one, which `-` can. Inside brackets line breaks "
        "do not count.",
        "const A = 2 +\n  3\n",
        "const A = 2\n  + 3\n",
    ),
    CodePage(
        "E0003",
        "error",
        "user error",
        "unterminated string",
        'A string ends with `"` on the line it starts. A line break inside it is written `\\n`.',
        'import "mlp.psk as ff\n',
        'import "mlp.psk" as ff\n',
    ),
    CodePage(
        "E0004",
        "error",
        "user error",
        "unbalanced bracket",
        "A bracket is never closed, is closed by the wrong sign, or closes nothing. The place shown is where it opens: "
        "it was still open where the next declaration starts.",
        "fn f(x : ℝ[2] -> ℝ[2] =\n  x\n",
        "fn f(x : ℝ[2]) -> ℝ[2] =\n  x\n",
    ),
    CodePage(
        "E0005",
        "error",
        "limit",
        "nesting too deep",
        "Brackets, prefix operators, powers, lambdas and chains of calls may nest 200 levels. Chains of `let` and of "
        "other binary operators may be as long as you like: give the parts names.",
        _NESTED,
        "const A = (1)\n",
    ),
    CodePage(
        "E0006",
        "error",
        "user error",
        "unknown escape in a string",
        'The escapes are `\\"`, `\\\\`, `\\n` and `\\t`.',
        'import "models\\mlp.psk" as ff\n',
        'import "models/mlp.psk" as ff\n',
    ),
    CodePage(
        "E0007",
        "error",
        "user error",
        "malformed number",
        "A number is digits, a decimal (`0.02`, `3e-4`), or one of these directly followed by a unit of letters "
        "(`5ms`, `204GB/s`). Nothing else may touch it: a product is written with `*`.",
        "const A = 1_000\n",
        "const A = 1000\n",
    ),
    CodePage(
        "E0008",
        "error",
        "user error",
        "not a text file",
        "A source file is UTF-8 text without zero bytes.",
        "A file saved in Latin-1: the byte 0xE9 for `é` is not UTF-8.",
        "The same file saved as UTF-8.",
        situation=True,
    ),
    CodePage(
        "E0009",
        "error",
        "limit",
        "file too large",
        "A source file has at most 10 MB.",
        "A generated program of 12 MB in one file.",
        'The program split into files that one file imports: `import "part1.psk" as p1`.',
        situation=True,
    ),
    CodePage(
        "E0010",
        "error",
        "user error",
        "cannot read the file",
        "There is no such file, it is a folder or a device, or you may not read it.",
        "`presk check model.psk` in a folder without `model.psk`.",
        "`presk check examples/mlp.psk`, with the path of a file that exists.",
        situation=True,
    ),
    CodePage(
        "E0011",
        "error",
        "limit",
        "name too long",
        "A name has at most 1000 characters.",
        f"dim {'x' * 1001}\n",
        f"dim {'x' * 1000}\n",
    ),
)
