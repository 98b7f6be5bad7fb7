"""Settings of Spark that a user gives reach the session that Levada starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from levada import Engine
from levada.cli.app.app_file import conf_at
from levada.cli.main import main
from levada.errors import UsageError

RUN = """
import levada
conf = {"spark.ui.enabled": "true", "spark.ui.port": "0", "spark.executor.memory": "700m"}
with levada.Engine(master="local[1]", spark_conf=conf) as engine:
    engine.stream("http://e/s", "s.nt")
    engine.start(once=True)
    engine._await_spark()
    from pyspark import SparkContext
    context = SparkContext._active_spark_context
    print(context.getConf().get("spark.executor.memory"), context.uiWebUrl)
"""


@pytest.mark.long
@pytest.mark.spark
def test_the_page_and_the_memory_of_executors(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text("<http://e/a> <http://e/p> <http://e/b> 1 .\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    memory, url = done.stdout.split()
    assert memory == "700m" and url.startswith("http://")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("executor.memory=4g", "executor.memory is no setting of Spark"),
        ("spark.master=local", "The master is an option"),
        ("spark.ui.enabled", "--spark-conf is KEY=VALUE"),
        ("spark.ui.enabled=true", "for a session that Levada starts"),
    ],
)
def test_settings_that_cannot_be(
    setting: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.nt").write_text("<http://e/a> <http://e/p> <http://e/b> 1 .\n")
    (tmp_path / "q.rq").write_text(
        "SELECT ?a FROM NAMED WINDOW <w> ON <http://e/s> [NOW] WHERE { WINDOW <w> { ?a ?p ?b } }"
    )
    stream = f"http://e/s={tmp_path / 's.nt'}"
    run = ["run", str(tmp_path / "q.rq"), "--stream", stream, "--once", "--master", "none"]
    assert main([*run, "--spark-conf", setting]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_session_of_your_own_has_its_settings() -> None:
    with pytest.raises(UsageError, match="Set it where you make the session"):
        Engine(spark=False, spark_conf={"spark.ui.enabled": "true"})


def test_settings_in_an_app_file_are_texts() -> None:
    conf = {"spark.ui.enabled": True, "spark.executor.cores": 2}
    assert conf_at(conf, "options.spark_conf") == {
        "spark.ui.enabled": "true",
        "spark.executor.cores": "2",
    }
