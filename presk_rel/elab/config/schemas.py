"""The fields of configuration blocks, one row each (spec: "Configuration blocks are checked against schemas")."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from presk_rel.diagnostics.record import record
from presk_rel.elab.config.forms import (
    AxisForm,
    Call,
    Duration,
    Either,
    Form,
    Joined,
    Natural,
    Number,
    Pair,
    Path,
    Steps,
    Text,
    Word,
)

Kind = Literal["optimizer", "training", "inference"]


@record
class FieldRow:
    """`type` is what may stand between name and value (`lr : f64 = …`), in source syntax."""

    name: str
    form: Form
    required: bool = False
    type: str | None = None


_ANY = Number()
_POSITIVE = Number(strict=True)
_BETA = Number(high=Fraction(1))
_WARMUP = (("warmup", Natural()),)
_PRECISION = Joined(
    "|",
    (
        Call("budget", named=(("rel_error", _POSITIVE),)),
        Call("budget", named=(("abs_error", _POSITIVE),)),
        Call("quantize", (Word(("int8",)),), (("calibration", Text()),)),
    ),
)
_MODEL = FieldRow("model", Path("the name of a module or model"), required=True)

SCHEMAS: dict[Kind, tuple[FieldRow, ...]] = {
    "optimizer": (
        FieldRow("lr", _POSITIVE, required=True, type="f64"),
        FieldRow("betas", Pair(_BETA, _BETA), type="(f64, f64)"),
        FieldRow("weight_decay", _ANY, type="f64"),
        FieldRow("grad_clip", _POSITIVE, type="f64"),
        FieldRow(
            "schedule",
            Either((Call("constant"), Call("linear", named=_WARMUP), Call("cosine", named=_WARMUP))),
        ),
        FieldRow("eps", _POSITIVE, type="f64"),
    ),
    "training": (
        _MODEL,
        FieldRow("objective", Path("the name of a function of this file"), required=True),
        FieldRow("optimizer", Path("the name of an optimizer block"), required=True),
        FieldRow(
            "data",
            Steps(
                (
                    Call("stream", (Text(),)),
                    Call("shuffle", named=(("seed", Natural()),)),
                    Call("batch", named=(("B", Natural(1)),)),
                    Call("take", named=(("n", Natural(1)),)),
                ),
                optional=("shuffle", "take"),
            ),
        ),
        FieldRow("epochs", Natural(1), type="nat"),
        FieldRow(
            "parallel",
            Joined(
                "⊗",
                (
                    Call("data_parallel", named=(("replicas", Either((Word(("auto",)), Natural(1)))),)),
                    Call("tensor_parallel", (AxisForm(),)),
                ),
            ),
        ),
        FieldRow("precision", _PRECISION),
    ),
    "inference": (
        _MODEL,
        FieldRow("weights", Text()),
        FieldRow("precision", _PRECISION),
        FieldRow("target", Joined("|", (Call("gpu", (Word(),)), Call("cpu", (Word(),))))),
        FieldRow("batching", Call("dynamic", named=(("max_batch", Natural(1)), ("timeout", Duration())))),
        FieldRow("cache", Call("kv_cache", (AxisForm(),))),
        FieldRow("generate", Path("the name of a function of this file")),
    ),
}
