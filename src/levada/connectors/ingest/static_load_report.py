"""Reports the static data that tasks have read, and from where: for the driver, and for people."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from levada.core.checksummed_files import read_sealed
from levada.core.count_text import count_text
from levada.core.event_time import instant
from levada.errors import CheckpointError


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


STATES = "static-tables.json"
_COPY = re.compile(r"[0-9a-f]{32}\.nt")


class TableState(msgspec.Struct, frozen=True):
    """The last content of a static table: its copy, its rows, its refused rows, and when it was
    read (ms since 1970). ``failure``: why it is not newer, "" if it is.
    """

    name: str
    source: str
    schema: tuple[tuple[str, str], ...]
    copy: str
    rows: int
    dead_letters: int = 0
    read_ms: int = 0
    failure: str = ""


def read_states(root: Path) -> list[TableState]:
    """Returns the static tables of a checkpoint."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        if (root / STATES).exists():
            states = msgspec.json.decode(read_sealed(root / STATES), type=list[TableState])
            return [state for state in states if _COPY.fullmatch(state.copy)]
    return []


def describe_table(state: TableState) -> str:
    """Describes the last content of a table, for people.

    >>> describe_table(TableState("d", "d.csv", (), "", 2, 1, 1000))
    'Table d of d.csv: 2 rows and 1 dead letter, read at 1970-01-01T00:00:01Z.'
    """
    rows = count_text(state.rows, "row")
    dead = f" and {count_text(state.dead_letters, 'dead letter')}" if state.dead_letters else ""
    old = f" {state.failure} What was there before stays." if state.failure else ""
    at = instant(state.read_ms)
    return f"Table {state.name} of {state.source}: {rows}{dead}, read at {at}.{old}"


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
