"""One page of the catalogue."""

from __future__ import annotations

from typing import Literal

from presk_rel.diagnostics.diagnostic import Severity
from presk_rel.diagnostics.record import record

Kind = Literal["user error", "limit"]


@record
class CodePage:
    """What `presk explain` prints of a code.

    `kind`: the user's mistake, or a limit of presk on a program that may be right. `failing` gives exactly this code
    and `fixed` is the same program without the fault; both are whole programs, and a test runs them, unless `situation`
    is set: then no program shows the fault (a file that cannot be read), and the two describe it in words.
    """

    code: str
    severity: Severity
    kind: Kind
    title: str
    meaning: str
    failing: str
    fixed: str
    situation: bool = False
