"""Names that mean something elsewhere: in Python, in torch, in generated code, to TeX, to a reader. Whatever they are,
digits, generated code, relations and equations are the same up to names, the export agrees, and no text of a program is
ever run."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import count, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from presk_rel.core.ir import Function
from presk_rel.core.printer import print_program
from presk_rel.core.reader import load
from presk_rel.diagnostics import Diagnostics
from presk_rel.elab.ty import Hyper
from presk_rel.exec.exact.run import Options
from presk_rel.exec.literals import Node
from presk_rel.exec.values import Tensor, leaves
from presk_rel.notation.latex_style import latex_text
from presk_rel.rules.facts_io import read_facts, write_facts
from presk_rel.rules.program import rule_program
from presk_rel.session import Request, Session
from tests.exec.oracle import texts
from tests.export.test_conformance import _doubles, conforms  # noqa: F401  a fixture
from tests.notation.texts import after_ad, compiles, elab

KEYWORDS = "class def return None True yield async match lambda import_ pass with global nonlocal del is in not"
BUILTINS = "print eval exec __import__ open input compile globals getattr type_ id range list dict tuple object"
DUNDERS = "__init__ __class__ __del__ __builtins__ __name__ __dict__ __call__ __slots__ _ __ ___x"
MODULES = "forward parameters training train state_dict register_buffer T_destination modules double half self"
TORCH = "torch nn F math matmul_ einsum stack_ where nan inf pi_ numpy np device"
GENERATED = "v0 f1 c2 x0 t1 k0 out0 args kwargs layer h net tree i θ_ sub_tree call_method on_meta Method Compose ct g0"
UNICODE = "é ñ Å K fi ﬁ a а x 𝐱 µ μ σ2 ŷ x̂ l I O ℓ 名前 नमस्ते ß ſ ᵢ x_ᵢ Ω ª"
"""Of one name, every other use is in NFD: é, ñ, ŷ and Å are then written in two parts."""
TEX = "a_b alpha frac input_tex newcommand begin"
ROLES = (
    *("const", "dim", "module", "dims", "rows", "cols", "weight", "bias", "method", "local", "outer", "field", "inner"),
    *("entry", "tree", "data", "number", "axis", "value", "function", "point", "gradient", "alias"),
)
WORDS = (
    *(
        "module",
        "param",
        "params",
        "use",
        "fn",
        "const",
        "dim",
        "type",
        "import",
        "as",
        "static",
        "assert",
        "optimizer",
    ),
    *("training", "inference", "effect", "let", "uses", "init", "axis", "idx", "ein", "_"),
)
"""Presk's own, which are no names; and `_`, which stands for none."""


def names() -> list[str]:
    words = " ".join((KEYWORDS, BUILTINS, DUNDERS, MODULES, TORCH, GENERATED, UNICODE, TEX)).split()
    return list(dict.fromkeys(unicodedata.normalize("NFC", w) for w in words if w not in WORDS))


NAMES = names()

PROGRAM = """\
const {const} : nat = 3
dim {dim}
type {alias} = ℝ[{axis}: {dim}, {const}]

module {module}{{{dims} : dim}} {{
  param {weight} : ℝ[{rows}: {dims}, {cols}: {dims}]  init = xavier_uniform
  param {bias} : ℝ[{dims}]  init = normal(std = 0.5)
  fn apply({data} : ℝ[..., {dims}]) -> ℝ[..., {dims}] =
    let {local} = {data} · ein[{cols}, {rows}]({weight})
    tanh({local}) * {bias}
  fn {method}({data} : ℝ[..., {dims}]) -> ℝ[..., {dims}] = apply({data}) + {bias}
}}

module {outer} {{
  use {field} : stack{{2}}({module}{{{const}}})
  use {inner} : {module}{{{const}}}
  fn apply({data} : ℝ[..., {const}]) -> ℝ[..., {const}] = {inner}.{method}({field}.{method}({field}.apply({data})))
}}

fn {entry}({tree} : params {outer}, {data} : {alias}, {number} : f64 = 0.5) -> ℝ[] =
  let {value} = {outer}.apply({tree}, {data})
  let {function} = λ {point}. {point} * {value} + sum({tree}.{field}.{bias})
  mean({function}({value})^2) * real({number})

fn {gradient}({tree} : params {outer}, {data} : {alias}) -> (params {outer}, {alias}) =
  (grad(λ {point}. {entry}({point}, {data}))({tree}), grad(λ {local}. {entry}({tree}, {local}))({data}))
"""


class Spelled:
    """A name, written in NFC and NFD by turns."""

    def __init__(self, name: str) -> None:
        self.forms: Iterator[str] = cycle([name, unicodedata.normalize("NFD", name)])

    def __format__(self, _: str) -> str:
        return next(self.forms)


def named(folder: Path, roles: dict[str, str]) -> Path:
    path = folder / "program.psk"
    path.write_text(PROGRAM.format(**{role: Spelled(n) for role, n in roles.items()}), encoding="utf-8")
    return path


