"""One run of Levada's engine, measured: streams and queries in, counts and costs out.

Results go the whole way to published segments, which the driver reads once, as it does for any sink. ``stepped`` runs the same
epochs in this process without Spark (for profiles).
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.meter import Meter
from levada import Engine
from levada.runtime.manifest import Manifest

Streams = Mapping[str, Mapping[str, Any]]
Queries = Mapping[str, Mapping[str, str]]


def run_engine(streams: Streams, queries: Queries, *, epoch_rows: int, warm: int, stepped: bool) -> dict[str, Any]:
    """The side ``levada``: ``count`` are all solutions of all queries, ``warm`` the elements that do not count.

    ``streams`` maps names to ``{"source": path, ..}``, ``queries`` to ``{"text": .., "dialect": ..}``.
    """
    meter = Meter(warm)
    with tempfile.TemporaryDirectory(prefix="levada-bench-") as folder:
        engine = Engine(
            False if stepped else None, checkpoint=Path(folder) / "c", epoch_rows=epoch_rows, keep_results=False, seed=7
        )
        with engine:
            for name, stream in streams.items():
                engine.stream(name, **stream)
            for name, query in queries.items():
                engine.register(query["text"], name=name, dialect=query["dialect"])
            engine.on_epoch(lambda manifest: meter.see(_elements(manifest), manifest.ended))
            engine.start(once=True)
            engine.await_end()
            totals = engine.last_manifest()
        assert totals is not None, "there was an epoch"
    return meter.side(sum(n for n, _ in totals.totals.values()), epoch_rows=epoch_rows)


def _elements(manifest: Manifest) -> int:
    return sum(stream.elements for stream in manifest.streams.values())
