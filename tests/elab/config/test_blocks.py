"""Configuration blocks against their schemas."""

from __future__ import annotations

from fractions import Fraction

import pytest

from presk_rel.elab.config.schemas import SCHEMAS
from tests.types.programs import accepted, check

MODEL = """
dim B
const N = 32
module Line {
  param w : ℝ[3]
  fn apply(x : ℝ[..., 3]) -> ℝ[...] = x · w
}
fn loss(θ : params Line, batch : (ℝ[batch: B, 3], ℝ[batch: B])) -> ℝ[] =
  let (x, y) = batch
  mean((Line.apply(θ, x) - y)^2)
"""
RUN = "training run {\n  model = Line\n  objective = loss\n  optimizer = adamw\n"


def optimizer(*fields: str) -> str:
    return "optimizer adamw {\n" + "".join(f"  {f}\n" for f in ("lr = 1e-3", *fields)) + "}\n"


def training(*items: str) -> str:
    return MODEL + optimizer() + RUN + "".join(f"  {i}\n" for i in items) + "}\n"


def serving(*items: str) -> str:
    return MODEL + "inference serve {\n  model = Line\n" + "".join(f"  {i}\n" for i in items) + "}\n"


class TestOptimizer:
    def test_defaults_are_those_of_the_spec(self) -> None:
        program = accepted(training()).program
        assert program is not None
        (spec,) = program.optimizers
        assert (spec.name, str(spec.model), spec.lr) == ("adamw", "params Line", Fraction(1, 1000))
        assert spec.betas == (Fraction(9, 10), Fraction(999, 1000))
        assert (spec.eps, spec.weight_decay, spec.grad_clip) == (Fraction(1, 10**8), 0, None)
        assert (spec.schedule, spec.warmup) == ("constant", 0)

    def test_every_field_is_read_exactly(self) -> None:
        fields = ("betas : (f64, f64) = (0.9, 0.95)", "weight_decay : f64 = 0.1", "grad_clip = 1", "eps = 1e-9")
        text = MODEL + optimizer(*fields, "schedule : cosine(warmup = 2000)") + RUN + "}\n"
        program = accepted(text).program
        assert program is not None
        (spec,) = program.optimizers
        assert spec.betas == (Fraction(9, 10), Fraction(95, 100))
        assert (spec.eps, spec.weight_decay, spec.grad_clip) == (Fraction(1, 10**9), Fraction(1, 10), 1)
        assert (spec.schedule, spec.warmup) == ("cosine", 2000)

    @pytest.mark.parametrize("schedule", ["constant()", "linear(warmup = 10)", "cosine(warmup = N)"])
    def test_schedules(self, schedule: str) -> None:
        accepted(MODEL + optimizer(f"schedule = {schedule}") + RUN + "}\n")

    @pytest.mark.parametrize(
        ("field", "takes"),
        [
            ("betas = 0.9", "`betas` takes a pair (a, b): a number from 0 to below 1"),
            ("betas = (0.9, 1.0)", "`betas` takes a pair (a, b): a number from 0 to below 1"),
            ("grad_clip = 0", "`grad_clip` takes a number above 0"),
            ("eps = -1", "`eps` takes a number above 0"),
            ("eps : nat = 1", "`eps` has the type f64"),
            ("schedule = cosine", "`schedule` takes constant()|linear(warmup = N)|cosine(warmup = N)"),
            ("schedule = cosine(warm = 3)", "`schedule` takes constant()|linear(warmup = N)|cosine(warmup = N)"),
            ("schedule = linear(warmup = 3, warmup = 4)", "`schedule` takes"),
            ("momentum = 0.9", "an optimizer block has no field `momentum`"),
            ("lr = 2e-3", "`lr` is given twice"),
        ],
    )
    def test_e2010_says_what_the_field_takes(self, field: str, takes: str) -> None:
        found = check(MODEL + optimizer(field) + RUN + "}\n").only
        assert found.code == "E2010" and found.message.startswith(takes)

    def test_the_name_is_the_algorithm(self) -> None:
        found = check("optimizer sgd {\n  lr = 0.1\n}\n").only
        assert found.code == "E2010" and "algorithm `sgd`" in found.message and found.help and "adamw" in found.help

    def test_a_rate_is_needed(self) -> None:
        found = check("optimizer adamw {\n  eps = 0.1\n}\n").only
        assert found.message == "the optimizer block `adamw` has no `lr`"

    def test_two_models_have_optimizers_of_two_names(self) -> None:
        second = MODEL.replace("Line", "Other").replace("loss", "loss2").replace("dim B\nconst N = 32\n", "")
        runs = [
            RUN + "}\n",
            RUN.replace("Line", "Other").replace("= loss", "= loss2") + "}\n",
        ]
        program = accepted(MODEL + second + optimizer() + "".join(runs)).program
        assert program is not None
        assert [(o.name, str(o.model)) for o in program.optimizers] == [
            ("adamw", "params Line"),
            ("adamw2", "params Other"),
        ]


