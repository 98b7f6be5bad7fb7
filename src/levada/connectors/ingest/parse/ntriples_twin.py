"""The slow twin of ``connectors.ingest.parse.ntriples``: parses every line by pyoxigraph, and
computes every identity by the package ``xxhash``. Tests compare them.
"""

from __future__ import annotations

import re

import numpy as np
import xxhash

from levada.connectors.ingest.parse.fallback_parser import Refused, Row, read_line
from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.core.key_groups import group_of_text

_LINE = re.compile(rb"[^\r\n]+")


def parse_slow(
    data: bytes, *, quads: bool, timed: bool, seed: int, document: int, unit_power: int = 0
) -> Triples:
    """Returns the result of ``parse``, except that every text is in the buffer once for each
    use.
    """
    lines: list[int] = []
    rows: list[Row] = []
    bad: list[tuple[int, str, str]] = []
    for match in _LINE.finditer(data):
        text = match[0]
        if text.strip(b" \t")[:1] in (b"", b"#"):
            continue
        try:
            row = read_line(
                text, quads=quads, timed=timed, document=document, unit_power=unit_power
            )
        except Refused as reason:
            bad.append((match.start(), str(reason), text.decode(errors="replace")))
            continue
        assert row is not None, (
            "a line that is neither blank nor a comment is a statement or malformed"
        )
        lines.append(match.start())
        rows.append(row)
    return _columns(rows, lines, bad, quads, seed)


def _columns(
    rows: list[Row], lines: list[int], bad: list[tuple[int, str, str]], quads: bool, seed: int
) -> Triples:
    buffer = b""
    terms = []
    for position in range(4):
        texts = [row.texts[position].encode() for row in rows]
        pairs = [_identity(text, seed) for text in texts]
        size = np.array([len(text) for text in texts], np.int32)
        start = (len(buffer) + np.cumsum(size) - size).astype(np.int32)
        buffer += b"".join(texts)
        x, y = (np.array([pair[half] for pair in pairs], np.uint64) for half in (0, 1))
        terms.append(
            TermColumn(x, y, start, size, np.array([row.kinds[position] for row in rows], np.uint8))
        )
    s, p, o, g = terms
    o.dbl = np.array([row.value.dbl for row in rows], np.float64)
    o.man = np.array([row.value.man for row in rows], np.int64)
    o.scale = np.array([row.value.scale for row in rows], np.uint8)
    time = np.array([row.time for row in rows], np.int64)
    line = np.array(lines, np.int64)
    return Triples(
        len(rows),
        np.frombuffer(buffer or b"\n", np.uint8),
        line,
        s,
        p,
        o,
        g if quads else None,
        time,
        bad,
    )


def _identity(text: bytes, seed: int) -> tuple[int, int]:
    if not text:
        return 0, 0
    both = xxhash.xxh3_128_intdigest(text, seed)
    x, y = both & (2**64 - 1), (both >> 64) & (2**48 - 1) | group_of_text(text) << 48
    return (x, y) if x or y else (1, y)
