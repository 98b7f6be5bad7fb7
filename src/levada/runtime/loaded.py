"""What tasks have read of static data, and from where: for the driver, and for people."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Loaded(msgspec.Struct, array_like=True):
    """What was read of static data in an epoch: of sources, so many pieces (``opened``), their
    ``size`` as it was parsed (bytes) and ``triples``; of imprints so many ``pieces`` and the
    ``taken`` triples that were wanted; ``cpu`` that all of this took (s). ``imprints``: the files
    of those that were made, of ``pressed`` bytes.
    """

    opened: int = 0
    size: int = 0
    triples: int = 0
    pieces: int = 0
    taken: int = 0
    cpu: float = 0.0
    imprints: list[str] = []
    pressed: int = 0
    epoch: int = 0


def together(all_: Iterable[Loaded]) -> Loaded:
    """What several tasks have read.

    >>> together([Loaded(opened=1), Loaded(opened=2, pieces=1)]).opened
    3
    """
    found = Loaded()
    for one in all_:
        found = Loaded(
            found.opened + one.opened,
            found.size + one.size,
            found.triples + one.triples,
            found.pieces + one.pieces,
            found.taken + one.taken,
            found.cpu + one.cpu,
            [*found.imprints, *one.imprints],
            found.pressed + one.pressed,
            max(found.epoch, one.epoch),
        )
    return found
