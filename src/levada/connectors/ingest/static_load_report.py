"""Reports the static data that tasks have read, and from where: for the driver, and for people."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from levada.core.count_text import count_text


class Loaded(msgspec.Struct, array_like=True):
    """The static data read in an epoch: of sources, the number of parts (``source_parts``), their
    ``source_bytes`` as parsed (bytes) and ``source_triples``; of imprints, the number of
    ``imprint_parts`` and the ``imprint_triples`` triples that were wanted; the ``cpu_seconds`` time
    of all of this (s). ``new_imprints``: the files of new imprints, of ``new_imprint_bytes`` bytes.
    """

    source_parts: int = 0
    source_bytes: int = 0
    source_triples: int = 0
    imprint_parts: int = 0
    imprint_triples: int = 0
    cpu_seconds: float = 0.0
    new_imprints: list[str] = []
    new_imprint_bytes: int = 0
    epoch: int = 0


def describe_load(loaded: Loaded) -> str:
    """Describes the data read, for people.

    >>> describe_load(Loaded(imprint_parts=2, imprint_triples=7, cpu_seconds=0.5, epoch=3))
    'Static data, read last in epoch 3: 7 triples of 2 imprints, in 0.50 s of CPU.'
    """
    pieces = count_text(loaded.source_parts, "piece of files", "pieces of files")
    triples = count_text(loaded.source_triples, "triple")
    parts = [f"{triples} of {pieces}, {loaded.source_bytes:,} B"] if loaded.source_parts else []
    triples = count_text(loaded.imprint_triples, "triple")
    imprints = count_text(loaded.imprint_parts, "imprint")
    parts += [f"{triples} of {imprints}"] if loaded.imprint_parts else []
    made = f" Imprints were made, {loaded.new_imprint_bytes:,} B." if loaded.new_imprints else ""
    what = ", ".join(parts) or "nothing"
    return (
        f"Static data, read last in epoch {loaded.epoch:,}: {what}, in "
        f"{loaded.cpu_seconds:.2f} s of CPU.{made}"
    )


def merge_loads(all_: Iterable[Loaded]) -> Loaded:
    """Adds up the data that several tasks have read.

    >>> merge_loads([Loaded(source_parts=1), Loaded(source_parts=2, imprint_parts=1)]).source_parts
    3
    """
    total = Loaded()
    for one in all_:
        total = Loaded(
            total.source_parts + one.source_parts,
            total.source_bytes + one.source_bytes,
            total.source_triples + one.source_triples,
            total.imprint_parts + one.imprint_parts,
            total.imprint_triples + one.imprint_triples,
            total.cpu_seconds + one.cpu_seconds,
            [*total.new_imprints, *one.new_imprints],
            total.new_imprint_bytes + one.new_imprint_bytes,
            max(total.epoch, one.epoch),
        )
    return total
