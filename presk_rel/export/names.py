"""Python names for the user's: valid, free, and never one that means something else.

Python reads identifiers in NFKC, so two of the user's names may be one of Python's; keywords, builtins, names with
leading underscores (which Python mangles) and what the file itself uses are taken from the start.
"""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from dataclasses import dataclass, field

RESERVED = frozenset(
    {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "torch", "nn", "F", "math", "self", "l", "O", "I"}
)
"""Never a name of ours; ruff refuses the last three, which look like digits."""

_ATTRIBUTES = """
T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches eval
extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia
named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer
register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter
register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory
state_dict to to_empty train training type xpu zero_grad
"""
MODULE = frozenset(_ATTRIBUTES.split())
"""The attributes of `nn.Module`, which a field or method of the program must not replace."""


def identifier(name: str) -> str:
    """The name as Python would read it, made an identifier without leading underscores."""
    text = unicodedata.normalize("NFKC", name).strip("_")
    text = "".join(c if f"a{c}".isidentifier() else "_" for c in text)
    return text if text.isidentifier() else f"x{text}"


@dataclass(slots=True)
class Names:
    """The names taken in one scope and those around it."""

    taken: set[str] = field(default_factory=lambda: set(RESERVED))

    def inner(self) -> Names:
        return Names(set(self.taken))

    def new(self, name: str) -> str:
        """A free name, the user's own where that may be."""
        base = identifier(name)
        found, n = base, 1
        while found in self.taken:
            found = f"{base}_" if n == 1 else f"{base}_{n}"
            n += 1
        self.taken.add(found)
        return found
