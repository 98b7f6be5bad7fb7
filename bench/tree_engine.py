"""An engine of today or of an earlier commit, by calls that all of them have since 466a6213.

``levada`` is the one of ``PYTHONPATH``. So nothing here imports a module below it: where the API
has changed, or where only private calls exist, the functions of this module try one after the
other.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import levada
from levada import Engine


@dataclass(frozen=True, slots=True)
class Spec:
    """One query over streams, in epochs of ``elements`` elements at most.

    ``streams`` maps names to options, of which ``source`` is a path; ``rows`` are the triples or
    events of a full epoch. ``empty``: all epochs after the first read nothing.
    """

    streams: Mapping[str, Mapping[str, Any]]
    text: str
    dialect: str
    elements: int
    rows: int
    partitions: int = 2
    empty: bool = False

    def to_json(self) -> dict[str, Any]:
        """The arguments of ``Spec(..)``."""
        return asdict(self)


@contextmanager
def open_engine(spec: Spec, *, stepped: bool, keep_results: bool = False) -> Iterator[Engine]:
    """An engine on a checkpoint of its own with the streams and the query, not started."""
    with (
        tempfile.TemporaryDirectory(prefix="levada-bench-") as folder,
        Engine(
            spark=False if stepped else None,
            checkpoint=Path(folder) / "checkpoint",
            partitions=spec.partitions,
            epoch_rows=spec.elements,
            keep_results=keep_results,
            seed=7,
        ) as engine,
    ):
        for name, options in spec.streams.items():
            engine.stream(name, **options)
        engine.register(spec.text, name="q", dialect=spec.dialect)
        yield engine


def on_epoch(engine: Engine, see: Callable[[Any], None]) -> None:
    """Calls ``see`` with the manifest of each epoch, after its publication."""
    call = getattr(engine, "_on_epoch", None)
    # 466a6213 has a public method, and a list of the private name
    (call if callable(call) else engine.on_epoch)(see)  # type: ignore[attr-defined]


def await_spark(engine: Engine) -> None:
    """Waits until epochs run on Spark; earlier engines start it before their first epoch."""
    wait = getattr(engine, "_await_spark", None)
    if wait is not None:
        wait()


def empty_epochs(engine: Engine, epochs: int) -> None:
    """Has so many epochs after the first read nothing, by the ``bench.empty`` of the engine's own
    tree, which replaces what that engine decides.
    """
    path = Path(levada.__file__).parents[2] / "bench" / "empty.py"
    found = importlib.util.spec_from_file_location("empty_of_tree", path)
    assert found is not None and found.loader is not None, f"{path} can be loaded"
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.empty_after_first(engine, epochs)


def rows_read(manifest: Any) -> int:
    """Triples and events that have been read so far."""
    return sum(stream.triples for stream in manifest.streams.values())


def results_so_far(manifest: Any) -> int:
    """Results of the query since the beginning; earlier manifests have them by query."""
    if hasattr(manifest, "results"):
        return int(manifest.results)
    return sum(int(solutions) for solutions, _ in manifest.totals.values())
