"""The kernels that read bytes, their arguments and twins: the other half of ``bench.kernel_cases``.

Most texts are a few megabytes, so that they stay in a cache: what is measured is the loop and not
the memory.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import xxhash

from bench.case import SEED, Case
from bench.srbench import Weather, _triples
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.parse.ntriples_twin import parse_slow
from levada.kernels.keyed import pattern_match
from levada.kernels.text import (
    blank_nodes,
    csv_records,
    line_boundaries,
    ntriples,
    subject_runs,
    term_texts,
    timestamps,
    xxh3,
)
from levada.operators.matching.pattern_table import PatternTable, match_by_comparison

TENTH = 10  # of the rows: a line of N-Triples has 166 bytes


def bytes_of(text: bytes) -> Any:
    """A text as the kernels take it."""
    return np.frombuffer(text, np.uint8)


@functools.lru_cache(2)
def _text(n: int) -> bytes:
    """N-Triples of W3, ``n`` lines at least."""
    weather = Weather(20)
    found: list[str] = []
    for ts, serial, speeds in weather.minutes():
        found += (f"{t} {ts} .\n" for t in _triples(serial, speeds))
        if len(found) >= n:
            break
    return "".join(found).encode()


def _parsed(n: int) -> Triples:
    return parse(_text(n), quads=False, timed=True, seed=SEED, document=1)


def _columns(found: Triples) -> tuple[Any, ...]:
    return found.s.x, found.s.y, found.p.x, found.o.x, found.o.dbl, found.time


def parse_lines(n: int) -> Case:
    text = _text(n)
    return Case(
        lambda: _columns(parse(text, quads=False, timed=True, seed=SEED, document=1)),
        lambda: _columns(parse_slow(text, quads=False, timed=True, seed=SEED, document=1)),
        text.count(b"\n"),
    )


def match_rows(n: int) -> Case:
    triples = _parsed(n)
    predicates = [triples.text(triples.p, row) for row in range(3)]
    patterns = [(None, p, None) for p in predicates]
    patterns += [(None, f"<http://example.org/p{i}>", None) for i in range(97)]
    table = PatternTable.build(patterns, [0] * len(patterns), SEED)
    return Case(
        lambda: table.match(triples), lambda: match_by_comparison(table, triples), triples.n
    )


def group_pairs(n: int) -> Case:
    rows, out = np.arange(n, dtype=np.int64), np.empty(n, np.int64)
    found = np.random.default_rng(4).integers(0, 100, n).astype(np.int32)

    def kernel() -> Any:
        return pattern_match.group_pairs(rows, found, 100, out), out

    def twin() -> Any:
        starts = np.searchsorted(np.sort(found), np.arange(101))
        return starts, rows[np.argsort(found, kind="stable")]

    return Case(kernel, twin, n)


def _identities(texts: Iterable[bytes]) -> tuple[Any, Any]:
    """112 bits under the seed, and above them the group."""
    both = [(xxhash.xxh3_128_intdigest(t, SEED), xxhash.xxh3_64_intdigest(t)) for t in texts]
    low = np.array([hidden & (2**64 - 1) for hidden, _ in both], np.uint64)
    high = [hidden >> 64 & (2**48 - 1) | plain >> 48 << 48 for hidden, plain in both]
    return low, np.array(high, np.uint64)


@functools.lru_cache(2)
def _names(n: int) -> tuple[list[bytes], Any, Any, Any]:
    """Names of observations: as such, and one after the other, with each one's start and size."""
    texts = [b"<http://example.org/observation/%d>" % i for i in range(n)]
    size = np.array([len(t) for t in texts], np.int64)
    return texts, bytes_of(b"".join(texts)), np.cumsum(size) - size, size


def identify(n: int) -> Case:
    texts, data, start, size = _names(n)
    secret = xxh3.schedule(SEED)

    def kernel() -> Any:
        x, y = np.empty(n, np.uint64), np.empty(n, np.uint64)
        xxh3.identify_slices(data, start, size, secret, x, y)
        return x, y

    return Case(kernel, lambda: _identities(texts), n)


def identify_tagged(n: int) -> Case:
    values, tag = np.arange(n, dtype=np.int64) * 7919, 3

    def kernel() -> Any:
        x, y = np.empty(n, np.uint64), np.empty(n, np.uint64)
        xxh3.identify_tagged(values, np.uint64(tag), np.uint64(SEED), x, y)
        return x, y

    def twin() -> Any:
        texts = (bytes([tag]) + v.to_bytes(8, "little") for v in values.tolist())
        return _identities(texts)

    return Case(kernel, twin, n)


