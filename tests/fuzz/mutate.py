"""Damage to bytes, drawn: what storage, transport and people do to a file, and what attackers
would.

A case is a function of (seed, name): a found one is made again from what its failure prints.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Sequence

CASES = int(os.environ.get("LEVADA_FUZZ", "2000"))  # of all tests of this folder together
SHARES = {
    "files": 0.4, "records": 0.1, "queries": 0.3, "settings": 0.16, "rml": 0.03,
    "checkpoints": 0.01,
}  # fmt: skip
SPECIAL = (
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\r", b"\n", b"\r\n",
    b"\n\n", b"\t", b"\x0b",
    b"\xe2\x80\xa8", b'"', b"'", b'"""', b"\\", b"\\u0000", b"\\uD800", b"\\U00110000", b"<", b">",
    b"<<", b"<!--", b"&a;", b"]]>", b"[", b"]", b"{",
    b"}", b"(", b")", b",", b";", b".", b":", b"_:", b"^^", b"@en", b"#", b"-", b"9" * 400,
    b"1e999", b"NaN", b"null", b"\x7f" * 8, b"\x80" * 8,
    b"\xff\xff\xff\x7f", b"a" * 5000,
)  # fmt: skip
Mutation = Callable[[random.Random, bytes], bytes]


def cases(kind: str, parts: int) -> int:
    """How many of the cases are for one of so many equal parts of a kind of input."""
    return max(round(CASES * SHARES[kind] / parts), 1)


def _flip(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(SPECIAL) + data[at:]


def _piece(rng: random.Random, data: bytes) -> tuple[int, int]:
    at = rng.randrange(len(data))
    return at, at + rng.choice((1, 2, 5, 20, 100))


def _cut_out(rng: random.Random, data: bytes) -> bytes:
    a, b = _piece(rng, data)
    return data[:a] + data[b:]


def _duplicate(rng: random.Random, data: bytes) -> bytes:
    """A piece again, right behind or elsewhere."""
    a, b = _piece(rng, data)
    at = rng.choice((b, rng.randrange(len(data) + 1)))
    return data[:at] + data[a:b] + data[at:]


def _nest(rng: random.Random, data: bytes) -> bytes:
    """A short piece again and again: with brackets in it, that is depth."""
    a = rng.randrange(len(data))
    piece = data[a : a + rng.randint(1, 30)]
    return data[:a] + piece * rng.choice((3, 50, 600)) + data[a:]


def _shuffle(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


MUTATIONS: Sequence[Mutation] = (
    _flip, _flip, _flip, _truncate, _insert, _insert, _cut_out, _duplicate, _nest, _shuffle,
)  # fmt: skip


def mutated(seed: int, name: str, data: bytes) -> bytes:
    """The data with one to four kinds of damage, those that (seed, name) draws."""
    rng = random.Random(f"{seed} {name}")
    for _ in range(rng.randint(1, 4)):
        if data:
            data = rng.choice(MUTATIONS)(rng, data)
    return data


def respelled(seed: int, name: str, texts: Sequence[str]) -> str:
    """One of the texts with one to three of its words left out, doubled, moved, or in place of
    others: what is left of its grammar is more than bytes that flip leave. ``texts`` give the
    words.
    """
    rng = random.Random(f"{seed} {name}")
    words = [_WORD.findall(text) for text in texts]
    chosen = list(rng.choice(words))
    for _ in range(rng.randint(1, 3)):
        a, b = rng.randrange(len(chosen)), rng.randrange(len(chosen))
        other = rng.choice(words)
        match rng.randrange(6):
            case 0:
                del chosen[a]
            case 1:
                chosen.insert(a, chosen[b])
            case 2:
                chosen[a], chosen[b] = chosen[b], chosen[a]
            case 3:
                chosen[a] = rng.choice(other)
            case 4:
                chosen[a] = rng.choice(_ODD)
            case 5:
                at = rng.randrange(len(other))
                chosen[a:b] = other[at : at + rng.randint(1, 8)]
        chosen = chosen or ["x"]
    return "".join(chosen)


_WORD = re.compile(r"\s+|\w+|<[^<>\s]*>|\"[^\"]*\"|[^\w\s]")
_ODD = (
    "0", "-1", "9223372036854775807", "9223372036854775808", "1e999", "0.0", "P1Y", "PT0S",
    "PT0.0001S", "''", "\"\"", "'''''", "*", "?x", "true", "null",
    "~", "[]", "{}", "\\u0000", "\u00e9", "\U0001f600", "<>", "<http://e/\u00e9>", "2013-99-99",
    "2013-02-30T00:00:00Z", "NaN", "x" * 300, "../../x", "!!int", "&a", "*a",
)  # fmt: skip
