"""The parser of ``--stream NAME=PATH[,key=value...]``, ``--static
PATH[,graph=IRI][,format=WORD][,reload=true]`` and ``--to QUERY=URL[,key=value...]``.

IRIs, paths and regular expressions may contain ``=`` and ``,``. The rules, in this order:

1. ``<IRI>=PATH`` is unambiguous.
2. A plain word before the first ``=`` is the name.
3. Else NAME is an IRI. It ends at the first ``=`` before a path: something that exists (a file, a
   folder, a pattern with matches) or that begins with ``/``, ``./``, ``../`` or ``~``. Without such
   a path NAME ends at the first ``=``.
4. A comma begins an option if a word and ``=`` follow it (``,lateness=10s``). Other commas belong
   to the text before them.

A path that contains ``,word=`` needs an app file.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from levada.cli.app.app_file import StaticSource, To, check_graph
from levada.connectors.config.input_formats import RDF, word_of
from levada.connectors.config.kafka_config import hint_of
from levada.connectors.config.secret_reference import without_secrets
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import OPTIONS, parse_flag
from levada.core.names import check_stream_name, is_iri, is_word
from levada.errors import UsageError, near

if TYPE_CHECKING:
    from levada.connectors.config.table_config import TableConfig

_OPTION = re.compile(r",(?=[A-Za-z_]+=)")
_STATIC = ("graph", "format", "reload")
_ROOTED = ("/", "./", "../", "~")


def parse_stream(text: str) -> StreamConfig:
    """Parses one ``--stream``. Raises ``UsageError``.

    >>> stream = parse_stream("http://e/s?id=5=./a.nt,lateness=10s")
    >>> stream.name, stream.path, stream.lateness
    ('http://e/s?id=5', './a.nt', 10000)
    """
    name, path, options = stream_words(text)
    return StreamConfig.from_options(name, path, **options)


def stream_words(text: str) -> tuple[str, str, dict[str, str]]:
    """Splits one ``--stream`` into name, path and options, as texts. Raises ``UsageError``.

    >>> stream_words("temp=./a.nt,lateness=10s")
    ('temp', './a.nt', {'lateness': '10s'})
    """
    name, rest = split_name(text, _exists)
    path, options = split_options(rest)
    for key in options:
        if key not in OPTIONS:
            raise UsageError(f"The stream {name} has no option {key}.", hint=hint_of(key, OPTIONS))
    return check_stream_name(name), path, options


def parse_static(text: str) -> StaticSource:
    """Parses one ``--static``. Raises ``UsageError``.

    >>> parse_static("rooms.ttl,graph=http://e/rooms").graph
    'http://e/rooms'
    """
    path, options = split_options(text)
    for key in options:
        if key not in _STATIC:
            raise UsageError(f"Static data have no option {key}.", hint=near(key, _STATIC))
    if not path:
        raise UsageError(f"--static {text} names no file.", hint="Say PATH or PATH,graph=IRI.")
    form = word_of(options["format"]) if "format" in options else None
    if form is not None and form not in RDF:
        raise UsageError(f"{form} is no format of static RDF.", hint=near(form, RDF))
    graph = check_graph(options["graph"]) if "graph" in options else None
    return StaticSource(
        os.path.expanduser(path), graph, form, parse_flag(options.get("reload", "false"))
    )


def parse_table(text: str) -> TableConfig:
    """Parses one ``--table``. Raises ``UsageError``.

    >>> parse_table("rooms=./rooms.csv,schema=k:string").schema
    (('k', 'string'),)
    """
    from levada.connectors.config.table_config import TableConfig  # here: few runs have tables

    name, rest = split_name(text, _exists)
    source, options = split_options(rest)
    return TableConfig.from_options(name, source, **options)


def parse_output(text: str) -> tuple[str, To]:
    """Parses one ``--to`` into the query's name and the output. Raises ``UsageError``.

    >>> parse_output("hot=kafka://a:9092,b:9092/hot,format=nq")
    ('hot', To(url='kafka://a:9092,b:9092/hot', options={'format': 'nq'}))
    """
    query, equals, rest = text.partition("=")
    url, options = split_options(rest)
    if not equals or "://" not in url or "://" in query:
        raise UsageError(f"--to {without_secrets(text)} names no query.", hint="Say QUERY=URL.")
    return query, To(url, options)


def parse_target(text: str) -> To:
    """Parses a URL with options. Raises ``UsageError``.

    >>> parse_target("kafka://a:9092/letters,format=csv")
    To(url='kafka://a:9092/letters', options={'format': 'csv'})
    """
    url, options = split_options(text)
    if "://" not in url:
        raise UsageError(f"{url} is no URL.", hint="Say kafka://.. or postgresql://..")
    return To(url, options)


def parse_outputs(texts: Sequence[str], queries: Sequence[str]) -> dict[str, list[To]]:
    """Parses several ``--to`` into the outputs of each query. ``QUERY=`` may be absent if there is
    one query. Raises ``UsageError``.

    >>> parse_outputs(["kafka://a:9092/hot"], ["hot"])
    {'hot': [To(url='kafka://a:9092/hot', options={})]}
    """
    outputs: dict[str, list[To]] = {name: [] for name in queries}
    for text in texts:
        url, options = split_options(text)
        if "://" in url and "=" not in url.partition("://")[0]:
            if len(queries) != 1:
                raise UsageError(
                    f"--to {without_secrets(text)} names none of the {len(queries)} queries.",
                    hint="Say QUERY=URL.",
                )
            name, to = queries[0], To(url, options)
        else:
            name, to = parse_output(text)
        if name not in outputs:
            raise UsageError(f"--to names no query: {name}.", hint=near(name, queries))
        outputs[name].append(to)
    return outputs


def split_name(text: str, exists: Callable[[str], bool]) -> tuple[str, str]:
    """Splits a ``--stream`` into name and rest by the rules of the module. ``exists`` tests whether
    a path exists. Raises ``UsageError`` if there is no name.
    """
    if text.startswith("<") and ">=" in text:
        name, _, rest = text[1:].partition(">=")
        return name, rest
    places = [match.start() for match in re.finditer("=", text)]
    if not places or places[0] == 0:
        raise UsageError(
            f"--stream {text} has no name.", hint="Say NAME=PATH, NAME is an IRI or a plain word."
        )
    if is_word(text[: places[0]]):
        return text[: places[0]], text[places[0] + 1 :]
    named = [place for place in places if is_iri(text[:place])]
    followed = (place for place in named if _is_path(split_options(text[place + 1 :])[0], exists))
    place = next(followed, places[0])
    return text[:place], text[place + 1 :]


def _is_path(path: str, exists: Callable[[str], bool]) -> bool:
    return path.startswith(_ROOTED) or (bool(path) and exists(path))


def _exists(path: str) -> bool:
    return os.path.exists(path) or bool(glob.glob(path))


def split_options(text: str) -> tuple[str, dict[str, str]]:
    """Splits a text into a path and its ``key=value`` options. Raises ``UsageError`` if a key is
    repeated.
    """
    path, *parts = _OPTION.split(text)
    options: dict[str, str] = {}
    for part in parts:
        key, _, value = part.partition("=")
        if key in options:
            raise UsageError(f"The option {key} is there twice in {text}.")
        options[key] = value
    return path, options
