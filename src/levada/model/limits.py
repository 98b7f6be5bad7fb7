"""What an epoch must not exceed, so that no query can take the memory of all
(docs/semantics.md#limits).
"""

MOST_ROWS = 50_000_000
"""How many rows an operator may make in an epoch, unless the engine is told otherwise."""

LONGEST_TEXT = 32 << 20
"""Bytes of one computed text; a longer one is an error, as in an expression that has no value."""

MOST_TEXTS = 1 << 30
"""Bytes of all texts that an operator may compute at once."""

TOLD = 3
"""How many reasons of dead letters are told at once."""
