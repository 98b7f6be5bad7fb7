"""Prepares msgspec structs for decoding in several threads. At the first decode msgspec inspects a
struct in Python, so other threads run meanwhile; two threads that do so for one struct at once
crash the process (SIGSEGV; msgspec 0.22).
"""

from __future__ import annotations

from typing import Any

import msgspec


def prepare_structs(*kinds: Any) -> None:
    """Makes msgspec inspect these structs and all nested ones. Called where they are declared: one
    thread imports a module.
    """
    for kind in kinds:
        msgspec.json.Decoder(kind)
