"""``register``: very many queries of one template come, and one more when they are there.

    table   ``register_each``: a text and a table with a row a query
    texts   ``register_all``: the texts of the same queries
    join    ``register_each`` of a text with a join below, queries share by ``relax``

A row is a query, seconds are CPU's. ``register``: until ``register_each`` returns; ``plan``: the
first plan, sealed and written, and the epoch with it; ``worker``: the plan, read by a process that
has none; ``memory``: what the process holds more than before once some epochs have had rows, driver
and worker together, by queries; kernels and modules are loaded before. Then one query more comes:
``one_driver`` is from ``register`` until its plan is written, ``one_worker`` until a worker that
had the plan before has the new one; ``one_epoch``: the first epoch with rows behind it, driver and
worker; ``epoch``: one with as many rows and no newcomer; ``plans``: the bytes of all plans and
catalogs, by queries.
"""

from __future__ import annotations

import gc
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.apart import apart
from bench.result import CountError, Result, check_count
from levada import Engine, QueryRequest
from levada.checkpoint.epoch_context import load_plan
from levada.core.rdf_terms import XSD

COUNTS = (1000, 10_000, 100_000)
HEAD = "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT10S STEP PT10S]\n"
TEXT = HEAD + "WHERE { WINDOW <e:w> { ?x <e:p> <e:{{name}}> ; <e:v> ?v FILTER(?v > {{most}}) } }"
ONE = HEAD + "WHERE { WINDOW <e:w> { ?x <e:p> <e:{{name}}> } }"
KINDS = {"table": (ONE, "exact"), "texts": (ONE, "exact"), "join": (TEXT, "relax")}
TURNS = 5
"""Queries that come one by one; the median counts."""
EACH = 100
"""Triples of an epoch."""


def side(kind: str, queries: int) -> dict[str, Any]:
    """One kind and number."""
    text, sharing = KINDS[kind]
    table = [{"name": f"c{i}", "most": i % 1000} for i in range(queries + TURNS + 1)]
    with tempfile.TemporaryDirectory(prefix="levada-register-") as folder:
        rows = Rows(Path(folder) / "s", queries)
        rows.write()
        _load(rows.folder, _text(text, table[-1]), sharing)
        with Engine(
            spark=False, checkpoint=Path(folder) / "c", partitions=1, seed=7, sharing=sharing
        ) as engine:
            engine.stream("e:s", rows.folder)
            return _measured(engine, rows, kind, text, table)


@dataclass(slots=True)
class Rows:
    """A folder to which files of ``EACH`` triples come, of things that some of the ``queries``
    want.
    """

    folder: Path
    queries: int
    files: int = 0

    def write(self) -> None:
        """One file more."""
        self.folder.mkdir(exist_ok=True)
        at = 1000 * self.files
        lines = [
            f"<e:x{self.files}_{i}> {said} {at} .\n"
            for i in range(EACH // 2)
            for said in (f"<e:p> <e:c{97 * i % self.queries}>", f'<e:v> "{i}"^^<{XSD}integer>')
        ]
        whole = self.folder.with_suffix(".nt")
        whole.write_text("".join(lines))
        whole.rename(self.folder / f"{self.files:04}.nt")
        self.files += 1

    def await_read(self, engine: Engine) -> float:
        """The CPU-seconds until all that is there has been read."""
        began, driver = time.process_time(), engine._driver
        assert driver is not None
        while sum(s.elements for s in driver.last.streams.values()) < EACH * self.files:
            if engine.await_end(0.002):
                raise CountError("The engine ended before it had read all.")
        return time.process_time() - began


def _load(path: Path, text: str, sharing: str) -> None:
    """Runs a query to its end, so that kernels and modules are there and count for nobody."""
    with Engine(spark=False, partitions=1, seed=7, sharing=sharing) as engine:
        engine.stream("e:s", path)
        engine.register(text)
        engine.start(once=True)
        engine.await_end()


def _measured(
    engine: Engine, rows: Rows, kind: str, text: str, table: list[dict[str, Any]]
) -> dict[str, Any]:
    queries = rows.queries
    engine.register(_text(text, table[-1]), name="first")  # what is loaded once
    gc.collect()
    before = psutil.Process().memory_info().rss
    marks = [time.process_time()]
    if kind == "texts":
        batch = [QueryRequest(_text(text, row), f"q{i}") for i, row in enumerate(table[:queries])]
        marks = [time.process_time()]
        held = engine.register_all(batch)
    else:
        held = engine.register_each(text, table[:queries])
    marks.append(time.process_time())
    engine.start()
    _await_plan(engine)
    marks.append(time.process_time())
    assert engine._driver is not None
    _worker(engine)
    marks.append(time.process_time())
    rows.await_read(engine)
    epochs = [_epoch(engine, rows) for _ in range(TURNS)]
    gc.collect()
    memory = psutil.Process().memory_info().rss - before
    ones = [
        (*_one(engine, _text(text, row), i), _epoch(engine, rows))
        for i, row in enumerate(table[queries:-1])
    ]
    check_count(f"{kind} of {queries}", len(held), queries)
    driver, worker, behind = (sorted(one[i] for one in ones)[TURNS // 2] for i in (0, 1, 2))
    return {
        "register": round(marks[1] - marks[0], 3),
        "plan": round(marks[2] - marks[1], 3),
        "worker": round(marks[3] - marks[2], 3),
        "memory": round(memory / queries),
        "one_driver": round(driver, 4),
        "one_worker": round(worker, 4),
        "one_epoch": round(behind, 4),
        "epoch": round(sorted(epochs)[TURNS // 2], 4),
        "plans": round(_bytes(engine) / queries),
    }


def _bytes(engine: Engine) -> int:
    return sum(path.stat().st_size for path in (engine.root / "plans").iterdir())


def _text(text: str, row: dict[str, Any]) -> str:
    return text.replace("{{name}}", str(row["name"])).replace("{{most}}", str(row["most"]))


def _await_plan(engine: Engine) -> None:
    while engine._registry.changed and not engine.await_end(0.005):
        pass


def _worker(engine: Engine) -> None:
    """A worker that reads the newest plan."""
    assert engine._driver is not None
    checkpoint = engine._driver.epochs.checkpoint
    load_plan(str(checkpoint.plan_path(checkpoint.newest_plan())))


def _epoch(engine: Engine, rows: Rows) -> float:
    """An epoch with rows."""
    rows.write()
    return rows.await_read(engine)


def _one(engine: Engine, text: str, number: int) -> tuple[float, float]:
    """One more: the driver's time and the worker's."""
    began = time.process_time()
    engine.register(text, name=f"one{number}")
    _await_plan(engine)
    sealed = time.process_time()
    _worker(engine)
    return sealed - began, time.process_time() - sealed


def run(scale: float, stepped: bool) -> Result:
    """Each kind and number in a process of its own."""
    del stepped  # it always is
    found: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        for queries in COUNTS:
            number = max(10, int(queries * scale))
            found[f"{kind}_{number}"] = apart("bench.register:side", kind=kind, queries=number)
    first, *_ = found
    return Result("register", found[first], None, None, found)
