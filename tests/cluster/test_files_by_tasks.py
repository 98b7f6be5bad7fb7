"""On Spark, files of results that tasks write are those that the driver writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.runtime.executor import Job
from levada.runtime.publication import distributed_writes
from levada.runtime.publication.distributed_writes import FUNCTIONS
from levada.runtime.spark.spark_executor import SparkExecutor

pytestmark = pytest.mark.spark
TEXT = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?a :p ?n } }"""


def test_tasks_write_what_the_driver_writes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = tmp_path / "s.nt"
    stream.write_text("".join(f'_:b{k % 3} <http://e/p> "{k}" {70 * k} .\n' for k in range(200)))
    jobs: list[Job] = []
    run = SparkExecutor.run

    def count(self: SparkExecutor, job: Job) -> list[bytes]:
        jobs.append(job)
        return run(self, job)

    monkeypatch.setattr(SparkExecutor, "run", count)
    found = []
    for much in (1 << 60, 1):
        monkeypatch.setattr(distributed_writes, "MUCH", much)
        jobs.clear()
        root = tmp_path / str(much)
        sink = FileSink(root / "out", Format.CSV)
        with Engine(
            spark=spark, checkpoint=root / "ck", sink=sink, partitions=2, epoch_rows=50, seed=7
        ) as engine:
            engine.stream("http://e/s", stream)
            for name in ("a", "b", "c"):
                engine.register(TEXT, name=name)
            engine.start(once=True)
            assert engine.await_end()
        found.append(
            {str(p.relative_to(root)): p.read_bytes() for p in (root / "out").rglob("*.csv")}
        )
        written = [job for job in jobs if job.functions == FUNCTIONS]
        assert bool(written) == (much == 1)
        assert all(len(job.payloads) == 3 for job in written)
    assert found[0] == found[1] != {}
