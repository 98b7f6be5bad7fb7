"""An operator without an end, or one that ends its worker, in tasks of Spark: the engine suspends
its query without a restart, and the neighbour has the results that it has alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.engine.status.status import read_status

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
DEADLY = """
import os
import levada.operators.operator_registry as table
evaluate = table.evaluate
def deadly(node, frames, env):
    if type(node.step).__name__ == "Panes" and int(env.progress.new.max()) > 2500:
        %s
    return evaluate(node, frames, env)
table.evaluate = deadly
"""
RUN = """
import json, sys
from pathlib import Path
import levada
from levada.runtime.spark.spark_session import start_session
spark = start_session("local[2]", scratch=Path(sys.argv[1]) / "spark")
HEAD = "PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <http://e/S> [RANGE PT1S STEP PT1S] "
TEXTS = {
    "plain": HEAD % "?s ?o" + "WHERE { WINDOW :w { ?s :p ?o } }",
    "sums": HEAD % "?s (SUM(?o) AS ?n)" + "WHERE { WINDOW :w { ?s :p ?o } } GROUP BY ?s",
}
with levada.Engine(spark=spark, checkpoint=Path(sys.argv[1]) / "ck", epoch_rows=5) as engine:
    engine.stream("http://e/S", Path(sys.argv[1]) / "s.nt")
    handles = {name: engine.register(TEXTS[name], name=name) for name in sys.argv[2].split(",")}
    engine.start(once=True)
    engine.await_end()
    found = [(r.time, sorted(map(str, r.rows.rows()))) for r in handles["plain"].results()]
print(json.dumps(found))
"""


def start(folder: Path, names: str, bare: str = "") -> Any:
    """The results of the neighbour in an engine on Spark."""
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    lines = (
        f'<http://e/a{i % 3}> <http://e/p> "{i}"^^<{integer}> {1000 + 200 * i} .\n'
        for i in range(25)
    )
    folder.mkdir()
    (folder / "s.nt").write_text("".join(lines))
    (folder / "sitecustomize.py").write_text(bare)
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), names],
        env={**os.environ, "PYTHONPATH": path, "LEVADA_WATCHDOG": "2"},
        stdout=subprocess.PIPE, text=True, timeout=500,
    )  # fmt: skip
    assert run.returncode == 0
    return json.loads(run.stdout)


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "how"), [("while True: pass", "SIGXCPU"), ("os.abort()", "SIGABRT")]
)
def test_an_operator_that_ends_workers_is_suspended_without_a_restart(
    tmp_path: Path, what: str, how: str
) -> None:
    whole = start(tmp_path / "whole", "plain")
    assert len(whole) > 3
    assert start(tmp_path / "both", "plain,sums", DEADLY % what) == whole
    (why,) = read_status(tmp_path / "both" / "ck").suspended_queries.values()
    assert "The query sums is suspended" in why
    assert f"it ended each process that evaluated it ({how})" in why
