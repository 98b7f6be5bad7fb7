"""Reports the static data that tasks have read, and from where: for the driver, and for people."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Loaded(msgspec.Struct, array_like=True):
    """The static data read in an epoch: of sources, the number of parts (``opened``), their
    ``size`` as parsed (bytes) and ``triples``; of imprints, the number of ``pieces`` and the
    ``taken`` triples that were wanted; the ``cpu`` time of all of this (s). ``imprints``: the files
    of new imprints, of ``pressed`` bytes.
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
    """Describes the data read, for people.

    >>> describe_load(Loaded(pieces=2, taken=7, cpu=0.5, epoch=3))
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
    """Adds up the data that several tasks have read.

    >>> merge_loads([Loaded(opened=1), Loaded(opened=2, pieces=1)]).opened
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
