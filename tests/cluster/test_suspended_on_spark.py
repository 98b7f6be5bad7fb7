"""A query that would make too many rows in a worker of Spark is suspended there, too; the others go
on, with the results that they have alone.
"""

from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.engine.status.status import read_status

pytestmark = pytest.mark.spark
HEAD = "PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT1S STEP PT1S] "
PAIRS = HEAD % "?a ?b" + "WHERE { WINDOW :w { ?a :p ?x . ?b :p ?y } }"
COUNT = HEAD % "(COUNT(*) AS ?n)" + "WHERE { WINDOW :w { ?a :p ?x } }"


def run(folder: Path, root: Path, queries: dict[str, str], spark: Any) -> dict[str, list[Any]]:
    found = {}
    with Engine(spark=spark, checkpoint=root, epoch_rows=30, partitions=2, max_rows=500) as engine:
        engine.stream("http://e/s", folder / "s.nt")
        handles = [engine.register(text, name=name) for name, text in queries.items()]
        engine.start(once=True)
        engine.await_end()
        for handle in handles:
            rows = [(r.time, sorted(map(str, r.rows.rows()))) for r in handle.results()]
            found[handle.name] = rows
    return found


def test_a_query_is_suspended_on_spark_and_the_others_go_on(tmp_path: Path, spark: Any) -> None:
    lines = (f'<http://e/a{i}> <http://e/p> "{i}" {40 * i} .\n' for i in range(100))
    (tmp_path / "s.nt").write_text("".join(lines))
    alone = run(tmp_path, tmp_path / "alone", {"count": COUNT}, False)
    with pytest.warns(UserWarning, match=r"The query pairs is suspended\. .*500 rows"):
        found = run(tmp_path, tmp_path / "ck", {"pairs": PAIRS, "count": COUNT}, spark)
    assert found["count"] == alone["count"] and len(alone["count"]) > 2
    assert sum(len(rows) for _, rows in found["pairs"]) <= 500
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["pairs"]
