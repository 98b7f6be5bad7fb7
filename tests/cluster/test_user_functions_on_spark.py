"""Functions of the user in workers of Spark, which import them by name from a folder that is not on
their path; one that they cannot import stops the run with a sentence.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from levada import Engine, UsageError
from levada.cli.app.app_file import load_app
from levada.core import user_functions
from levada.errors import EngineError, LevadaError
from levada.runtime.executor import Executor
from levada.runtime.warmup_executor import WarmupExecutor

pytestmark = pytest.mark.spark
MODULE = """import os
import levada, polars as pl

@levada.function(iri="http://e/process", name="process", arguments=("double",), returns="integer")
def process(a):
    if (a > 900).any():
        raise ValueError("too large")
    return pl.Series([os.getpid()] * len(a))

@levada.operator(iri="http://e/seen", name="seen", takes={}, returns={"n": "integer"},
                 state={"n": "integer"})
def seen(rows, state):
    n = pl.col("n").fill_null(0) + pl.int_range(1, pl.len() + 1).over("key")
    out = rows.join(state, on="key", how="left").select("row", "key", n=n)
    return out, out.group_by("key").agg(pl.col("n").max())

@levada.aggregate(iri="http://e/largest", name="largest", argument="double",
                  state={"m": "double"}, returns="double")
class Largest:
    @staticmethod
    def fold(rows):
        return rows.group_by("group").agg(m=pl.col("value").max())
    @staticmethod
    def merge(parts):
        return parts.group_by("group").agg(pl.col("m").max())
    @staticmethod
    def finish(parts):
        return parts["m"]
"""


@pytest.fixture(name="module")
def declared_module(tmp_path: Path) -> Any:
    """The module of an app file, whose functions are declared as long as the test runs."""
    name = f"spark_functions_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    places = [f"{name}:{function}" for function in ("process", "seen", "Largest")]
    (tmp_path / "app.yaml").write_text(f"functions: {places}")
    before = {*user_functions.DECLARED}
    load_app(tmp_path / "app.yaml")
    yield name
    for iri in {*user_functions.DECLARED} - before:
        del user_functions.DECLARED[iri]
    sys.modules.pop(name, None)


class OnSpark(Engine):
    """An engine none of whose jobs run in this process."""

    def _executor(self) -> Executor:
        executor = super()._executor()
        if isinstance(executor, WarmupExecutor):
            executor.here = False
            executor.await_warm()
        return executor


def run(folder: Path, spark: Any, texts: dict[str, str]) -> dict[str, list[Any]]:
    rows = "".join(f"{10 * i},d{i % 3},{i}.0\n" for i in range(1, 601))
    (folder / "t.csv").write_text("ts,dev,v\n" + rows)
    with OnSpark(spark=spark, epoch_rows=150, partitions=2) as engine:
        engine.stream("T", folder / "t.csv", schema="dev:string;v:double", time="field:ts")
        asked = {n: engine.register(text, name=n, dialect="cql") for n, text in texts.items()}
        engine.start(once=True)
        engine.await_end()
        return {
            name: sorted((r.time, *row) for r in query.results() for row in r.rows.rows())
            for name, query in asked.items()
        }


WINDOW = "[Range 2 Seconds Slide 1 Second]"
QUERIES = {
    "seen": "Rstream(Select dev, n From Table(Seen(Table T Partition By dev)) [Now])",
    "largest": f"Rstream(Select dev, Largest(v) As m From T {WINDOW} Group By dev)",
}


def test_workers_import_functions_and_answer_as_this_process(
    module: str, tmp_path: Path, spark: Any
) -> None:
    process = f"Rstream(Select Process(v) As p From T {WINDOW})"
    there = run(tmp_path, spark, {**QUERIES, "process": process})
    processes = {row[1] for row in there.pop("process")}
    assert there == run(tmp_path, False, QUERIES)
    assert len(there["seen"]) == 600
    assert f'"{os.getpid()}"^^<http://www.w3.org/2001/XMLSchema#integer>' not in processes


def test_a_function_that_fails_in_a_worker_suspends_its_query(
    module: str, tmp_path: Path, spark: Any
) -> None:
    bad = f"Rstream(Select Process(v + 500) As p From T {WINDOW})"
    with pytest.warns(UserWarning, match=rf"bad is suspended.*{module}\.py:7: ValueError: too"):
        there = run(tmp_path, spark, {**QUERIES, "bad": bad})
    del there["bad"]
    assert there == run(tmp_path, False, QUERIES)


def test_a_module_that_workers_lack_is_refused(module: str, tmp_path: Path, spark: Any) -> None:
    (tmp_path / f"{module}.py").unlink()
    with pytest.raises(
        LevadaError, match=rf"The function {module}:\w+ cannot be imported"
    ) as error:
        run(tmp_path, spark, QUERIES)
    assert isinstance(error.value, EngineError | UsageError)
