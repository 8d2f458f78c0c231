"""`--arg NAME=VALUE`: literals with exact numbers, and files.

    value   = number | "true" | "false" | "[" [value {"," value} [","]] "]" | "(" value {"," value} [","] ")" | "@" path
    number  = ["+" | "-"] digits ["." digits] ["e" integer]      an exact rational, whatever its length (bounded below)

A *node* is what a literal or a file says before the parameter's type is known: numbers are `Fraction`, arrays of a file
are numpy arrays (float64, integers, bool), lists are lists, named parts (of a tree, of an archive) are dicts. Errors
are diagnostics that name the argument: E7011 for a literal, E7012 for a file.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, NoReturn, TypeAlias, TypeGuard

from presk_rel.exec.shapes import fail
from presk_rel.exec.values import Array

Node: TypeAlias = Any
"""`Fraction | bool | str | Array | list[Node] | dict[str, Node]`."""


def is_array(node: Node) -> TypeGuard[Array]:
    return type(node).__name__ == "ndarray"


def is_list(node: Node) -> TypeGuard[list[Node]]:
    return isinstance(node, list)


def is_parts(node: Node) -> TypeGuard[dict[str, Node]]:
    return isinstance(node, dict)


MAX_DIGITS = 4_000
MAX_EXPONENT = 10_000
MAX_TEXT = 16 * 2**20
MAX_DEPTH = 32

_TOKEN = re.compile(r"\s*(?:([+-]?(?:\d[\d.]*|\.\d+)(?:[eE][+-]?\d+)?)|(true|false)\b|([\[\](),]))", re.ASCII)
_NUMBER = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?", re.ASCII)


def arguments(assignments: Iterable[str]) -> dict[str, Node]:
    """The nodes of `--arg NAME=VALUE` options, by name (NFC)."""
    found: dict[str, Node] = {}
    for text in assignments:
        name, node = argument(text)
        if name in found:
            fail("E7011", f"argument `{name}` is given twice", None)
        found[name] = node
    return found


def argument(text: str) -> tuple[str, Node]:
    name, equals, value = text.partition("=")
    name = unicodedata.normalize("NFC", name.strip())
    if not equals or not name:
        fail("E7011", f"`{text[:60]}` is not of the form NAME=VALUE", None)
    value = value.strip()
    if value.startswith("@"):
        return name, from_file(name, Path(value[1:]))
    return name, literal(name, value)


def number(text: str) -> Fraction | None:
    """The exact rational of a decimal; None when it is not one, or has too many digits."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    sign, whole, fraction, exponent = match.group(1), match.group(2), match.group(3) or "", match.group(4) or "0"
    digits = whole + fraction
    if not digits or len(digits) > MAX_DIGITS or len(exponent) > 6 or abs(int(exponent)) > MAX_EXPONENT:
        return None
    value = Fraction(int(digits)) * Fraction(10) ** (int(exponent) - len(fraction))
    return -value if sign == "-" else value


def literal(name: str, text: str) -> Node:
    """The node of a literal. A loop with a stack of open brackets: nesting is bounded by `MAX_DEPTH`."""
    if len(text) > MAX_TEXT:
        _bad_literal(name, f"is longer than {MAX_TEXT} characters")
    reader = _Reader(name, text)
    while not reader.done:
        reader.step()
    return reader.result()


class _Reader:
    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.at = name, text.rstrip(), 0
        self.open: list[tuple[str, list[Node]]] = [("", [])]
        self.expects_value = True

    @property
    def done(self) -> bool:
        return self.at >= len(self.text)

    def step(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self._fail("a number, true, false or a bracket was expected")
        number_text, word, sign = match.groups()
        if sign is None:
            self._value(self._number(number_text) if number_text else word == "true")
        elif sign in "[(":
            self._open(sign)
        elif sign == ",":
            self._comma()
        else:
            self._close(sign)
        self.at = match.end()

    def _number(self, text: str) -> Fraction:
        value = number(text)
        if value is None:
            self._fail(f"`{text[:40]}` is no number of at most {MAX_DIGITS} digits and exponent {MAX_EXPONENT}")
        return value

    def _value(self, node: Node) -> None:
        if not self.expects_value:
            self._fail("a comma was expected")
        self.open[-1][1].append(node)
        self.expects_value = False

    def _open(self, sign: str) -> None:
        if not self.expects_value:
            self._fail("a comma was expected")
        if len(self.open) > MAX_DEPTH:
            self._fail(f"brackets nest deeper than {MAX_DEPTH}")
        self.open.append((sign, []))

    def _comma(self) -> None:
        if self.expects_value or len(self.open) == 1:
            self._fail("a value was expected")
        self.expects_value = True

    def _close(self, sign: str) -> None:
        start, items = self.open[-1]
        if start != {"]": "[", ")": "("}[sign]:
            self._fail(f"`{sign}` closes nothing")
        if self.expects_value and not items and sign == ")":
            self._fail("a value was expected")
        self.open.pop()
        self.open[-1][1].append(items)
        self.expects_value = False

    def result(self) -> Node:
        if len(self.open) > 1:
            self._fail(f"`{self.open[-1][0]}` is not closed")
        if len(self.open[0][1]) != 1:
            self._fail("a value was expected")
        return self.open[0][1][0]

    def _fail(self, why: str) -> NoReturn:
        _bad_literal(self.name, f"at character {self.at + 1}: {why}")


def _bad_literal(name: str, why: str) -> NoReturn:
    fail("E7011", f"the value of argument `{name}` {why}", None, help="a number, [[1, 2], [3, 4]], true, or @file")


# ---------------------------------------------------------------------------------------------------------------- files

MAX_FILE = 4 * 2**30


def from_file(name: str, path: Path) -> Node:
    """The node of `@file.npy|.npz|.safetensors|.json`."""
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors, ".json": _json}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        _bad_file(name, path, f"its name ends in none of {', '.join(readers)}")
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            _bad_file(name, path, f"it has {size:,} bytes, more than {MAX_FILE:,}")
        return reader(path)
    except OSError as error:
        _bad_file(name, path, error.strerror or str(error))
    except (ValueError, EOFError, MemoryError, RecursionError, KeyError, NotImplementedError) as error:
        why = str(error)[:300] or type(error).__name__
        if "pickle" in why:  # numpy's word for whatever it does not know
            why = "it is not in numpy's format"
        _bad_file(name, path, why)