def gather(n: int) -> Case:
    texts, data, start, size = _names(n)
    rows = np.random.default_rng(5).permutation(n)

    def twin() -> Any:
        chosen = [texts[r] for r in rows.tolist()]
        return list(itertools.accumulate(map(len, chosen), initial=0)), bytes_of(b"".join(chosen))

    return Case(lambda: term_texts.gather(rows, start, size, data), twin, n)


def count_byte(n: int) -> Case:
    text = _text(n // TENTH)
    buf = bytes_of(text)
    count = text.count(b"\n")
    return Case(
        lambda: subject_runs.count_byte(buf, len(buf), 10), lambda: text.count(b"\n"), count
    )


def count_line_ends(n: int) -> Case:
    text = _text(n // TENTH)
    buf = bytes_of(text)
    return Case(
        lambda: ntriples.count_line_ends(buf, len(buf)),
        lambda: text.count(b"\n") + text.count(b"\r"),
        text.count(b"\n"),
    )


def cut_lines(n: int) -> Case:
    text = _text(n // TENTH)
    buf, many = bytes_of(text), text.count(b"\n")
    return Case(
        lambda: line_boundaries.cut_lines(buf, many, True),
        lambda: (text.rfind(b"\n") + 1, text.count(b"\n")),
        many,
    )


def cut_some_lines(n: int) -> Case:
    """Lines among which comments stand, so that each is looked at."""
    text = b"#\n".join(_text(n // TENTH).splitlines(keepends=True))
    buf, many = bytes_of(text), text.count(b"\n")

    def twin() -> Any:
        return len(text), sum(not line.startswith(b"#") for line in text.splitlines())

    return Case(lambda: line_boundaries.cut_lines(buf, many, True), twin, many)


def _subjects(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Each subject of consecutive lines and the bytes of its lines."""
    for key, same in itertools.groupby(
        text.splitlines(keepends=True), lambda line: line.split()[0]
    ):
        yield key, sum(map(len, same))


def _cut_elements(n: int, cut: Callable[[Any, int], tuple[int, int]]) -> Case:
    text = _text(n // TENTH)
    buf, many = bytes_of(text), text.count(b"\n")

    def twin() -> Any:
        *whole, _ = _subjects(text)
        return sum(size for _, size in whole), len(whole)

    return Case(lambda: cut(buf, many), twin, many)


def cut_groups(n: int) -> Case:
    return _cut_elements(
        n, lambda buf, rows: line_boundaries.cut_groups(buf, line_boundaries.SUBJECT, rows, False)
    )


def cut_descriptions(n: int) -> Case:
    return _cut_elements(n, lambda buf, rows: line_boundaries.cut_descriptions(buf, rows, False))


def number_elements(n: int) -> Case:
    text = _text(n // TENTH)
    size = np.array([len(line) for line in text.splitlines(keepends=True)])
    buf, at = bytes_of(text), np.cumsum(size) - size

    def twin() -> Any:
        keys = [line.split()[0] for line in text.splitlines()]
        return np.cumsum([a != b for a, b in zip(keys, [keys[0], *keys[:-1]], strict=True)])

    return Case(
        lambda: line_boundaries.number_elements(buf, at, line_boundaries.SUBJECT), twin, len(at)
    )


def _blocks(n: int) -> tuple[list[bytes], bytes]:
    """Blocks of three lines, and the text of them."""
    found = _text(n // TENTH).splitlines(keepends=True)
    blocks = [b"".join(found[i : i + 3]) for i in range(0, len(found), 3)]
    return blocks, b"\n".join(blocks)


def cut_blocks(n: int) -> Case:
    blocks, text = _blocks(n)
    buf, many = bytes_of(text), text.count(b"\n")

    def twin() -> Any:
        whole = text.split(b"\n\n")
        return len(text), len(whole)

    return Case(lambda: line_boundaries.cut_blocks(buf, len(blocks), True), twin, many)


def number_blocks(n: int) -> Case:
    blocks, text = _blocks(n)
    size = np.array([len(block) + 1 for block in blocks])
    buf, at = bytes_of(text), np.cumsum(size) - size
    many = text.count(b"\n")
    return Case(
        lambda: line_boundaries.number_blocks(buf, at),
        lambda: np.arange(len(text.split(b"\n\n"))),
        many,
    )


@functools.lru_cache(2)
def _records(n: int) -> bytes:
    value = np.random.default_rng(6).random(n)
    return "".join(
        f'{i},sensor{i % 100},"a, b",{v}\n' for i, v in enumerate(value.tolist())
    ).encode()


def cut_records(n: int) -> Case:
    text = _records(n // TENTH)
    buf, many = bytes_of(text), text.count(b"\n")

    def twin() -> Any:
        return len(text), sum(1 for _ in csv.reader(io.StringIO(text.decode())))

    return Case(lambda: csv_records.cut_records(buf, many, True, ord(",")), twin, many)


def scan_records(n: int) -> Case:
    text = _records(n // TENTH)
    buf, many = bytes_of(text), text.count(b"\n")

    def kernel() -> Any:
        found = csv_records.scan_records(buf, ord(","))
        return len(found.fields), found.fields

    def twin() -> Any:
        rows = list(csv.reader(io.StringIO(text.decode())))
        return len(rows), [len(row) for row in rows]

    return Case(kernel, twin, many)


@functools.lru_cache(2)
def _times(n: int, form: str) -> tuple[list[str], Any, Any, Any]:
    """Times, one a second: as such, and one after the other, with each one's start and size."""
    texts = [form.format(datetime.fromtimestamp(t, UTC)) for t in range(n)]
    size = np.array([len(t) for t in texts], np.int64)
    return texts, bytes_of("".join(texts).encode()), np.cumsum(size) - size, size


def whole_instants(n: int) -> Case:
    texts, buf, at, size = _times(n, "{:%Y-%m-%dT%H:%M:%SZ}")

    def twin() -> Any:
        return [round(datetime.fromisoformat(t).timestamp() * 1000) for t in texts]

    return Case(lambda: timestamps.instants(buf, at, size, 0), twin, n)


def last_instants(n: int) -> Case:
    texts, buf, at, size = _times(n, "<http://example.org/graph/{:%Y-%m-%dT%H:%M:%SZ}/>")

    def twin() -> Any:
        return [round(datetime.fromisoformat(t[26:-2]).timestamp() * 1000) for t in texts]

    return Case(lambda: timestamps.last_instants(buf, at, size, 0), twin, n)


_BLANK = re.compile(rb'<[^>]*>|_:(\S+)|"[^"]*"')


def _statements(n: int) -> bytes:
    return b"".join(b'_:b%d <http://example.org/says> "_:%d" .\n' % (i, i) for i in range(n))


def _places(text: bytes, n: int) -> tuple[Any, Any, int]:
    start, size = np.empty(n, np.int64), np.empty(n, np.int64)
    return start, size, blank_nodes.blank_places(bytes_of(text), start, size)


def blank_places(n: int) -> Case:
    text = _statements(n // TENTH)

    def twin() -> Any:
        found = [m.span(1) for m in _BLANK.finditer(text) if m[1] is not None]
        return [a for a, _ in found], [b - a for a, b in found], len(found)

    return Case(lambda: _places(text, n // TENTH), twin, n // TENTH)


def relabel(n: int) -> Case:
    n //= TENTH
    text, number = _statements(n), np.arange(n, dtype=np.int64)
    start, size, _ = _places(text, n)
    buf, out = bytes_of(text), np.empty(len(text) + 20 * n, np.uint8)

    def kernel() -> Any:
        return out[: blank_nodes.relabel(buf, start, size, number, out)]

    def twin() -> Any:
        numbers = iter(range(n))
        return bytes_of(
            _BLANK.sub(lambda m: m[0] if m[1] is None else b"_:n%d" % next(numbers), text)
        )

    return Case(kernel, twin, n)


# (case, whether its twin is a loop in Python)
TEXT_CASES: tuple[tuple[Callable[[int], Case], bool], ...] = (
    (parse_lines, True),
    (match_rows, False),
    (group_pairs, False),
    (identify, True),
    (identify_tagged, True),
    (gather, True),
    (count_byte, False),
    (count_line_ends, False),
    (cut_lines, False),
    (cut_some_lines, False),
    (cut_groups, True),
    (cut_descriptions, True),
    (number_elements, True),
    (cut_blocks, False),
    (number_blocks, False),
    (cut_records, True),
    (scan_records, True),
    (whole_instants, True),
    (last_instants, True),
    (blank_places, True),
    (relabel, True),
)
