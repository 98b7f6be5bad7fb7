"""REGEX and REPLACE: Polars' engine and the engine that tries mean what Python's means, for random
patterns and random texts of a small alphabet; and Polars' takes time by the lengths of both.

Python's pattern is not made by the translation: each atom is the set of its letters.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from string import ascii_lowercase, ascii_uppercase

import polars as pl
import pytest

from levada.operators.expressions.scalar import regex
from levada.operators.expressions.scalar.numbers import ExpressionError

LETTERS = 'abcABkK -_1.\u00e9\u212a\u017f\u0663\n\r"\\'
Flags = str
Holds = Callable[[str, Flags], bool]


def among(members: str) -> Holds:
    """Whether a letter is one of these, or with the flag i a case variant of one."""

    def holds(letter: str, flags: Flags) -> bool:
        variants = [(c.lower(), c.upper()) for c in members if "i" in flags]
        return letter in members or any(
            letter.lower() == low or letter.upper() == up for low, up in variants
        )

    return holds


def of_category(*names: str) -> Holds:
    return lambda letter, _: unicodedata.category(letter).startswith(names)


def other(holds: Holds) -> Holds:
    return lambda letter, flags: not holds(letter, flags)


WORD = other(of_category("P", "Z", "C"))
ATOMS: list[tuple[str, Holds]] = [
    *((c, among(c)) for c in "abcABk -_1\u00e9\u212a\u017f"),
    (r"\n", among("\n")),
    (r"\.", among(".")),
    (r"\\", among("\\")),
    (".", lambda letter, flags: "s" in flags or letter not in "\n\r"),
    ("[a-c]", among("abc")),
    ("[^b]", other(among("b"))),
    ("[a-z-[b]]", lambda c, f: among(ascii_lowercase)(c, f) and not among("b")(c, f)),
    ("[^A-Z-[a]]", lambda c, f: not among(ascii_uppercase)(c, f) and not among("a")(c, f)),
    (r"[b\W]", lambda c, f: among("b")(c, f) or not WORD(c, f)),
    (r"\d", of_category("Nd")),
    (r"\D", other(of_category("Nd"))),
    (r"\w", WORD),
    (r"\W", other(WORD)),
    (r"\s", lambda c, _: c in " \n\r"),
    (r"\S", lambda c, _: c not in " \n\r"),
    (r"\i", lambda c, _: c not in ' -1.\n\r"\\'),
    (r"\c", lambda c, _: c not in ' \n\r"\\'),
    (r"\p{Lu}", of_category("Lu")),
    (r"\P{L}", other(of_category("L"))),
    (r"\p{IsBasicLatin}", lambda c, _: c.isascii()),
]
ANCHORS = {
    "^": {"": r"\A", "m": r"(?:\A|(?<=\n)(?!\Z))"},
    "$": {"": r"\Z", "m": r"(?:(?=\n)|(?<!\n)\Z)"},
}
QUANTIFIERS = ["*", "+", "?", "{1,2}", "{2}", "*?", "+?", "{0,1}?"]
Pair = tuple[str, str]
"""An XPath pattern, and Python's."""


def pattern(draw: random.Random, flags: Flags, depth: int = 3) -> Pair:
    """A pattern of a small grammar."""

    def inner() -> Pair:
        return pattern(draw, flags, depth - 1)

    match draw.randrange(8 if depth else 2):
        case 0 | 1:
            text, holds = draw.choice(ATOMS)
            letters = "".join(re.escape(c) for c in LETTERS if holds(c, flags))
            return text, f"[{letters}]" if letters else "(?!)"
        case 2:
            parts = [inner() for _ in range(draw.randrange(1, 4))]
            return "".join(p for p, _ in parts), "".join(q for _, q in parts)
        case 3:
            (a, b), (c, d) = inner(), inner()
            return f"({a}|{c})", f"({b}|{d})"
        case 4:
            (a, b), times = inner(), draw.choice(QUANTIFIERS)
            return f"(?:{a}){times}", f"(?:{b}){times}"
        case 5:
            a, b = inner()
            return f"({a})", f"({b})"
        case 6:
            return "(?:)", "(?:)"
    anchor, (a, b) = draw.choice("^$"), inner()
    python = ANCHORS[anchor]["m" if "m" in flags else ""]
    return (anchor + a, python + b) if anchor == "^" else (a + anchor, b + python)


def cases(draw: random.Random, n: int) -> Iterator[tuple[Pair, str, list[str]]]:
    """Patterns with flags, and texts."""
    for _ in range(n):
        flags = "".join(f for f in "smi" if draw.random() < 0.3)
        texts = ["".join(draw.choices(LETTERS, k=draw.randrange(9))) for _ in range(20)]
        yield pattern(draw, flags), flags, texts


def test_both_engines_find_what_python_finds(random_seed: int) -> None:
    for (text, python), flags, texts in cases(random.Random(random_seed), 1000):
        made, oracle = regex.compile_(text, flags), re.compile(python)
        assert made.linear is not None
        series = pl.Series(texts)
        expected = [oracle.search(t) is not None for t in texts]
        tries = regex.Regex(None, False, made.tried, made.groups, made.literal)
        for engine in (made, tries):
            assert engine.search(series).to_list() == expected, (text, flags, texts)
            if oracle.search("") is None:
                done = engine.replace_all(series, "<$0>").to_list()
                assert done == [oracle.sub(r"<\g<0>>", t) for t in texts], (text, flags, texts)
            else:
                with pytest.raises(ExpressionError):
                    engine.replace_all(series, "<$0>")


def test_a_pattern_that_tries_for_ever_does_not() -> None:
    texts = pl.Series(["a" * 40 + "!"] * 1000)
    for text in ("^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        found = regex.compile_(text, "")
        assert found.linear is not None, "who does not go back takes no time to speak of"
        assert found.search(texts).to_list() == [False] * 1000


def test_a_back_reference_has_a_second() -> None:
    found = regex.compile_(r"^((a|aa)+)\1$", "")
    assert found.linear is None
    texts = pl.Series(["a" * 61, "aaaa"])
    assert found.search(texts).to_list() == [None, True]
    with pytest.raises(TimeoutError):
        regex._compile_tries(found.tried).search("a" * 61, timeout=0.05)
