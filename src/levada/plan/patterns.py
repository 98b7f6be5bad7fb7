"""Triple patterns as text, the same for the same pattern whatever its variables are called: for counts and for people."""

from __future__ import annotations

from collections.abc import Sequence

from levada.model.term import Term

MOST_COUNTED = 256  # patterns of a stream whose matches are counted; with more, counting would cost more than it tells


def pattern_text(constants: Sequence[Term | str | None], positions: Sequence[int]) -> str:
    """A pattern's text; ``positions`` are slots, equal where a variable stands twice.

    >>> pattern_text((None, "<a:p>", None), (3, -1, 3))
    '?a <a:p> ?a'
    """
    letters: dict[int, str] = {}
    words = []
    for constant, slot in zip(constants, positions, strict=True):
        words.append(str(constant) if constant is not None else letters.setdefault(slot, "?" + "abc"[len(letters)]))
    return " ".join(words)


def entailed_text(constants: Sequence[Term | str | None], positions: Sequence[int]) -> str:
    """The text of a pattern over entailed triples.

    >>> entailed_text((None, "<a:p>", None), (0, -1, 1))
    '?a <a:p> ?b, entailed'
    """
    return pattern_text(constants, positions) + ", entailed"
