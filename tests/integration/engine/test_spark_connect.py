"""Spark Connect is refused by its name, at once, whatever asks for it. The Spark source of results
works there.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from levada import Engine
from levada.cli.main import main
from levada.errors import UsageError
from support.kept_checkpoint import run_kept

SAYS = "Levada does not run on Spark Connect"
CLIENT = """
import sys
import levada.spark
from pyspark.sql import SparkSession
session = SparkSession.builder.remote("local[1]").getOrCreate()
try:
    levada.Engine(spark=session)
except levada.UsageError as error:
    print(error)
levada.spark.register(session)
options = {"checkpoint": sys.argv[1], "query": "warm"}
table = session.read.format("levada").options(**options).load()
print(*table.columns)
print(table.count())
session.stop()
"""


@pytest.mark.parametrize("place", ["", "learn:2"])
def test_a_master_of_connect_with_and_without_a_placement(place: str) -> None:
    with pytest.raises(UsageError, match=rf"{SAYS} \(the master sc://host:15002\)"):
        Engine(master="sc://host:15002", place=place)


@pytest.mark.parametrize(
    ("name", "value"),
    [("SPARK_REMOTE", "sc://host"), ("SPARK_API_MODE", "Connect")],
)
def test_variables_by_which_pyspark_would_be_a_client(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=rf"{SAYS} \({name} is set\)") as found:
        Engine()
    assert f"Unset {name}" in str(found.value)
    with Engine(master="none"):
        pass  # no Spark, no matter


@pytest.mark.long
def test_an_engine_refuses_a_session_that_reads_results(tmp_path: Path) -> None:
    checkpoint = run_kept(tmp_path)
    variables = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", CLIENT, str(checkpoint)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    refusal, columns, rows = done.stdout.splitlines()
    assert refusal.startswith(f"{SAYS} (this session)")
    assert columns == "report sign number room t" and int(rows) == 200


def test_on_the_command_line_it_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "q.rq").write_text("SELECT ?s WHERE { ?s ?p ?o }")
    query, state = str(tmp_path / "q.rq"), tmp_path / "state"
    code = main(["run", query, "--once", "--master", "sc://host", "--checkpoint", str(state)])
    told = capsys.readouterr()
    assert code == 2 and told.err.count(SAYS) == 1 and "--place" not in told.err
    assert not state.exists()
