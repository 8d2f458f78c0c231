"""The sample type of a data file against that of the objective."""

from __future__ import annotations

from pathlib import Path

import pytest

from presk_rel.session import Session
from tests.elab.config.data import write

PROGRAM = """
dim B
dim T <= 100
const V = 50
module M {{
  param w : ℝ[V, V]
}}
fn loss(θ : params M, batch : {batch}) -> ℝ[] = sum(θ.w)
optimizer adamw {{
  lr = 1e-3
}}
training run {{
  model     = M
  objective = loss
  optimizer = adamw
  data      = stream "data/t.psk.d" |> batch(B = 4)
}}
"""
PAIR = "(idx[V][batch: B, seq: T], idx[V][batch: B, seq: T])"


def program(folder: Path, batch: str = PAIR) -> Session:
    (folder / "data").mkdir(exist_ok=True)
    (folder / "main.psk").write_text(PROGRAM.format(batch=batch), encoding="utf-8")
    return Session(str(folder / "main.psk"))


def found(session: Session) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in session.check() if d.code in ("E2010", "W0002")]


def test_dimensions_are_bound_by_the_file(tmp_path: Path) -> None:
    session = program(tmp_path)
    write(tmp_path / "data/t.psk.d", "(idx[50][seq: 64], idx[50][seq: 64])", (7, 64), (7, 64))
    assert found(session) == []
    (run,) = session.typed.blocks.trainings
    assert run.dims == (("B", 4), ("T", 64))
    assert run.data is not None and run.data.samples == 7


def test_samples_of_a_smaller_vocabulary_are_valid(tmp_path: Path) -> None:
    session = program(tmp_path)
    write(tmp_path / "data/t.psk.d", "(idx[49][seq: 64], idx[10][seq: 64])", (7, 64), (7, 64))
    assert found(session) == []


def test_a_symbolic_bound_is_bound_to_the_file(tmp_path: Path) -> None:
    session = program(tmp_path, "idx[T][batch: B]")
    write(tmp_path / "data/t.psk.d", "idx[65][]", (7,))
    assert found(session) == []
    assert session.typed.blocks.trainings[0].dims == (("B", 4), ("T", 65))


def test_forms_are_solved_and_wait_for_each_other(tmp_path: Path) -> None:
    session = program(tmp_path, "(ℝ[batch: B, seq: 2*T + B], ℝ[batch: B, seq: T + 1])")
    write(tmp_path / "data/t.psk.d", "(ℝ[seq: 24], ℝ[seq: 11])", (1, 24), (1, 11))
    assert found(session) == []
    assert session.typed.blocks.trainings[0].dims == (("B", 4), ("T", 10))


@pytest.mark.parametrize(
    ("batch", "sample", "shapes", "why"),
    [
        (PAIR, "(idx[51][seq: 64], idx[50][seq: 64])", ((7, 64), (7, 64)), "the index bound of component 0 is 51"),
        (PAIR, "(idx[50][seq: 64], idx[50][seq: 63])", ((7, 64), (7, 63)), "the axis `seq` of component 1 has length"),
        (PAIR, "(idx[50][pos: 64], idx[50][seq: 64])", ((7, 64), (7, 64)), "is called `pos` in the file"),
        (PAIR, "(idx[50][seq: 64], ℝ[seq: 64])", ((7, 64), (7, 64)), "component 1 is ℝ[seq: 64], not idx[50][seq: T]"),
        (PAIR, "idx[50][seq: 64]", ((7, 64),), "they are different kinds of values"),
        (PAIR, "(idx[50][seq: 101], idx[50][seq: 101])", ((7, 101), (7, 101)), "the data makes T = 101, and T <= 100"),
        ("ℝ[batch: B, 3]", "ℝ[4]", ((7, 4),), "the axis 0 has length 4 in the file, not 3"),
        ("ℝ[batch: B, 3]", "ℝ[3, 1]", ((7, 3, 1),), "the number of axes is 2, not 1"),
        ("ℝ[batch: B, 2*T]", "ℝ[3]", ((7, 3),), "the axis 0 has length 3 in the file, not 2*T"),
        ("ℝ[batch: B, B]", "ℝ[3]", ((7, 3),), "the axis 0 has length 3 in the file, not B = 4"),
        ("ℝ[batch: 5, 3]", "ℝ[3]", ((7, 3),), "the axis batch has length 5, and B is 4 here"),
    ],
)
def test_e2010_names_what_differs(
    tmp_path: Path, batch: str, sample: str, shapes: tuple[tuple[int, ...], ...], why: str
) -> None:
    session = program(tmp_path, batch)
    write(tmp_path / "data/t.psk.d", sample, *shapes)
    ((code, message),) = found(session)
    assert code == "E2010" and why in message


