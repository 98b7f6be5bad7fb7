"""The tree of errors as it is drawn is the tree that there is."""

from __future__ import annotations

import inspect
import re

import pytest

from levada import errors

LINE = re.compile(r"^    ([│ ]*)[├└]── (\w+)", re.MULTILINE)


def drawn() -> dict[str, str]:
    """Each error of the picture in the module's head, with the one that it stands below."""
    above = ["LevadaError"]
    found = {}
    for indent, name in LINE.findall(errors.__doc__ or ""):
        depth = len(indent) // 4 + 1
        found[name] = above[depth - 1]
        above[depth:] = [name]
    return found


def test_the_drawn_tree_is_the_tree() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    real = {
        cls.__name__: cls.__mro__[1].__name__
        for cls in classes
        if issubclass(cls, errors.LevadaError) and cls is not errors.LevadaError
    }
    assert drawn() == real


@pytest.mark.parametrize("column", [1, 41, 5000, 9961, 10_000, 10_001])
def test_the_caret_stands_below_its_place_in_a_long_line(column: int) -> None:
    line = "".join(chr(0x4E00 + i) for i in range(10_000))
    quoted, caret = errors.point_at(line, errors.Span(1, column))
    assert len(quoted) <= 80 + len("  ....")
    assert (quoted + " ")[caret.index("^")] == (line + " ")[column - 1]


def test_a_quoted_line_has_no_character_that_a_terminal_obeys() -> None:
    quoted, _ = errors.point_at("ASK \x1b[2J\u202e{}\x07", errors.Span(1, 5))
    assert quoted == "  ASK ?[2J?{}?"


def test_messages_have_a_bound() -> None:
    error = errors.UsageError("The IRI <" + "x" * 10**6 + "> is long.", hint="y" * 10**6)
    assert len(error.message) == len(error.hint) == errors.MAX_MESSAGE
    assert error.message.startswith("The IRI <xx") and error.message.endswith("x> is long.")
    assert len(str(errors.QueryError("z" * 10**6, span=errors.Span(1, 1), text="q" * 10**6))) < 3000


def test_long_names_are_not_compared() -> None:
    assert errors.near("a" * 10**6, ["a" * (10**6 - 1), "b"]).startswith("Known: ")