class TestTraining:
    def test_the_record(self) -> None:
        items = ("epochs : nat = 10", 'checkpoint every 1000 steps to "ckpt/"', "precision = budget(rel_error = 1e-3)")
        program = accepted(training(*items)).program
        assert program is not None
        (run,) = program.blocks.trainings
        assert (run.name, str(run.model), run.objective, run.epochs) == ("run", "Line", "loss", 10)
        assert (str(run.batch), str(run.sample)) == ("(ℝ[batch: B, 3], ℝ[batch: B])", "(ℝ[3], ℝ[])")
        assert run.checkpoint is not None and (run.checkpoint.steps, run.checkpoint.path) == (1000, "ckpt/")
        assert run.settings == (("precision", "budget(rel_error = 1e-3)"),)
        assert run.data is None and not run.takes_key

    def test_the_batch_size_binds_the_axis_batch(self) -> None:
        checked = check(training('data = stream "no.psk.d" |> shuffle(seed = 7) |> batch(B = N) |> take(n = 4)'))
        assert checked.codes == ["W0002"] and checked.program is not None
        (run,) = checked.program.blocks.trainings
        assert run.dims == (("B", 32),)
        assert run.data is not None and (run.data.seed, run.data.batch, run.data.take) == (7, 32, 4)

    @pytest.mark.parametrize(
        ("item", "takes"),
        [
            ("epochs = 0", "`epochs` takes N ≥ 1"),
            ("epochs = 1.5", "`epochs` takes N ≥ 1"),
            ('checkpoint every 0 steps to "a"', "`checkpoint` takes every N ≥ 1 steps"),
            ('data = stream "a" |> shuffle(seed = 1)', '`data` takes stream "path" [|> shuffle(seed = N)] |> batch('),
            ('data = batch(B = 3) |> stream "a"', "`data` takes stream"),
            ('data = stream "a" |> batch(B = 0)', "`data` takes stream"),
            ('data = "a"', "`data` takes stream"),
            ("parallel = data_parallel(replicas = some)", "`parallel` takes data_parallel(replicas = auto|N ≥ 1) ⊗"),
            ("precision = 3", "`precision` takes budget(rel_error = a number above 0)"),
            ("rate = 3", "a training block has no field `rate`"),
            ("model = Line", "`model` is given twice"),
            ("epochs : f64 = 3", "`epochs` has the type nat"),
        ],
    )
    def test_e2010_says_what_the_field_takes(self, item: str, takes: str) -> None:
        found = check(training(item)).only
        assert found.code == "E2010" and found.message.startswith(takes)

    def test_all_that_is_missing_is_named(self) -> None:
        missing = check("training run {\n  epochs = 3\n}\n")
        assert [d.message for d in missing.diagnostics] == [
            f"the training block `run` has no `{name}`" for name in ("model", "objective", "optimizer")
        ]

    @pytest.mark.parametrize(
        ("signature", "body", "why"),
        [
            ("θ : params Other, batch : ℝ[batch: B]", "sum(batch)", "its first parameter is params Other"),
            ("batch : ℝ[batch: B]", "sum(batch)", "its first parameter is ℝ[batch: B]"),
            ("θ : params Line", "sum(θ.w)", "it takes no batch"),
            ("θ : params Line, k : key", "sum(θ.w)", "it takes no batch"),
            ("θ : params Line, batch : ℝ[4]", "sum(batch)", "the batch, ℝ[4], has no axis named batch"),
            ("θ : params Line, batch : ℝ[..., 4]", "sum(batch)", "leading axes that are not known"),
            ("θ : params Line, batch : (ℝ[batch: B], nat)", "sum(θ.w)", "component 1 of the batch, nat, is no tensor"),
            ("θ : params Line, batch : ℝ[batch: B], n : nat", "sum(batch)", "its parameter `n` has no default"),
            ("net : Line, θ : params net, batch : ℝ[batch: B]", "sum(batch)", "it takes a module or an axis"),
            ("θ : params Line, batch : ℝ[batch: B]", "batch", "its result is ℝ[batch: B], not ℝ[]"),
        ],
    )
    def test_e2010_says_why_a_function_is_no_objective(self, signature: str, body: str, why: str) -> None:
        other = "module Other {\n  param v : ℝ[2]\n}\n"
        text = training().replace("objective = loss", "objective = bad") + other + f"fn bad({signature}) = {body}\n"
        found = check(text).only
        assert found.code == "E2010" and why in found.message

    def test_a_key_may_stand_before_the_batch(self) -> None:
        fn = "fn noisy(θ : params Line, k : key, batch : ℝ[batch: B], by : f64 = 0.1) -> ℝ[] = sum(batch) * real(by)\n"
        program = accepted(training().replace("objective = loss", "objective = noisy") + fn).program
        assert program is not None and program.blocks.trainings[0].takes_key
        assert str(program.blocks.trainings[0].sample) == "ℝ[]"

    def test_an_objective_without_a_declared_result(self) -> None:
        accepted(training().replace(" -> ℝ[] =\n", " =\n"))

    def test_an_unknown_objective_is_said_once(self) -> None:
        assert check(training().replace("objective = loss", "objective = lost")).codes == ["E1001"]

    def test_members_are_no_objectives(self) -> None:
        assert check(training().replace("objective = loss", "objective = Line.apply")).codes == ["E2010"]

    def test_a_mistake_in_the_objective_is_said_once(self) -> None:
        assert check(training().replace("(Line.apply(θ, x) - y)", "(Line.apply(θ, x) - y2)")).codes == ["E1001"]


