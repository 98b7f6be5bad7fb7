"""What several threads decode is found out beforehand. At the first decode msgspec looks what a
struct has, in Python, so other threads run meanwhile; two that do so for one struct at once end the
process (SIGSEGV; msgspec 0.22).
"""

from __future__ import annotations

from typing import Any

import msgspec


def prepare_structs(*kinds: Any) -> None:
    """Finds out what these structs have, and all that they hold. Is called where they are declared:
    one thread imports a module.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)
