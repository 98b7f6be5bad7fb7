"""REGEX and REPLACE: the automaton says what the engine that tries says, for random patterns of
their common subset and random texts; and it takes time by the lengths of both.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import polars as pl
import pytest

from levada.operators.expressions.scalar import regex, regex_syntax
from levada.operators.expressions.scalar.numbers import ExpressionError

ATOMS = [
    *"abcABk -_1é\u212aſ", r"\n", r"\.", ".", "[a-c]", "[^b]", "[a-z-[b]]", r"\d", r"\w", r"\W",
    r"\s",
    r"\S", r"\D", r"\i", r"\c", r"\p{Lu}", r"\P{L}", "(?:)",
]  # fmt: skip
LETTERS = 'abcABkK -_1.é\u212aſ\u0663\n"\\'


def pattern(draw: random.Random, depth: int = 3) -> str:
    """A pattern of a small grammar."""
    match draw.randrange(7 if depth else 2):
        case 0 | 1:
            return draw.choice(ATOMS)
        case 2:
            return "".join(pattern(draw, depth - 1) for _ in range(draw.randrange(1, 4)))
        case 3:
            return f"({pattern(draw, depth - 1)}|{pattern(draw, depth - 1)})"
        case 4:
            return (
                f"(?:{pattern(draw, depth - 1)}){draw.choice(['*', '+', '?', '{1,2}', '*?', '+?'])}"
            )
        case 5:
            return f"({pattern(draw, depth - 1)})"
    return draw.choice(["^{}", "{}$", "^{}$"]).format(pattern(draw, depth - 1))


def cases(draw: random.Random, n: int) -> Iterator[tuple[str, str, list[str]]]:
    """Patterns with flags, and texts."""
    for _ in range(n):
        texts = ["".join(draw.choices(LETTERS, k=draw.randrange(9))) for _ in range(20)]
        yield pattern(draw), "".join(f for f in "smix" if draw.random() < 0.3), texts


def test_both_engines_find_the_same(random_seed: int) -> None:
    linear = 0
    for text, flags, texts in cases(random.Random(random_seed), 1500):
        try:
            found = regex.compile_(text, flags)
        except ExpressionError:
            continue
        translated = regex_syntax.backtracking(text, flags)
        oracle = re.compile(translated, regex_syntax.options_of(flags))
        linear += found.linear is not None
        expected = [oracle.search(t) is not None for t in texts]
        assert found.found(pl.Series(texts)).to_list() == expected, (text, flags, texts)
        if oracle.search("") is None:
            done = found.replaced(pl.Series(texts), "<$0>").to_list()
            assert done == [oracle.sub(r"<\g<0>>", t) for t in texts], (text, flags, texts)
    assert linear > 1000


def test_a_pattern_that_tries_for_ever_does_not(random_seed: int) -> None:
    texts = pl.Series(["a" * 40 + "!"] * 1000)
    for text in ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        found = regex.compile_(text, "")
        assert found.linear is not None, "who does not go back takes no time to speak of"
        assert found.found(texts).to_list() == [False] * 1000


def test_a_back_reference_has_a_second() -> None:
    found = regex.compile_(r"^((a|aa)+)\1$", "")
    assert found.linear is None
    texts = pl.Series(["a" * 61, "aaaa"])
    assert found.found(texts).to_list() == [None, True]
    with pytest.raises(TimeoutError):
        regex._tried(found.tried, found.options).search("a" * 61, timeout=0.05)