class TestInference:
    NEXT = """
dim T
fn next(θ : params Line, ctx : idx[9][batch: B, seq: T], key : key, t : f64 = 1.0) -> idx[9][batch: B] uses Rand =
  ctx[seq: -1]
"""

    def test_the_first_that_fits_generates(self) -> None:
        program = accepted(serving('weights = "ckpt/final"', "target = gpu(sm_90) | cpu(avx512)") + self.NEXT).program
        assert program is not None
        (run,) = program.blocks.inferences
        assert (run.name, run.generate) == ("serve", "next")
        assert run.settings == (("weights", '"ckpt/final"'), ("target", "gpu(sm_90) | cpu(avx512)"))

    def test_w0003_without_one(self) -> None:
        checked = check(serving())
        assert checked.codes == ["W0003"] and checked.program is not None
        assert checked.program.blocks.inferences[0].generate is None

    def test_generate_names_one(self) -> None:
        other = self.NEXT.replace("next", "other").replace("dim T\n", "")
        program = accepted(serving("generate = other") + self.NEXT + other).program
        assert program is not None and program.blocks.inferences[0].generate == "other"

    def test_e2010_for_one_that_does_not_generate(self) -> None:
        found = check(serving("generate = loss")).only
        assert found.code == "E2010" and found.message == "`loss` is no generation function for Line"

    @pytest.mark.parametrize(
        ("item", "takes"),
        [
            ("batching = dynamic(max_batch = 64, timeout = 5)", "`batching` takes dynamic(max_batch = N ≥ 1, timeout"),
            ("cache = kv_cache(seq)", "`cache` takes kv_cache(axis a)"),
            ("target = tpu(v5)", "`target` takes gpu(NAME) | cpu(NAME)"),
            ("weights = final", '`weights` takes "path"'),
            ('precision = quantize(int4, calibration = "a")', "`precision` takes budget(rel_error"),
        ],
    )
    def test_e2010_says_what_the_field_takes(self, item: str, takes: str) -> None:
        found = check(serving(item) + self.NEXT).only
        assert found.code == "E2010" and found.message.startswith(takes)

    def test_checkpoints_belong_to_training(self) -> None:
        found = check(serving('checkpoint every 3 steps to "a"') + self.NEXT).only
        assert found.message == "an inference block has no checkpoints"


def test_schemas_name_each_field_once() -> None:
    for rows in SCHEMAS.values():
        assert len({row.name for row in rows}) == len(rows)
