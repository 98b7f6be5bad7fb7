"""The completions of a typed text: keywords and functions of the dialect, names of streams, columns
and graphs, prefixes, variables; for a command its arguments.

``candidates`` is a function of the text before the cursor and of the session. Cost: a pass over the
text for each key.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from functools import cache

from levada.cli.shell.session import TABLE, Session
from levada.cli.tables.table_cells import prefixes_of
from levada.connectors.config.stream_options import OPTIONS
from levada.connectors.serialization.result_formats import LINES
from levada.core.rdf_terms import RDF, XSD
from levada.errors import UsageError
from levada.language.cql.parser import words as cql_words
from levada.language.dialects.detect import DIALECTS, dialect_of, is_cql
from levada.language.sparql.parser import words as sparql_words
from levada.language.translate.cql.expressions import AGGREGATES

STAGES = ("ast", "algebra", "optimized", "physical", "topology")
_WELL_KNOWN = {
    "rdf": RDF,
    "xsd": XSD,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
}
_HERE = re.compile(r"(?:[?$]\w*|<[^<>\s]*|[\w.-]*:[\w.-]*|\w+)?$")
_NAME = re.compile(r"[\w.-]*:[\w.-]*\w")
_VARIABLE = re.compile(r"[?$]\w+")
_QUIET = re.compile(r"#[^\n]*|--[^\n]*|\"(?:[^\"\\\n]|\\.)*\"")


def candidates(before: str, session: Session, commands: Iterable[str]) -> tuple[str, list[str]]:
    """Returns the word before the cursor and its completions.

    >>> candidates("SELECT ?room WHERE { ?r", Session(), ())
    ('?r', ['?room'])
    """
    if before.lstrip().startswith("\\"):
        return _of_command(before.lstrip(), session, commands)
    match = _HERE.search(before)
    here = match.group() if match else ""
    typed = before[: len(before) - len(here)]
    if not here and not re.search(r"(?i)\b(?:on|from|stream|prefix)\s+$", before):
        return "", []
    return here, _matching_words(here, _words(here, typed, session))


def _words(here: str, typed: str, session: Session) -> Iterable[str]:
    if here.startswith(("?", "$")):
        return _VARIABLE.findall(_QUIET.sub("", typed))
    if here.startswith("<"):
        return [f"<{name}>" for name in _iris(session)]
    prefixes = {**_WELL_KNOWN, **session.prefixes, **prefixes_of(typed)}
    if re.search(r"(?i)\bprefix\s+$", typed):
        return [f"{name}: <{iri}>" for name, iri in prefixes.items()]
    last = session.last.text if session.last is not None else ""
    names = _NAME.findall(_QUIET.sub("", typed) + " " + last)
    said = [f"{name}:" for name in (*prefixes_of(typed), *session.prefixes)]
    return [*said, *names, *_streams(session, prefixes), *_keywords(typed + here, session)]


def _keywords(text: str, session: Session) -> list[str]:
    try:
        dialect = dialect_of(text, session.dialect).name
    except UsageError:
        dialect = "rspql"
    return sorted(_words_of(dialect))


@cache
def _words_of(dialect: str) -> frozenset[str]:
    """Returns keywords and functions of a dialect."""
    if is_cql(dialect):
        return frozenset(cql_words() | {name.upper() for name in AGGREGATES})
    return frozenset(sparql_words(dialect))


def _iris(session: Session) -> list[str]:
    app = session.app
    graphs = [s.graph for s in app.static if s.graph]
    return [s.name for s in app.streams if ":" in s.name] + graphs


def _streams(session: Session, prefixes: dict[str, str]) -> list[str]:
    """Returns streams by their names in queries, the columns of tables, and the names of
    queries.
    """
    names = []
    for stream in session.app.streams:
        names += [stream.name, *stream.columns]
        for name, namespace in prefixes.items():
            if stream.name.startswith(namespace):
                names.append(f"{name}:{stream.name[len(namespace) :]}")
            elif ":" not in stream.name and name not in _WELL_KNOWN:
                names.append(f"{name}:{stream.name}")
    return names + [query.name for query in session.app.queries]


def _matching_words(here: str, words: Iterable[str]) -> list[str]:
    """Returns the words with this beginning; keywords in the case of the typed text."""
    lower = here.islower()
    fitting: dict[str, None] = {}
    for word in words:
        if word.lower().startswith(here.lower()) and word != here:
            fitting[word.lower() if lower and word.isupper() else word] = None
    return list(fitting)


def _of_command(text: str, session: Session, commands: Iterable[str]) -> tuple[str, list[str]]:
    """Returns the completions of a command's name or argument."""
    word, _, rest = text.partition(" ")
    if not _:
        return word, [name for name in commands if name.startswith(word) and name != word]
    choices: dict[str, Sequence[str]] = {
        "\\format": (TABLE, *LINES),
        "\\dialect": ("auto", *DIALECTS),
        "\\explain": STAGES,
        "\\times": ("iso", "ms"),
        "\\run": [query.name for query in session.app.queries],
    }
    if word in choices:
        return rest, [choice for choice in choices[word] if choice.startswith(rest)]
    if word in ("\\static", "\\save", "\\stream"):
        return _of_path(word, rest)
    return rest, []


def _of_path(word: str, rest: str) -> tuple[str, list[str]]:
    """Returns the completions of a path or of a stream's option."""
    if word == "\\stream":
        if "," in rest:
            option = rest.rpartition(",")[2]
            return option, [f"{name}=" for name in OPTIONS if name.startswith(option)]
        if "=" not in rest:
            return rest, []
        rest = rest.partition("=")[2]
    paths = sorted(glob.glob(glob.escape(os.path.expanduser(rest)) + "*"))
    return rest, [path + "/" * os.path.isdir(path) for path in paths]
