"""What an exported file looks like, and the names it uses."""

from pathlib import Path

from torch import nn

from presk_rel.export.names import MODULE, Names
from presk_rel.session import Session

from .load import EXAMPLES


def test_mlp_reads_as_the_specification_shows():
    source = Session(str(EXAMPLES / "mlp.psk")).exported().source
    for line in (
        "class Linear(nn.Module):",
        "        self.In = In",
        "        self.w = nn.init.xavier_uniform_(nn.Parameter(torch.empty(self.In, self.Out)))  # ℝ[In, Out]",
        "        return x @ self.w + self.b",
        "        return self.l2(F.gelu(self.l1(x)))",
        "def mse(net, θ, x, y):",
        "    ŷ = torch.func.functional_call(net, θ, (x,))  # ℝ[batch: B, D]",
        "    return ((ŷ - y) ** 2).mean()",
        "    return torch.func.grad(lambda θ: mse(net, θ, x, y))(θ)",
    ):
        assert line in source.split("\n"), line


def test_constants_take_their_overrides_and_asserts_hold():
    source = Session(str(EXAMPLES / "gpt.psk"), {"D": 12, "L": 3}).exported().source
    assert "D = 12\n" in source
    assert "assert (D % H) == 0" in source
    assert "nn.ModuleList(Block() for _ in range(L))" in source
    assert "def forward(self, x, mask, key, training=False):" in source
    assert "training=training)" in source


def test_lengths_are_written_as_in_the_source_where_constants_have_one_value():
    source = Session(str(EXAMPLES / "gpt.psk"), {"D": 6, "H": 2, "V": 6, "L": 2}).exported().source
    for line in (
        "V = 6\nD = 6\nH = 2\nHD = 3\nL = 2\n",
        "self.tok = nn.init.normal_(nn.Parameter(torch.empty(V, D)), std=0.02)  # ℝ[V, D]",
        "self.pos = nn.init.normal_(nn.Parameter(torch.empty(self.T, D)), std=0.02)  # ℝ[T, D]",
        "self.l2 = Linear(4 * D, D)",
        "self.head = Linear(D, V)",
        "q = split_heads(self.wq(x), H, HD)",
        "/ math.sqrt(HD)",
    ):
        assert line in source, line


def test_dims_and_types_are_comments_and_constants_of_imports_are_constants():
    source = Session(str(EXAMPLES / "train_minigpt.psk"), {"m.D": 8, "m.H": 2, "m.L": 2}).exported().source
    assert (
        "# minigpt.psk\nV = 50257\nD = 8\nH = 2\nHD = 4\nL = 2\nassert (D % H) == 0\n# dim B\n# dim T <= 1024\n"
        in source
    )
    assert "# type Batch = (idx[m.V][batch: B, seq: T], idx[m.V][batch: B, seq: T])\n" in source
    assert "self.mlp = MLP(D, 4 * D)" in source
    assert "nn.ModuleList(Block() for _ in range(L))" in source


LIBRARY = """
const K : nat = 3
module Lin{D : dim} {
  param w : ℝ[D, K]  init = xavier_uniform
  param s : ℝ[]  init = ones
  fn apply(x : ℝ[..., D]) -> ℝ[..., K] = x · w * s
}
"""
MAIN = """
import "math.psk" as math
const K : nat = 2
const J : nat = K + math.K
type F = ℝ[n: 2, 2*K - 1]
model M = math.Lin{J}
fn f(θ : params M, x : ℝ[n: 2, J], n : nat = 3) -> F = M.apply(θ, x) * real(n) + sum(x[n: K - 1]) * real(math.K)
"""


def test_constants_of_one_name_are_two_and_comments_import_nothing(tmp_path: Path):
    (tmp_path / "math.psk").write_text(LIBRARY, encoding="utf-8")
    (tmp_path / "torch.psk").write_text(MAIN, encoding="utf-8")
    source = Session(str(tmp_path / "torch.psk")).exported().source
    assert "# math.psk\nK_ = 3\n\n# torch.psk\nK = 2\nJ = 5\n# type F = ℝ[n: 2, 2*K - 1]\n" in source
    assert "torch.empty(self.D, K_)))  # ℝ[D, K]" in source
    assert "self.s = nn.Parameter(torch.ones(()))" in source
    assert "def f(θ, x, n=3):" in source
    assert " * n + x.select(0, 1).sum() * K_" in source
    assert "import math" not in source


def test_blocks_are_kept_as_comments():
    source = Session(str(EXAMPLES / "train_minigpt.psk")).exported().source
    assert "# optimizer adamw {" in source
    assert "#   objective = loss" in source
    assert "# inference serve {" in source


def test_attributes_of_modules_are_known():
    assert {n for n in dir(nn.Module()) if not n.startswith("_")} <= MODULE


def test_names_are_ours_where_the_users_would_mean_something_else():
    names = Names()
    found = [names.new(n) for n in ("x", "class", "__init__", "print", "ﬁ", "fi", "x", "l", "self", "x̂", "θ")]
    assert found == ["x", "class_", "init", "print_", "fi", "fi_", "x_", "l_", "self_", "x̂", "θ"]


def test_text_of_the_program_cannot_leave_its_comment(tmp_path: Path):
    path = tmp_path / 'a"""b.psk'
    path.write_text("fn f(x : ℝ[]) -> ℝ[] = x\n", encoding="utf-8")
    source = Session(str(path)).exported().source
    namespace: dict[str, object] = {}
    exec(compile(source, "exported", "exec"), namespace)
    assert "f" in namespace
