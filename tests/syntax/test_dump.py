"""`presk dump --stage tokens|ast`."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from hypothesis import given, settings

from presk_rel.syntax import ast
from presk_rel.syntax.dump import ast_to_json, ast_to_text, tokens_to_json, tokens_to_text
from presk_rel.syntax.parser import parse, parse_expr, tokens

from . import trees


def test_tokens_as_text() -> None:
    text = 'fn f(x) =\n  x @ 5ms\n    + "a"\n'
    assert (
        tokens_to_text(tokens(text, "t.psk").tokens)
        == """\
1:1      fn
1:4      Ident f
1:5      (
1:6      Ident x
1:7      )
1:9      =
2:3      Ident x
2:5      ·
2:7      Quantity 5ms
3:5      +
3:7      Str a
3:10     Newline
4:1      End
"""
    )


def test_tokens_as_json() -> None:
    [number, *_] = tokens_to_json(tokens("3e-4", "t.psk").tokens, "t.psk")
    start, end = {"line": 1, "column": 1, "offset": 0}, {"line": 1, "column": 5, "offset": 4}
    assert number == {"kind": "Float", "text": "3e-4", "span": {"start": start, "end": end}}


def test_a_tree_as_text() -> None:
    text = "fn f(x : ℝ[b: B]) =\n  let y = x + 1 - x\n  let (z, _) = y\n  z\n"
    assert (
        ast_to_text(parse(text, "t.psk").file)
        == """\
File path='t.psk' @1:1
  decls: Fn name=f @1:1
    params: FnParam name=x @1:6
      type: RealType @1:10
        axes: Axis name=b @1:12
          dim: Name B @1:15
    body: Let @2:3
      bindings: Binding @2:3
        pattern: NamePattern name=y @2:7
        value: Binary @2:11
          first: Name x @2:11
          rest: Operand + @2:13
            right: Nat 1 @2:15
          rest: Operand - @2:17
            right: Name x @2:19
      bindings: Binding @3:3
        pattern: TuplePattern @3:7
          items: NamePattern name=z @3:8
          items: NamePattern name=_ @3:11
        value: Name y @3:16
      body: Name z @4:3
"""
    )


def test_a_tree_as_json() -> None:
    tree = ast_to_json(parse_expr("f(a = -1)").expr)
    assert tree["node"] == "Call" and tree["callee"]["text"] == "f"
    [arg] = tree["args"]
    assert (arg["node"], arg["name"]["text"], arg["value"]["node"]) == ("Named", "a", "Negate")
    assert arg["value"]["operand"]["span"]["start"] == {"line": 1, "column": 8, "offset": 7}


@given(trees.files)
@settings(max_examples=50)
def test_every_tree_has_its_names_and_fields_in_the_json(tree: ast.File) -> None:
    data = ast_to_json(tree)
    assert json.loads(json.dumps(data)) == data
    for decl, shown in zip(tree.decls, data["decls"], strict=True):
        assert shown["node"] == type(decl).__name__
        assert set(shown) == {"node", "span"} | {f.name for f in fields(decl) if f.name != "span"}
    assert count(data, "Fn") == ast_to_text(tree).count(" Fn ")


def count(data: Any, node: str) -> int:
    if isinstance(data, list):
        return sum(count(item, node) for item in data)
    if not isinstance(data, dict):
        return 0
    return (data.get("node") == node) + sum(count(value, node) for value in data.values())
