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


def describe_load(loaded: Loaded) -> str:
    """What was read, for people.

    >>> told(Loaded(pieces=2, taken=7, cpu=0.5, epoch=3))
    'Static data, read last in epoch 3: 7 triples of 2 imprints, in 0.50 s of CPU.'
    """
    parts = [f"{loaded.triples:,} triples of {loaded.opened:,} pieces of files, {loaded.size:,} B"]
    parts = parts if loaded.opened else []
    parts += [f"{loaded.taken:,} triples of {loaded.pieces:,} imprints"] if loaded.pieces else []
    made = f" Imprints were made, {loaded.pressed:,} B." if loaded.imprints else ""
    what = ", ".join(parts) or "nothing"
    return (
        f"Static data, read last in epoch {loaded.epoch:,}: {what}, in {loaded.cpu:.2f} s of CPU."
        f"{made}"
    )


def merge_loads(all_: Iterable[Loaded]) -> Loaded:
    """What several tasks have read.

    >>> together([Loaded(opened=1), Loaded(opened=2, pieces=1)]).opened
    3
    """
    total = Loaded()
    for one in all_:
        total = Loaded(
            total.opened + one.opened,
            total.size + one.size,
            total.triples + one.triples,
            total.pieces + one.pieces,
            total.taken + one.taken,
            total.cpu + one.cpu,
            [*total.imprints, *one.imprints],
            total.pressed + one.pressed,
            max(total.epoch, one.epoch),
        )
    return total
