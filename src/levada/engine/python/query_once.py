"""``levada.query``: one query over existing data, in one call."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeGuard, Unpack, cast

from levada.connectors.config.stream_options import StreamOptions
from levada.connectors.sinks.dead_letter_files import Letter
from levada.connectors.spool.row_batches import RdfGraph
from levada.engine.engine import Engine
from levada.engine.python.static_source import StaticSource
from levada.engine.query import Results, collect_reports
from levada.plan.logical.query_options import QueryWords
from levada.runtime.driver.spool_registry import StreamSource

Streams = Mapping[str, StreamSource | tuple[StreamSource, Mapping[str, object]]]
Statics = (
    StaticSource | Sequence[str | os.PathLike[str] | RdfGraph] | Mapping[str | None, StaticSource]
)


def query(
    text: str,
    streams: Streams | None = None,
    static: Statics | None = None,
    *,
    dialect: str | None = None,
    ontology: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    **options: Unpack[QueryWords],
) -> Results:
    """Runs a query over the streams to their ends, without Spark, and returns all its results.

    ``streams``: sources by name, as ``Engine.stream`` takes them, or pairs of a source and its
    options. ``static``: as ``Engine.static`` takes it, or several files or graphs, or a source for
    each graph (None: the default one). ``options``: those of ``Engine.register``. All results are
    in memory. Warns about late elements and dead letters. Raises the errors of an engine.

    >>> text = '''SELECT ?x FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT1S STEP PT1S]
    ...           WHERE { WINDOW <w> { ?x <http://e/p> ?y } }'''
    >>> query(text, {"http://e/s": [("<http://e/a>", "<http://e/p>", 5, 500)]}).to_dicts()[0]["x"]
    'http://e/a'
    """
    with Engine(spark=False, ontology=ontology) as engine:
        for name, value in (streams or {}).items():
            source, said = value if _has_options(value) else (value, {})
            # it raises the errors about wrong options
            engine.stream(name, cast(StreamSource, source), **cast(StreamOptions, said))
        for part, graph in _parts(static):
            engine.static(part, graph)
        asked = engine.register(text, dialect=dialect, **options)
        engine.start(once=True)
        engine.await_end()
        _warn(engine)
        return collect_reports(asked)


def _has_options(value: object) -> TypeGuard[tuple[StreamSource, Mapping[str, object]]]:
    """Returns whether a value is a source with options: a pair whose second part is a mapping,
    since no source is one.
    """
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    return isinstance(value[1], Mapping) and not isinstance(value[0], Mapping)


def _parts(static: Statics | None) -> list[tuple[StaticSource, str | None]]:
    """Returns the sources one by one, each with its graph."""
    if static is None:
        return []
    if isinstance(static, Mapping):
        return [(source, graph) for graph, source in static.items()]
    if isinstance(static, (str, os.PathLike, RdfGraph)) or not isinstance(static, Sequence):
        return [(static, None)]
    files = [item for item in static if isinstance(item, os.PathLike | RdfGraph) or _is_path(item)]
    if len(files) == len(static):
        return [(file, None) for file in files]
    return [(cast("Sequence[str]", static), None)]


def _is_path(item: object) -> TypeGuard[str]:
    """Returns whether a text is a path: statements begin with ``<`` or ``_:``, paths do not."""
    return isinstance(item, str) and not item.lstrip().startswith(("<", "_:"))


def _warn(engine: Engine) -> None:
    """Warns about late elements and dead letters, with the first reason."""
    for name, record in engine._records().items():
        counts = ((record.late, "late"), (record.dead_letters, "not readable"))
        said = ", ".join(f"{n} {what}" for n, what in counts if n)
        if said:
            why = _first_reason(engine.root, name) if record.dead_letters else ""
            warnings.warn(f"Set aside of the stream {name}: {said}.{why}", stacklevel=3)


def _first_reason(root: Path, stream: str) -> str:
    for path in sorted((root / Letter.DEAD).glob("*.ndjson")):
        for line in path.read_bytes().split(b"\n"):
            letter = json.loads(line) if line else {}
            if letter.get("stream") == stream:
                return f" The first: {letter['reason']}: {str(letter['text']).strip()}"
    return ""
