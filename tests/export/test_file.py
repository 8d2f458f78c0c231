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
        "        self.w = nn.init.xavier_uniform_(nn.Parameter(torch.empty((self.In, self.Out))))  # ℝ[In, Out]",
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
