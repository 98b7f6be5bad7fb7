"""Names that users give: of queries, of streams, of graphs; one rule each, for the command line,
the app file and the API.

A query's name consists of letters, digits and ``_.-``, and is not the name of a folder with another
use; no two names differ by case only, since some file systems ignore case. A stream's name is its
IRI, or a plain word: the word names the stream in CQL and, in SPARQL, every IRI that ends in
``/word`` or ``#word``.

Users refer to a stream that a query makes by the name in the query's REGISTER, or by the query's
own name. Within the engine it is ``query#``, with a number behind that once it has begun
(``query#3``), which no stream's or query's name can be. A removed stream leaves its number, and is
then called ``#3``: like a stream of a removed query, it has ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from levada.errors import UnknownNameError, UsageError, near

RESERVED = ("late", "dead-letter")  # folders beside those of the queries
MOST_BYTES = 200  # of a query's name: file systems take 255
_QUERY = re.compile(r"[\w-][\w.-]*")
_WORD = re.compile(r"[^\W\d][\w.-]*")
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\\ud800-\udfff]*")


def check_query_name(name: str) -> str:
    """The name, if it is one. Raises ``UsageError``.

    >>> check_query_name("q1.storms")
    'q1.storms'
    """
    if name.lower() in RESERVED:
        raise UsageError(
            f"No query can be called {name}: the folder of that name holds {name} elements.",
            hint="A query has the name of its file: rename the file.",
        )
    if len(name.encode("utf-8", "replace")) > MOST_BYTES:
        raise UsageError(
            f"The name of the query {name[:40]}.. is longer than {MOST_BYTES} bytes.",
            hint="Its results are in a folder of that name.",
        )
    if not _QUERY.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name of a query.",
            hint="A name has letters, digits, _, . and - only.",
        )
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
        raise UsageError(
            f"{name!r} is not a name of a stream.", hint="Say an absolute IRI or a plain word."
        )
    return bare


def derived_by(query: str) -> str:
    """The name within the engine of the stream that a query makes.

    >>> iri = "http://e/s#hot"
    >>> derived_by("hot"), display_name("hot#3"), display_name(iri)
    ('hot#', 'hot', 'http://e/s#hot')
    >>> is_derived("hot#3"), is_derived(iri)
    (True, False)
    """
    return f"{query}#"


def is_derived(stream: str) -> bool:
    """Whether a name within the engine is that of a stream made by a query, or of a removed one."""
    return "#" in stream and ":" not in stream


def removed_name(number: int) -> str:
    """The name within the engine of the stream of this number, once it has been taken away.

    >>> removed_name(3), is_left("#3"), is_left("hot#3"), is_derived("#3"), display_name("#3")
    ('#3', True, False, True, '')
    """
    return f"#{number}"


def is_left(stream: str) -> bool:
    """Whether a name within the engine is that of a stream that has been taken away."""
    return stream.startswith("#")


def display_name(stream: str) -> str:
    """The name of a stream for people: of one that a query makes the query's."""
    return stream.partition("#")[0] if is_derived(stream) else stream


Makers = Mapping[str, Sequence[str]]
"""The queries that make a stream, by each name that it can be asked for by."""


def match_streams(
    used: Iterable[str], names: Iterable[str], makers: Makers | None = None
) -> dict[str, str]:
    """Returns the stream of each stream name in queries: an equal name, else the word that ends the
    IRI; a declared stream before one that a query makes.

    ``used`` are the streams that the queries read, ``names`` the declared streams, ``makers`` have
    the streams that queries make. Raises ``UnknownNameError`` for an unknown stream, ``UsageError``
    if a word would match two IRIs, or two queries make it.

    >>> streams = ["http://e/temp", "A", "http://e/hot"]
    >>> match_streams(streams, ["temp", "A"], {"http://e/hot": ["q1"]})
    {'http://e/temp': 'temp', 'A': 'A', 'http://e/hot': 'q1#'}
    """
    known = list(names)
    matched: dict[str, str] = {}
    for stream in dict.fromkeys(used):
        name = _match(stream, known, makers or {})
        other = next(
            (iri for iri, word in matched.items() if word == name and _is_taken(iri, stream, name)),
            None,
        )
        if other is not None:
            hint = "Give the stream by its IRI."
            raise UsageError(
                f"The word {_last_word(stream)} could be <{other}> or <{stream}>.", hint=hint
            )
        matched[stream] = name
    return matched


def _match(stream: str, known: list[str], makers: Makers) -> str:
    for name in (stream, _last_word(stream)):
        if name in known:
            return name
        if queries := makers.get(name):
            if len(queries) > 1:
                hint = "Ask for one of them by a name that the other has not."
                raise UsageError(
                    f"The stream {stream} is made by the queries {' and '.join(queries)}.",
                    hint=hint,
                )
            return derived_by(queries[0])
    raise UnknownNameError(
        f"There is no stream {stream}.", hint=_near_names(stream, [*known, *makers])
    )


def _is_taken(before: str, stream: str, name: str) -> bool:
    """Whether both are IRIs of which only the last word says that they are this stream."""
    if is_derived(name):
        return _last_word(before) == _last_word(stream) and is_iri(before) and is_iri(stream)
    return name not in (before, stream)


def _last_word(iri: str) -> str:
    return re.split(r"[/#]", iri)[-1]


def _near_names(stream: str, known: list[str]) -> str:
    """The near misses by whole name or by last word."""
    if not known:
        return "No stream is named: say --stream NAME=PATH, or engine.stream(name, path)."
    words = {_last_word(name): name for name in known}
    close = near(_last_word(stream), words)
    return close if close.startswith("Did") else near(stream, known)


def table_graph(name: str) -> str:
    """Returns the IRI of the static graph that holds the rows of a table.

    >>> table_graph("rooms"), table_graph("http://e/rooms")
    ('urn:levada:table:rooms', 'http://e/rooms')
    """
    return f"urn:levada:table:{name}" if is_word(name) else name


def column_iri(graph: str, column: str) -> str:
    """Returns the predicate of a column's values in the graph of a table.

    >>> column_iri("urn:levada:table:rooms", "floor no")
    'urn:levada:table:rooms#floor%20no'
    """
    return f"{graph}#{quote(column, safe='')}"
