"""Word count: sentences of ten words, cut into words, each with the running count of that word.

    sentences -> words (``split``) -> word_count.cql -> (word, count) for each word

Word i of a sentence comes i ms after its beginning, so each word is an instant and has its own
report. A sentence has room for ``ROOM`` words; empty ones are dropped, as the paper's parser does.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl

from bench.streaming.application import Answer, Application, Frames, text

WORDS, VOCABULARY, ROOM = 10, 10_000, 16
EMPTY = 0.01
"""The part of the sentences that are empty."""


def sentences(n: int, seed: int) -> pl.DataFrame:
    """So many sentences of words by Zipf's law, some empty: ``text``, ``ts``."""
    rng = np.random.default_rng(seed)
    drawn = np.minimum(rng.zipf(1.3, (n, WORDS)), VOCABULARY)
    frame = pl.DataFrame({"number": np.arange(n), "word": drawn})
    joined = frame.with_columns(
        pl.col("word").arr.to_list().list.eval(pl.format("w{}", pl.element())).list.join(" ")
    )
    empty = pl.Series(rng.random(n) < EMPTY)
    told = pl.when(empty).then(pl.lit("  ")).otherwise(pl.col("word"))
    return joined.select(text=told, ts=pl.col("number") * ROOM)


def split(given: pl.DataFrame) -> pl.DataFrame:
    """The words of sentences, each at its instant: ``word``, ``ts``.

    >>> split(pl.DataFrame({"text": ["a  b", " "], "ts": [0, 16]})).rows()
    [('a', 0), ('b', 1)]
    """
    words = given.select("ts", word=pl.col("text").str.extract_all(r"\S+"))
    there = words.filter(pl.col("word").list.len() > 0)
    at = pl.int_ranges(0, pl.col("word").list.len())
    assert (there["word"].list.len() <= ROOM).all(), f"a sentence has {ROOM} words at most"
    placed = there.with_columns(at=at).explode("word", "at")
    return placed.select("word", ts=pl.col("ts") + pl.col("at"))


def make(n: int, seed: int) -> Frames:
    """The stream of about ``n`` words."""
    return {"Words": split(sentences(max(n // WORDS, 1), seed))}


def answers(streams: Frames) -> dict[str, list[Answer]]:
    """A count for each word that comes."""
    seen: Counter[str] = Counter()
    found: list[Answer] = []
    for word, ts in streams["Words"].iter_rows():
        seen[word] += 1
        found.append((ts, word, seen[word]))
    return {"counts": found}


WORD_COUNT = Application(
    "WC",
    {"counts": text("word_count")},
    ("counts",),
    make,
    answers,
    target=2.0,
    brisk=0.67,
    events=5_000_000,
    epoch=250_000,
)