def test_a_mismatch_shows_both_types(tmp_path: Path) -> None:
    session = program(tmp_path, "ℝ[batch: B, 3]")
    write(tmp_path / "data/t.psk.d", "ℝ[4]", (7, 4))
    ((_, message),) = found(session)
    assert message.startswith("the samples of data/t.psk.d are ℝ[4], and the objective takes ℝ[3]: ")


@pytest.mark.parametrize(
    ("sample", "shapes", "why"),
    [
        (None, ((7, 3),), "it has no metadata `presk.sample`"),
        ("ℝ[N]", ((7, 3),), "its `presk.sample` is no type of tensors with numbers for all lengths"),
        ("ℝ[3]\nconst X = 3", ((7, 3),), "its `presk.sample` is no type"),
        ("nat", ((7, 3),), "its `presk.sample` is no type"),
        ("ℝ[" + "9" * 5000 + "]", ((7, 3),), "its `presk.sample` is no type"),
        ("(ℝ[3], ℝ[])", ((7, 3),), "it has 1 tensors, and a sample has 2"),
        ("(ℝ[3], ℝ[])", ((7, 3), (6,)), "its tensors differ in their first axis"),
        ("ℝ[]", ((),), "one of its tensors has no first axis"),
        (
            "ℝ[3]",
            ((7, 4),),
            "its tensor `0` has the shape [7, 4], and by `presk.sample` it is [7, 3]",
        ),
        ("(ℝ[3], ℝ[4])", ((7, 4), (7, 3)), "its tensor `0` has the shape [7, 4], and"),
        ("(ℝ[3], ℝ[4])", ((7, 3), (7, 4, 1)), "its tensor `1` has the shape [7, 4, 1], and"),
        ("ℝ[3]", ((7,),), "its tensor `0` has the shape [7], and"),
    ],
)
def test_e2010_for_what_is_no_data_file(
    tmp_path: Path, sample: str | None, shapes: tuple[tuple[int, ...], ...], why: str
) -> None:
    session = program(tmp_path, "ℝ[batch: B, 3]")
    write(tmp_path / "data/t.psk.d", sample, *shapes)
    ((code, message),) = found(session)
    assert code == "E2010" and f"data/t.psk.d is no data file: {why}" in message


@pytest.mark.parametrize(
    "content", [b"", b"abc", b"\xff" * 40, b"\x02" + b"\0" * 7 + b"[]", b"\x08" + b"\0" * 7 + b"{}"]
)
def test_bytes_that_are_no_safetensors(tmp_path: Path, content: bytes) -> None:
    session = program(tmp_path)
    (tmp_path / "data/t.psk.d").write_bytes(content)
    ((code, message),) = found(session)
    assert code == "E2010" and "is no data file" in message


def test_a_folder_is_no_data_file(tmp_path: Path) -> None:
    session = program(tmp_path)
    (tmp_path / "data/t.psk.d").mkdir()
    ((code, message),) = found(session)
    assert code == "E2010" and "it cannot be read" in message


def test_w0002_while_there_is_no_file(tmp_path: Path) -> None:
    ((code, _),) = found(program(tmp_path))
    assert code == "W0002"


def test_tensors_of_other_names_are_told_by_their_shapes(tmp_path: Path) -> None:
    session = program(tmp_path, "(ℝ[batch: B, 3], ℝ[batch: B, 4])")
    write(tmp_path / "data/t.psk.d", "(ℝ[3], ℝ[4])", y=(7, 4), x=(7, 3))
    assert found(session) == []
    write(tmp_path / "data/t.psk.d", "(ℝ[3], ℝ[4])", y=(7, 5), x=(7, 3))
    ((_, message),) = found(Session(session.path))
    assert "its tensor `y` has the shape [7, 5]" in message
