"""Random programs with nested scopes, as text: a small pool of names, so that shadowing and misses are frequent."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "x", "D", "mean", "f", "M")

names = st.sampled_from(NAMES)


def _inline(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"{p[0]} + {p[1]}"),
        pair.map(lambda p: f"({p[0]}, {p[1]})"),
        st.tuples(names, inner).map(lambda p: f"{p[0]}({p[1]})"),
        st.tuples(names, inner).map(lambda p: f"(λ {p[0]}. {p[1]})"),
        st.tuples(names, names, inner).map(lambda p: f"(λ ({p[0]}, {p[1]}_). {p[2]})"),
    )


expressions = st.recursive(names, _inline, max_leaves=6)


@st.composite
def bodies(draw: st.DrawFn, longest: int = 6) -> str:
    """`let`s, some of them with a pattern, then an expression."""
    lets: list[str] = []
    for _ in range(draw(st.integers(0, longest))):
        name, other = draw(names), draw(names)
        pattern = f"({name}, {other})" if draw(st.booleans()) and name != other else name
        lets.append(f"  let {pattern} = {draw(expressions)}\n")
    return "".join(lets) + f"  {draw(expressions)}\n"


@st.composite
def functions(draw: st.DrawFn, indent: str = "") -> str:
    params = draw(st.lists(names, unique=True, max_size=3))
    typed = ", ".join(f"{p} : ℝ[{draw(names)}, k: {draw(names)}]" for p in params)
    type_params = "{D : dim}" if draw(st.booleans()) else ""
    body = draw(bodies()).replace("\n", f"\n{indent}")
    return f"fn {draw(names)}{type_params}({typed}) -> ℝ[{draw(names)}] =\n{indent}{body}"


@st.composite
def modules(draw: st.DrawFn) -> str:
    members = [f"  param {draw(names)} : ℝ[{draw(names)}]" for _ in range(draw(st.integers(0, 2)))]
    members += [f"  {draw(functions('  '))}" for _ in range(draw(st.integers(0, 2)))]
    return f"module {draw(names)}{{D : dim}} {{\n" + "\n".join(members) + "\n}"


programs = st.lists(
    st.one_of(
        functions(), modules(), st.tuples(names, expressions).map(lambda p: f"const {p[0]} = {p[1]}"),
        names.map(lambda n: f"dim {n}"),
    ),
    min_size=1,
    max_size=5,
).map("\n".join)  # fmt: skip
