"""RAND, UUID, STRUUID, BNODE and NOW: values that derive from seeds and the report time, never from
a clock or a generator.

The seed of a row represents its query, report and solution; the place of the call within the query
distinguishes calls. So a value is the same wherever and however often it is computed
(docs/semantics.md#results). ``BNODE(s)`` derives from the seed and the string: one solution has one
node for equal strings.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from levada.core.array_types import Bools, Longs, Words
from levada.core.rdf_terms import Kind
from levada.operators.expressions.row_blocks import Result
from levada.operators.expressions.term_values import Column

_STEP = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, odd
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix(seeds: Words, place: int) -> Words:
    """64 well-mixed bits for each seed at a place (the finaliser of SplitMix64)."""
    z = seeds + np.uint64((place + 1) * _STEP % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX[1])
    return np.asarray(z ^ (z >> np.uint64(31)))


def rand(seeds: Words, place: int) -> Column:
    """``RAND``: doubles from 0 (included) to 1."""
    result = Result(len(seeds))
    bits = (mix(seeds, 2 * place) >> np.uint64(11)).astype(np.float64)
    result.put(None, Kind.DOUBLE, dbl=bits * 2.0**-53)
    return result.column()


def uuid(seeds: Words, place: int, *, as_iri: bool) -> Column:
    """``UUID`` (an IRI) or ``STRUUID`` (a string): version 4, variant 1."""
    high = (mix(seeds, 2 * place) & np.uint64(0xFFFF_FFFF_FFFF_0FFF)) | np.uint64(0x4000)
    low = (mix(seeds, 2 * place + 1) & np.uint64(2**62 - 1)) | np.uint64(2**63)
    digits = (_hex(high) + _hex(low)).str
    parts = [
        digits.slice(start, size) for start, size in ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))
    ]
    text = parts[0] + "-" + parts[1] + "-" + parts[2] + "-" + parts[3] + "-" + parts[4]
    result = Result(len(seeds))
    written = "<urn:uuid:" + text + ">" if as_iri else '"' + text + '"'
    result.put_texts(None, Kind.IRI if as_iri else Kind.STRING, written)
    return result.column()


def _hex(words: Words) -> pl.Series:
    """16 lower-case hexadecimal digits of each word."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    bytes_ = words.astype(">u8").view(np.uint8).reshape(-1, 8)
    pairs = np.stack((digits[bytes_ >> 4], digits[bytes_ & 15]), axis=2).reshape(-1, 16)
    return pl.Series(
        np.ascontiguousarray(pairs).view("S16").reshape(-1).astype("U16"), dtype=pl.String
    )


def blank(seeds: Words, place: int) -> Column:
    """``BNODE()``: a fresh node in each row."""
    return _nodes(mix(seeds, 2 * place), mix(seeds, 2 * place + 1), None)


def blank_of(seeds: Words, names: Column, low: Words, high: Words) -> Column:
    """``BNODE(s)`` for simple literals with identity (low, high): an error for all else."""
    strings = names.kinds() == Kind.STRING
    return _nodes(mix(seeds ^ low, 0), mix(seeds ^ high, 1), np.broadcast_to(strings, len(seeds)))


def _nodes(a: Words, b: Words, where: Bools | None) -> Column:
    result = Result(len(a))
    rows = None if where is None else np.flatnonzero(where)
    texts = "_:g" + _hex(a) + _hex(b)
    result.put_texts(rows, Kind.BLANK, texts if rows is None else texts.gather(rows))
    return result.column()


def event_time(ms: Longs | int) -> Column:
    """The event time of each row as an integer."""
    man = np.atleast_1d(np.asarray(ms, np.int64))
    result = Result(len(man))
    result.put(None, Kind.INTEGER, man=man, scale=np.zeros(len(man), np.uint8))
    return result.column()


def now(ms: Longs | int) -> Column:
    """``NOW``: the report time as an xsd:dateTime in UTC."""
    man = np.atleast_1d(np.asarray(ms, np.int64))
    result = Result(len(man))
    result.put(None, Kind.DATETIME, man=man)
    return result.column()
