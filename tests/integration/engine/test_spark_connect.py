"""Spark Connect is refused by its name, at once, whatever asks for it."""

from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.cli.main import main
from levada.errors import UsageError

SAYS = "Levada does not run on Spark Connect"


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


def test_a_session_of_connect() -> None:
    kind: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    with pytest.raises(UsageError, match=rf"{SAYS} \(this session\)"):
        Engine(spark=kind())


def test_on_the_command_line_it_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "q.rq").write_text("SELECT ?s WHERE { ?s ?p ?o }")
    query, state = str(tmp_path / "q.rq"), tmp_path / "state"
    code = main(["run", query, "--once", "--master", "sc://host", "--checkpoint", str(state)])
    told = capsys.readouterr()
    assert code == 2 and told.err.count(SAYS) == 1 and "--place" not in told.err
    assert not state.exists()
