"""Data files for tests, written by the safetensors library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file


def write(path: Path, sample: str | None, *shapes: tuple[int, ...], **named: tuple[int, ...]) -> None:
    given = {**{str(i): shape for i, shape in enumerate(shapes)}, **named}
    tensors = {name: np.zeros(shape, np.float32) for name, shape in given.items()}
    save_file(tensors, path, None if sample is None else {"presk.sample": sample})
