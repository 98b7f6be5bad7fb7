"""Names that users give: of queries, of streams, of graphs; one rule each, for the command line, the app file and the API.

A query's name is letters, digits and ``_.-``, and not the name of a folder that holds something else. A stream's name is
its IRI, or a plain word: the word names the stream in CQL and, in SPARQL, every IRI that ends in ``/word`` or ``#word``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from levada.errors import UnknownNameError, UsageError, near

RESERVED = ("late", "dead-letter")  # folders beside those of the queries
_QUERY = re.compile(r"[\w-][\w.-]*")
_WORD = re.compile(r"[^\W\d][\w.-]*")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")


def check_query_name(name: str) -> str:
    """The name, if it is one. Raises ``UsageError``.

    >>> check_query_name("q1.storms")
    'q1.storms'
    """
    if name in RESERVED:
        raise UsageError(f"No query can be called {name}: results of that name are kept for {name} elements.")
    if not _QUERY.fullmatch(name):
        raise UsageError(f"{name!r} is not a name of a query.", hint="A name has letters, digits, _, . and - only.")
    return name


def is_word(name: str) -> bool:
    """Whether a stream's name is a plain word.

    >>> is_word("temp"), is_word("http://e/temp")
    (True, False)
    """
    return _WORD.fullmatch(name) is not None


def is_iri(name: str) -> bool:
    """Whether a text is an absolute IRI (without brackets)."""
    return _IRI.fullmatch(name) is not None


def check_stream_name(name: str) -> str:
    """A stream's name without angle brackets. Raises ``UsageError``."""
    bare = name[1:-1] if name.startswith("<") and name.endswith(">") else name
    if not (is_word(bare) or is_iri(bare)):
        raise UsageError(f"{name!r} is not a name of a stream.", hint="Say an absolute IRI or a plain word.")
    return bare


def match_streams(used: Iterable[str], names: Iterable[str]) -> dict[str, str]:
    """Which registered stream each stream of the queries is: an equal name, else the word that ends the IRI.

    ``used`` are the streams that the queries read, ``names`` those that are registered. Raises ``UnknownNameError`` for one
    that is not registered, ``UsageError`` if a word would stand for two IRIs.

    >>> match_streams(["http://e/temp", "A"], ["temp", "A"])
    {'http://e/temp': 'temp', 'A': 'A'}
    """
    known = list(names)
    matched: dict[str, str] = {}
    for stream in dict.fromkeys(used):
        name = stream if stream in known else _last_word(stream)
        if name not in known:
            raise UnknownNameError(f"There is no stream {stream}.", hint=_known(stream, known))
        other = next((iri for iri, word in matched.items() if word == name and name not in (iri, stream)), None)
        if other is not None:
            hint = "Give the stream by its IRI."
            raise UsageError(f"The word {name} could be <{other}> or <{stream}>.", hint=hint)
        matched[stream] = name
    return matched


def _last_word(iri: str) -> str:
    return re.split(r"[/#]", iri)[-1]


def _known(stream: str, known: list[str]) -> str:
    """The near misses by whole name or by last word."""
    if not known:
        return "No stream is named: say --stream NAME=PATH, or engine.stream(name, path)."
    words = {_last_word(name): name for name in known}
    close = near(_last_word(stream), words)
    return close if close.startswith("Did") else near(stream, known)
