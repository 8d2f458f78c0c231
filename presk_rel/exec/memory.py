"""How much memory a run may take."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.8
"""Of the machine's memory."""


def memory_limit() -> int:
    """Bytes a run may take: a share of the machine's memory, or of the container's if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        total = min(total, int(text)) if text.isdigit() else total
    except OSError:
        pass
    return int(total * SHARE)


def written_size(n: int) -> str:
    """`2.4 GiB`."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    k = min(max(n.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{n:,} bytes" if k == 0 else f"{n / 1024**k:,.1f} {units[k]}"