def _bad_file(name: str, path: Path, why: str) -> NoReturn:
    fail("E7012", f"the file of argument `{name}`, {path}, cannot be read: {why}", None)


def _npy(path: Path) -> Node:
    import numpy as np

    with path.open("rb") as file:
        _described(file)
    loaded: Any = np.load(path, allow_pickle=False)
    if not is_array(loaded):
        raise ValueError("it is no single array")
    return _exact(loaded)


def _described(file: IO[bytes]) -> None:
    """ValueError where the header of a file in numpy's format does not describe an array of numbers. Numpy says some
    of that by what its parser raises, with addresses in the text, or by loading Python objects."""
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(file)
    except ValueError:
        raise ValueError("it is not in numpy's format") from None
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"it is in version {version[0]}.{version[1]} of numpy's format; there are 1.0, 2.0 and 3.0")
    read: Any = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, _, dtype = read(file)
    except Exception:  # whatever Python's own tokenizer and parser raise on bytes that are anything
        raise ValueError("its header does not describe an array") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if any(n < 0 for n in shape):
        raise ValueError(f"its header says the shape {list(shape)}")
    if math.prod(shape) * dtype.itemsize > MAX_FILE:
        raise ValueError(f"its header says the shape {list(shape)}, of more than {MAX_FILE:,} bytes")


def _members_described(path: Path) -> None:
    """As `_described`, every array of an archive."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(".npy"):
                with archive.open(entry) as file:
                    _described(file)


def _npz(path: Path) -> Node:
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
        if total > MAX_FILE:
            raise ValueError(f"it unpacks to {total:,} bytes, more than {MAX_FILE:,}")
        _members_described(path)
        with np.load(path, allow_pickle=False) as loaded:
            return {str(key): _exact(loaded[key]) for key in loaded.files}
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from None


def _exact(array: Array) -> Array:
    """Floats of at most 64 bits, integers and booleans; what cannot be taken exactly is refused."""
    import numpy as np

    kind, width = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and width <= 8:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    if kind in "iub":
        return array
    raise ValueError(f"it holds {array.dtype}, not floats of at most 64 bits, integers or booleans")


_FORMATS = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


def _safetensors(path: Path) -> Node:
    import importlib

    library: Any = importlib.import_module("safetensors")
    try:
        tensors: Any = library.deserialize(path.read_bytes())
    except library.SafetensorError as error:
        raise ValueError(str(error)) from None
    return {str(name): _from_buffer(entry) for name, entry in tensors}


def _from_buffer(entry: dict[str, Any]) -> Array:
    import numpy as np

    dtype, shape, data = entry["dtype"], tuple(entry["shape"]), bytes(entry["data"])
    if dtype == "BF16":
        halves = np.frombuffer(data, dtype="<u2").astype(np.uint32) << np.uint32(16)
        return _exact(halves.view(np.float32).reshape(shape))
    if dtype not in _FORMATS:
        raise ValueError(f"it holds {dtype}")
    return _exact(np.frombuffer(data, dtype=_FORMATS[dtype]).reshape(shape))


def _json(path: Path) -> Node:
    def refuse(text: str) -> NoReturn:
        raise ValueError(f"{text} is no real number")

    def exact(text: str) -> Fraction:
        value = number(text)
        if value is None:
            raise ValueError(f"a number has more than {MAX_DIGITS} digits or an exponent beyond {MAX_EXPONENT}")
        return value

    return json.loads(path.read_text("utf-8"), parse_float=exact, parse_int=exact, parse_constant=refuse)
