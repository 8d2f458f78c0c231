"""Products of matrices as torch calls, in the type that their size asks for (`exec.torch.precision`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from presk_rel.exec.torch.precision import Types, rounding

Sizes = tuple[int, int, int, int]
"""Of a product: how many, rows, inner axis, columns."""


@dataclass(frozen=True, slots=True)
class Products:
    """`line` names an expression; `types` are those of the file. A large product is `mm` or `bmm` with a result in the
    file's type: torch's calls that add something to it take that in the type of the operands only, so it is added
    after."""

    line: Callable[[str], str]
    types: Types

    def operands(self, sizes: Sizes, *names: str) -> tuple[str, ...]:
        """The operands of a product, rounded where it is large."""
        return tuple(self.line(rounding(n, self.types)) for n in names) if self.large(sizes) else names

    def large(self, sizes: Sizes) -> bool:
        return self.types.large is not None and self.types.large.holds(*sizes)

    def product(self, function: str, sizes: Sizes, x: str, y: str) -> str:
        """`mm` or `bmm` of operands, views of them included."""
        return f"torch.{function}({x}, {y}{', out_dtype=dtype' if self.large(sizes) else ''})"

    def added(self, sizes: Sizes, bias: str, x: str, y: str) -> str:
        """bias + x · y."""
        if self.large(sizes):
            return f"torch.add({self.product('mm', sizes, x, y)}, {bias})"
        return f"torch.addmm({bias}, {x}, {y})"

    def scaled(self, sizes: Sizes, onto: str, x: str, y: str, beta: int, alpha: str) -> str:
        """beta · onto + alpha · x · y, of batches; beta is 0 or 1."""
        if not self.large(sizes):
            return f"torch.baddbmm({onto}, {x}, {y}, beta={beta}, alpha={alpha})"
        product = self.product("bmm", sizes, x, y)
        return f"torch.add({onto}, {product}, alpha={alpha})" if beta else f"torch.mul({product}, {alpha})"
