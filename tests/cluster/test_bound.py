"""Tasks bound to processors on Spark: they run where they are bound, and give the same."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.errors import EngineError
from levada.runtime.executor import Job, LocalExecutor
from levada.runtime.spark.spark_executor import SparkExecutor

pytestmark = pytest.mark.spark
QUERY = """PREFIX : <http://e/>
SELECT ?s (COUNT(?v) AS ?n) FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?s :p ?v . ?v :q ?u } } GROUP BY ?s
"""


def test_bound_tasks_run_where_their_partition_is_bound_and_give_the_same(spark: Any) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    places = ((allowed[0],), (allowed[-1],))
    bound = SparkExecutor(spark, bound=places)
    job = Job(b"", [], 1, 5, ("spark_jobs:intake", "spark_jobs:bound_stage"))
    assert [json.loads(o) for o in bound.run(job)] == [list(places[p % 2]) for p in range(5)]
    assert all(json.loads(o) == allowed for o in SparkExecutor(spark).run(job))  # bound no more
    context = json.dumps({"size": 20, "partitions": 3, "stages": 2}).encode()
    functions = ("spark_jobs:intake", "spark_jobs:stage")
    for fused in (False, True):
        job = Job(context, [b"a", b"b"], 2, 3, functions, fused=fused)
        assert bound.run(job) == LocalExecutor().run(job)


def test_a_processor_that_is_gone_is_told_through_spark(spark: Any) -> None:
    executor = SparkExecutor(spark, bound=((4095,),))
    job = Job(b"", [], 1, 1, ("spark_jobs:intake", "spark_jobs:bound_stage"))
    with pytest.raises(EngineError, match="could not be bound to the processors 4095 any more"):
        executor.run(job)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_engine_s_results_are_the_same(spark: Any, tmp_path: Path) -> None:
    lines = "".join(
        f"<http://e/a{i % 5}> <http://e/p> <http://e/b{i % 7}> {100 * i} .\n"
        f"<http://e/b{i % 7}> <http://e/q> <http://e/c{i % 3}> {100 * i} .\n"
        for i in range(200)
    )
    (tmp_path / "s.nt").write_text(lines)
    allowed = sorted(os.sched_getaffinity(0))
    fields = {"clock": 2, "line": 64, "cores": 1, "places": ["a"], "latency": [[0]]}
    machine = fields | {"bandwidth": [[9]], "processors": [allowed[-1:]]}
    (tmp_path / "m.json").write_text(json.dumps(machine))

    told: list[Any] = []

    def results(**options: Any) -> list[Any]:
        with Engine(epoch=0, epoch_rows=100, partitions=3, **options) as engine:
            engine.stream("http://e/s", str(tmp_path / "s.nt"))
            query = engine.register(QUERY, name="q")
            engine.start(once=True)
            engine.await_end()
            told.append(engine.status().cpu_pinning)
            return [(r.time, sorted(map(str, r.rows))) for r in query.results()]

    found = results(spark=spark, pin=tmp_path / "m.json")
    assert found and found == results(spark=False)
    assert (told[0].name, told[0].places, told[1]) == ("m.json", {"a": allowed[-1:]}, None)
