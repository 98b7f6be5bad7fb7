"""Of which form joins are, where that can be chosen: a word that an engine is told."""

from __future__ import annotations

from enum import StrEnum

from levada.errors import UsageError, near


class JoinForm(StrEnum):
    """How three and more parts are joined: two at a time, what is joined kept as state; or at once,
    where that can be.
    """

    BINARY = "binary"
    MULTIWAY = "multiway"


def join_form_of(word: str) -> JoinForm:
    """The form of this name. Raises ``UsageError``.

    >>> join_form_of("multiway").name
    'MULTIWAY'
    """
    if word not in list(JoinForm):
        raise UsageError(f"There is no form of joins {word}.", hint=near(word, list(JoinForm)))
    return JoinForm(word)
