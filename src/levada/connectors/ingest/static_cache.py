"""Imprints of static triples: a parsed chunk as columns, in order of predicates.

A later query matches its patterns over imprints and opens no source again. So a chunk is stored
completely: identities, kinds, values and texts of terms, the places of each statement's terms, and
graphs, if the source names them. Each object and predicate is stored once, a subject or graph once
in consecutive rows. A reader of some predicates takes their rows. A reader without texts unpacks
none, since texts are one block.

    NAME.rows    s, o, g    int32: the places of subject, object, graph in the terms
    NAME.runs    p, end     int32, int64: each predicate, and where its rows end
    NAME.terms   x, y, kind, len    identity, kind, bytes of the text
    NAME.values  at, dbl, man, scale    the values of the terms that have one, by places
    NAME.text    data       all texts one after the other, by LZ4

Invariant: ``triples_of(make_imprint(t))`` are the statements of t, with their multiplicity and the
same identities, kinds, values, texts and blank nodes. Cost: some 100 ns a statement for making, 20
ns for reading; some third of the bytes of N-Triples.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.core.array_types import Bools, Bytes, Ints, Longs, Words
from levada.core.event_time import MIN
from levada.core.frame import Column, Frame
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import ranges
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.key_partitioner import scatter_order
from levada.kernels.text.term_texts import gather

CODEC = "lz4"


@frozen
class CacheRequest:
    """The request to imprints: the predicates, by the first halves of their identities (None: all);
    whether texts are read, or values, some of which only the text represents exactly.
    """

    predicates: Words | None
    texts: bool
    values: bool


def make_imprint(triples: Triples, name: str) -> dict[str, Frame]:
    """Returns the imprint of a chunk, as frames of that name.

    >>> from levada.connectors.ingest.parse.ntriples import parse
    >>> found = parse(b"<a:s> <a:p> <a:o> .", quads=False, timed=False, seed=1, document=1)
    >>> sorted(make_imprint(found, "0"))
    ['0.rows', '0.runs', '0.terms', '0.text', '0.values']
    """
    n, s, o, g = triples.n, triples.s, triples.o, triples.g
    of, first_of = group(triples.p.x, triples.p.y)
    code, first = group(o.x, o.y)
    order, ends = scatter_order(of, len(first_of))
    at, p, objects = order.astype(np.intp), triples.p.take(first_of), o.take(first)
    rows, columns, before = {"o": code.take(at)}, [objects, p], len(first) + len(first_of)
    for word, changing in (("s", s), ("g", g)):
        if changing is not None:
            runs = _runs(changing)
            place = np.arange(before, before + len(runs), dtype=np.int32)
            rows[word] = np.repeat(place, np.diff(runs, append=n)).take(at)
            columns.append(changing.take(runs))
            before += len(runs)
    x, y, off, length, kind = (
        np.concatenate([getattr(c, part) for c in columns])
        for part in ("x", "y", "off", "len", "kind")
    )
    _, data = gather(
        np.arange(len(x)), off.astype(np.int64), length.astype(np.int64), triples.buffer
    )
    places = np.arange(len(first), len(first) + len(first_of), dtype=np.int32)
    return {
        f"{name}.rows": Frame(rows, n),
        f"{name}.runs": Frame({"p": places, "end": ends[1:]}),
        f"{name}.terms": Frame({"x": x, "y": y, "kind": kind, "len": length}),
        f"{name}.values": _values(objects),
        f"{name}.text": Frame({"data": _compress(data)}),
    }


def _runs(c: TermColumn) -> Longs:
    """Returns where runs of equal terms begin."""
    other = np.ones(len(c.x), np.bool_)
    other[1:] = (c.x[1:] != c.x[:-1]) | (c.y[1:] != c.y[:-1])
    return np.flatnonzero(other)


def _values(o: TermColumn) -> Frame:
    """Returns the values of the objects that have one."""
    assert o.dbl is not None and o.man is not None and o.scale is not None, "objects have values"
    rows = np.flatnonzero((o.dbl.view(np.int64) != 0) | (o.man != 0) | (o.scale != 0))
    columns: dict[str, Column] = {"dbl": o.dbl[rows], "man": o.man[rows], "scale": o.scale[rows]}
    return Frame({"at": rows.astype(np.int32), **columns}, len(rows))


def _compress(data: Bytes) -> Bytes:
    return np.frombuffer(pa.compress(data, codec=CODEC, asbytes=True), np.uint8)


def triples_of(frames: Mapping[str, Frame], name: str, wanted: CacheRequest) -> Triples | None:
    """Returns the statements of an imprint with wanted predicates; None: there is none. Without
    texts their buffer is empty.
    """
    terms, runs, rows = (frames[f"{name}.{part}"] for part in ("terms", "runs", "rows"))
    chosen = _select_predicates(terms["x"][runs["p"]], wanted)
    if not chosen.any():
        return None
    counts = np.diff(runs["end"], prepend=0)[chosen]
    at = None if chosen.all() else ranges(runs["end"][chosen] - counts, counts)
    s, o, *g = (
        rows[c] if at is None else rows[c].take(at) for c in ("s", "o", "g") if c in rows.columns
    )
    offsets = (np.cumsum(terms["len"], dtype=np.int64) - terms["len"]).astype(np.int32)
    texts = wanted.texts or (wanted.values and _any_hard(terms["kind"]))
    buffer = _decompress(frames[f"{name}.text"]["data"], terms) if texts else _NONE
    column = _Column(terms, offsets)
    objects = column.take(o)
    _fill(objects, o, terms.n, frames[f"{name}.values"])
    n = len(s)
    return Triples(
        n,
        buffer,
        np.zeros(n, np.int64),
        column.take(s),
        column.take(np.repeat(runs["p"][chosen], counts)),
        objects,
        column.take(g[0]) if g else None,
        np.full(n, MIN, np.int64),
        [],
    )


_NONE = np.empty(0, np.uint8)


def _select_predicates(predicates: Words, wanted: CacheRequest) -> Bools:
    if wanted.predicates is None:
        return np.ones(len(predicates), np.bool_)
    return np.isin(predicates, wanted.predicates)


def _any_hard(kinds: npt.NDArray[np.uint8]) -> bool:
    return bool(((kinds == Kind.HARD_NUMBER) | (kinds == Kind.HARD_TIME)).any())


def _decompress(data: Bytes, terms: Frame) -> Bytes:
    size = int(terms["len"].sum(dtype=np.int64))
    return np.frombuffer(pa.decompress(data, size, codec=CODEC, asbytes=True), np.uint8)


@frozen
class _Column:
    """Makes columns of the terms at some places."""

    terms: Frame
    offsets: Ints

    def take(self, at: Ints) -> TermColumn:
        """Returns the terms at these places."""
        return TermColumn(
            self.terms["x"].take(at),
            self.terms["y"].take(at),
            self.offsets.take(at),
            self.terms["len"].take(at),
            self.terms["kind"].take(at),
        )


def _fill(objects: TermColumn, at: Ints, terms: int, values: Frame) -> None:
    """Sets the values of objects."""
    n = len(at)
    if not values.n:
        objects.dbl, objects.man = np.zeros(n), np.zeros(n, np.int64)
        objects.scale = np.zeros(n, np.uint8)
        return
    place = np.full(terms, values.n, np.int32)  # the place after the last value: no value
    place[values["at"]] = np.arange(values.n, dtype=np.int32)
    of = place.take(at)
    objects.dbl = np.append(values["dbl"], 0.0).take(of)
    objects.man = np.append(values["man"], 0).take(of)
    objects.scale = np.append(values["scale"], np.uint8(0)).take(of)
