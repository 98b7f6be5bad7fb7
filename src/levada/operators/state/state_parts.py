"""State as immutable parts: the data that a partition keeps from epoch to epoch
(docs/architecture.md#state).

A *part* is one or more frames in a state file, with the facts that are needed without opening it:
its number of rows, the instant when all of them are dead, their first and last time. ``State`` is a
partition's parts while a stage runs: it opens files on demand (memory maps), takes new parts, and
finishes as one file whose head lists all parts, old and new. Parts never change; a part that an
epoch does not touch costs nothing.

Every row that is kept by key has its key group (``col.PLACE``), so that groups can move to another
partition: a part may be *restricted* to a set of groups (``state_handover``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.operators.state.checksummed_frames import CheckedFrames, Some, checked_parts
from levada.operators.state.key_group_sets import decode, encode

Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]
TERMS, TIMES = "terms", "times."
"""Keys of what is kept of no group: texts, and the instants of elements."""
FOLLOWS = "~"
"""In a key, of what follows from what is kept under other keys: it does not move with groups, and
counts for nobody.
"""
ALIKE = "="
"""At the end of a key, of what all partitions have alike (``plan/sealed/joins.LinkedJoin``): who
has none takes it from one of them.
"""
COPY_MARK = "+"
"""In a key, of rows that are kept under another key as well, by which they count."""
OWN_FILE_SHARE = register(f"{__name__}.OWN_FILE_SHARE", 4, least=2)
"""The share of theta from which a part gets a file of its own."""


class StatePart(msgspec.Struct, array_like=True, frozen=True):
    """A part of state. ``dead``: the instant from which none of its rows matters. ``file``: "" is
    the file that lists it. ``kept``: the set in the head with the groups of rows that count (0:
    all). ``depth``, ``prefix``: the range of keys that it was cut to. ``run``: the common number of
    the parts of one run (0: it is a run by itself). ``within``: the set with all groups of its
    rows, where groups have come since it was written (0: none have, or ``kept`` is smaller).
    """

    file: str
    name: str
    rows: int
    dead: int
    low: int
    high: int
    level: int = 0
    epochs: int = 1
    bits: int = 0
    longest: int = 0
    kept: int = 0
    depth: int = 0
    prefix: int = 0
    run: int = 0
    within: int = 0


class Bounded(NamedTuple):
    """The settings that bound the memory of state: a part that is large for ``theta`` bytes is
    written at once, by ``write``, which returns the name of a file of its own.
    """

    theta: int
    write: Callable[[list[memoryview]], str]


class Head(msgspec.Struct):
    """The list of a partition's parts by key; ``sets``: groups to which some of them are
    restricted, or of which some of them have rows.
    """

    pieces: dict[str, list[StatePart]]
    serial: int = 0
    sets: list[str] = []


class State:
    """A partition's state while one stage of one epoch runs; ``file`` is the name of the file that
    ``head`` came from ("": the head was assembled from several files).
    """

    def __init__(
        self, head: Head | None, file: str, opener: Opener, bounded: Bounded | None = None
    ) -> None:
        self.file, self._bounded = file, bounded
        self._written = list[str]()
        self._sets = head.sets if head else []
        pieces = head.pieces if head else {}
        self._pieces: dict[str, list[StatePart]] = {
            key: [p if p.file else msgspec.structs.replace(p, file=file) for p in some]
            for key, some in pieces.items()
        }
        self._first = dict(self._pieces)
        self._opener = opener
        self._open: dict[str, Mapping[str, Frame]] = {}
        self._new: dict[str, Frame] = {}
        self._new_bytes = 0
        self._serial = head.serial if head else 0
        self.changed = head is not None and not file
        self.touched = 0  # rows that were read one by one, looked up or written
        self.settled = 0  # rows of runs that were put together since groups have come

    def pieces(self, key: str) -> list[StatePart]:
        """The pieces of one operator input (or of the terms, times, ...), oldest first."""
        return self._pieces.get(key, [])

    def before(self, key: str) -> list[StatePart]:
        """Returns the parts of a key at the begin of this epoch."""
        return self._first.get(key, [])

    def first_pieces(self, ending: str) -> list[StatePart]:
        """Returns the parts of all keys with this ending at the begin of this epoch, including
        those that have been replaced since.
        """
        return [p for key, pieces in self._first.items() if key.endswith(ending) for p in pieces]

    def keys(self, prefix: str) -> list[str]:
        """All keys with this prefix that have pieces."""
        return [k for k in self._pieces if k.startswith(prefix)]

    def frames(self, piece: StatePart) -> Mapping[str, Frame]:
        """All frames of the piece's file."""
        if not piece.file:
            return self._new
        if piece.file not in self._open:
            self._open[piece.file] = self._opener(piece.file)[0]
        return self._open[piece.file]

    def frame(self, piece: StatePart, suffix: str = "") -> Frame:
        """Returns a frame of the part for look-ups; the caller adds the rows that it finds to
        ``touched``.
        """
        return self.frames(piece)[piece.name + suffix]

    def lazy_frame(self, piece: StatePart, suffix: str = "") -> Some:
        """The same of which some rows are read."""
        frames, name = self.frames(piece), piece.name + suffix
        return frames.some(name) if isinstance(frames, CheckedFrames) else Some(frames[name])

    def rows_of_partition(self, piece: StatePart, rows: Frame) -> Frame:
        """Returns those rows of a part that belong to this partition."""
        groups = self.groups(piece)
        return rows if groups is None else rows.where(groups[rows[col.PLACE]])

    def groups(self, piece: StatePart) -> Bools | None:
        """Returns the groups whose rows of a part belong to this partition; None: all."""
        return decode(self._sets[piece.kept - 1]) if piece.kept else None

    def within(self, pieces: Iterable[StatePart]) -> int:
        """The place of the set of groups of which there are rows in some pieces; 0: not known."""
        places = sorted({p.kept or p.within for p in pieces})
        if not all(places) or len(places) < 2:
            return places[0] if places else 0
        text = encode(np.logical_or.reduce([decode(self._sets[at - 1]) for at in places]))
        if text not in self._sets:
            self._sets = [*self._sets, text]
        return self._sets.index(text) + 1

    def whole(self, piece: StatePart) -> Frame:
        """All rows of a piece, each of which counts as touched."""
        self.touched += piece.rows
        return self.rows_of_partition(piece, self.frame(piece))

    def put(
        self, frames: Mapping[str, Frame], rows: int, span: tuple[int, int, int], **facts: int
    ) -> StatePart:
        """A new piece of frames (by suffix; "" is the main one); ``span`` is (dead, low, high)."""
        self._serial += 1
        name = str(self._serial)
        named = {name + suffix: frame for suffix, frame in frames.items()}
        self.changed = True
        self.touched += rows
        size = _bytes(named)
        if self._bounded is not None and size > self._bounded.theta // OWN_FILE_SHARE:
            file = self._bounded.write(checked_parts(named))
            self._written.append(file)
            return StatePart(file, name, rows, *span, **facts)
        self._new.update(named)
        self._new_bytes += size
        return StatePart("", name, rows, *span, **facts)

    @property
    def theta(self) -> int:
        """The bytes that are much for a piece; 0: none are."""
        return 0 if self._bounded is None else self._bounded.theta

    @property
    def unsaved_bytes(self) -> int:
        """The bytes of new pieces that are not in a file yet."""
        return self._new_bytes

    def is_new(self, piece: StatePart) -> bool:
        """Whether a part was added in this epoch."""
        return not piece.file or piece.file in self._written

    def unlisted_files(self) -> list[str]:
        """The files of pieces that were written, and are listed no more."""
        if not self._written:
            return []
        named = set(self.files())
        return [file for file in self._written if file not in named]

    def replace(self, key: str, pieces: Iterable[StatePart]) -> None:
        """Sets the pieces of a key."""
        new_pieces = list(pieces)
        if new_pieces != self._pieces.get(key, []):
            self.changed = True
            if new_pieces:
                self._pieces[key] = new_pieces
            else:
                self._pieces.pop(key, None)

    def drop_dead(self, key: str, horizon: int) -> list[StatePart]:
        """Drops the parts that are dead at ``horizon``; returns the remaining ones."""
        pieces = self.pieces(key)
        left = [p for p in pieces if p.dead > horizon]
        if len(left) != len(pieces):
            self.replace(key, left)
        return left

    def files(self) -> list[str]:
        """The older files that the pieces refer to."""
        return sorted({p.file for pieces in self._pieces.values() for p in pieces if p.file})

    def first_files(self) -> set[str]:
        """Returns the files that the state needed at the begin of this epoch, if it came from one
        file.
        """
        return {self.file, *(p.file for pieces in self._first.values() for p in pieces)}

    def finish(self) -> list[memoryview]:
        """The new state file's buffers: the list of all pieces, and the frames of the new ones
        (their ``file`` stays "").
        """
        live = {p.name for pieces in self._pieces.values() for p in pieces if not p.file}
        homeless = [
            key
            for key, pieces in self._pieces.items()
            if key != TERMS and not key.startswith(TIMES)  # these are of no group
            for p in pieces
            if not p.file and col.PLACE not in self._new[p.name].columns
        ]
        assert not homeless, "rows in state know their group"
        frames = {n: f for n, f in self._new.items() if n.split(".", 1)[0] in live}
        return checked_parts(frames, Head(self._pieces, self._serial, self._sets))


def _bytes(frames: Mapping[str, Frame]) -> int:
    return sum([c.nbytes for frame in frames.values() for c in frame.columns.values()])


def due_together(pieces: Sequence[StatePart]) -> int:
    """Returns the place from which on the parts, oldest first, are to be merged (their number: no
    merge).

    At least four are merged, and the oldest has no more rows than all others. So there are about
    log2 n parts, and a row is rewritten about as often, however large the state is. The parts of
    one cut run (``run``) count as one.
    """
    first, many, rows, younger = len(pieces), 0, 0, 0
    for i in range(len(pieces) - 1, -1, -1):
        rows += pieces[i].rows
        if i and pieces[i].run and pieces[i].run == pieces[i - 1].run:
            continue
        many += 1
        if many >= 4 and rows <= younger:
            first = i
        younger, rows = younger + rows, 0
    return first


def read_head(meta: Any) -> Head:
    """The head of a state file from its meta."""
    return msgspec.convert(meta, Head)


def span_of(
    low: np.ndarray[Any, np.dtype[np.int64]], dead: np.ndarray[Any, np.dtype[np.int64]]
) -> tuple[int, int, int]:
    """(dead, low, high) of rows with these first times and ends."""
    return int(dead.max()), int(low.min()), int(low.max())
