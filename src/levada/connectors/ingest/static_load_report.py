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


def told(loaded: Loaded) -> str:
    """What was read, for people.

    >>> told(Loaded(pieces=2, taken=7, cpu=0.5, epoch=3))
    'Static data, read last in epoch 3: 7 triples of 2 imprints, in 0.50 s of CPU.'
    """
    found = [f"{loaded.triples:,} triples of {loaded.opened:,} pieces of files, {loaded.size:,} B"]
    found = found if loaded.opened else []
    found += [f"{loaded.taken:,} triples of {loaded.pieces:,} imprints"] if loaded.pieces else []
    made = f" Imprints were made, {loaded.pressed:,} B." if loaded.imprints else ""
    what = ", ".join(found) or "nothing"
    return (
        f"Static data, read last in epoch {loaded.epoch:,}: {what}, in {loaded.cpu:.2f} s of CPU."
        f"{made}"
    )


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
