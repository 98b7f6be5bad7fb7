"""Masters of a cluster that cannot be gone by are refused before anything is made or started."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from levada import Engine
from levada.cli.main import main
from levada.engine.python import executor_choice
from levada.engine.python.executor_choice import await_up
from levada.errors import EngineError, UsageError
from support.free_ports import free_port

TEMPORARY = "The checkpoint would be temporary, and executors of {} on other hosts"


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that other tests of this process have started would be gone by."""
    monkeypatch.setattr(executor_choice, "running_context", lambda: None)


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host"])
def test_a_temporary_checkpoint_is_refused_where_executors_are_elsewhere(master: str) -> None:
    with pytest.raises(UsageError, match=TEMPORARY.format(master)):
        Engine(master=master)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=master))
    with pytest.raises(UsageError, match=TEMPORARY.format(master)):
        Engine(spark=session)
    Engine(spark=False, master=master).close()


@pytest.mark.parametrize("master", ["local", "local[2]", "local-cluster[2,1,1024]", "none"])
def test_one_of_this_host_may_have_it(master: str) -> None:
    Engine(master=master).close()


def test_on_the_command_line_nothing_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor_choice, "PATIENCE", 0.0)
    (tmp_path / "q.rq").write_text("SELECT ?s WHERE { ?s ?p ?o }")
    run = ["run", str(tmp_path / "q.rq"), "--once", "--out", str(tmp_path / "out")]
    assert main([*run, "--master", "yarn"]) == 2
    assert TEMPORARY.format("yarn") in capsys.readouterr().err
    master = f"spark://127.0.0.1:{free_port()}"
    assert main([*run, "--master", master, "--checkpoint", str(tmp_path / "ck")]) == 1
    said = capsys.readouterr().err
    assert f"No master of Spark answers at {master}: connection refused." in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q.rq"]


def test_one_of_several_masters_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor_choice, "PATIENCE", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        await_up(None, f"spark://127.0.0.1:{free_port()},{there}")
        await_up(None, f"spark://{there}")
    with pytest.raises(EngineError, match=f"No master of Spark answers at spark://{there}: "):
        await_up(None, f"spark://{there}")
    await_up(False, f"spark://{there}")
    await_up(None, "local[2]")