PLAIN = dict(zip(ROLES, (f"n{i}" for i in count(100)), strict=False))
REQUEST = Request(dims={})


def results(session: Session, roles: dict[str, str]) -> dict[str, Any]:
    request = Request(dims={roles["dim"]: 2}, optimize=False)
    entry = roles["gradient"]
    exact = session.run_exact(entry, request, Options(bits=64))
    emitted = session.run_torch(entry, request, "f64", "cpu")
    made = [leaf.data.tobytes() for _, leaf in leaves(emitted.value) if isinstance(leaf, Tensor)]
    return {
        "digits": texts(exact.value),
        "bits": made,
        "code": words(emitted.source),
        "relations": {name: len(rows) for name, rows in session.input_facts().items() if name != "watched"},
        "equations": [len(s.equations) for s in elab(session) + after_ad(session)],
    }


def words(source: str) -> list[str]:
    """What generated code consists of, without its comments and texts: identifiers, in order."""
    return [n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(ast.parse(source)) if is_name(n)]  # type: ignore[union-attr]


def is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name | ast.Attribute)


@cache
def plain(folder: Path) -> dict[str, Any]:
    return results(Session(str(named(folder, PLAIN))), PLAIN)


def given(f: Function) -> dict[str, Node]:
    """A number where one is asked for."""
    return {p.name: np.array(Fraction(1, 2)) for p in f.params if isinstance(p.type, Hyper)}


@pytest.mark.parametrize(
    "start", [pytest.param(i, marks=pytest.mark.slow if i % 8 else (), id=NAMES[i]) for i in range(len(NAMES))]
)
def test_names_mean_nothing(start: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every name in every role, beside its neighbours in the table."""
    roles = {role: NAMES[(start + j) % len(NAMES)] for j, role in enumerate(ROLES)}
    path = named(tmp_path, roles)
    session = Session(str(path))
    assert {d.code for d in session.check()} <= {"W1005"}
    found, expected = results(session, roles), plain(tmp_path_factory.getbasetemp())
    for what, value in found.items():
        assert value == expected[what], what
    conforms(path, tmp_path, [roles["gradient"], roles["entry"]], {}, lambda f: ({roles["dim"]: 2}, given(f)))
    write_facts(tmp_path, rule_program(), session.input_facts())
    rows = {name: [tuple(r) for r in rows] for name, rows in session.input_facts().items()}
    assert {n: r for n, r in read_facts(tmp_path, rule_program()).items() if r} == {n: r for n, r in rows.items() if r}
    core = load(print_program(session.core), "t.core", Diagnostics())
    assert core is not None and print_program(core) == print_program(session.core)
    compiles(latex_text(elab(session) + after_ad(session), standalone=True), tmp_path)


SENTINEL = "presk_was_here"
STRINGS = (
    rf"\"\"\"\nimport os\nos.mkdir('{SENTINEL}')\n\"\"\"",
    rf"'''\nopen('{SENTINEL}', 'w')\n'''",
    f"{{__import__('os').mkdir('{SENTINEL}')}}",
    rf"\\\nraise SystemExit  # {SENTINEL}",
    r"\t%s{}\\input{/etc/passwd}\n\n\\end{document}",
    "\u2028\u2029\x85import os",
)
BLOCKS = """
fn loss(θ : params {outer}, batch : {alias}) -> ℝ[] = {entry}(θ, batch)

optimizer adamw {{
  lr : f64 = 1e-3
}}

training run {{
  model     = {outer}
  objective = loss
  optimizer = adamw
  data      = stream "{text}" |> batch(B = 2)
  checkpoint every 10 steps to "{text}"
}}
"""


@pytest.mark.parametrize("text", STRINGS, ids=range(len(STRINGS)))
def test_strings_stay_texts(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In exported comments, in relations, in what is printed; here the axis of the batch has to be `batch`."""
    monkeypatch.chdir(tmp_path)
    roles = {**PLAIN, "axis": "batch", "dim": "B"}
    path = named(tmp_path, roles)
    path.write_text(path.read_text(encoding="utf-8") + BLOCKS.format(**roles, text=text), encoding="utf-8")
    session = Session(str(path))
    assert {d.code for d in session.check()} <= {"W0002"}
    source = session.exported().source
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign, ast.Assert)
    first, *rest = ast.parse(source).body
    assert isinstance(first, ast.Expr) and all(isinstance(node, kinds) for node in rest)
    conforms(path, tmp_path, ["loss"], {}, lambda _: ({"B": 2}, {}))
    write_facts(tmp_path, rule_program(), session.input_facts())
    read = read_facts(tmp_path, rule_program())
    assert all(sorted(map(tuple, rows)) == sorted(read[name]) for name, rows in session.input_facts().items())
    compiles(latex_text(elab(session), standalone=True), tmp_path)
    assert not (tmp_path / SENTINEL).exists()
