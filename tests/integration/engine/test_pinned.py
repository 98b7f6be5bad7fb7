"""Binding to processors, refused before a run begins."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint.manifest import Bound
from levada.cli.main import main
from levada.engine.placement.cpu_pinning import processors_of, read_pinning
from levada.errors import EngineError, UsageError
from levada.runtime.spark.cpu_pinning import BoundTask
from levada.runtime.spark.task_errors import decode_error

ALLOWED = sorted(os.sched_getaffinity(0))
GONE = max(os.sched_getaffinity(0)) + 4000  # no machine has so many


def machine(folder: Path, processors: list[list[int]] | None) -> Path:
    """A machine file with a place for each list."""
    n = len(processors or [[]])
    fields = {
        "clock": 2, "line": 64, "cores": 1, "places": [f"p{i}" for i in range(n)],
        "latency": [[0 if i == j else 9 for j in range(n)] for i in range(n)],
        "bandwidth": [[5] * n] * n,
    }  # fmt: skip
    path = folder / "m.json"
    path.write_text(json.dumps(fields | ({"processors": processors} if processors else {})))
    return path


def test_off_is_nothing(tmp_path: Path) -> None:
    assert read_pinning("", None, "local[2]") is read_pinning("off", False, "none") is None


def test_what_is_bound_is_said(tmp_path: Path) -> None:
    file = machine(tmp_path, [ALLOWED[:1], ALLOWED[1:]] if ALLOWED[1:] else [ALLOWED])
    with pytest.warns(UserWarning, match=r"bound to processors: partitions 0, \d, \.\. to"):
        found = read_pinning(file, None, "local[*]")
    assert found is not None and found.name == "m.json"
    assert sorted(n for own in found.places.values() for n in own) == ALLOWED
    assert processors_of(found) == tuple(map(tuple, found.places.values()))


@pytest.mark.parametrize(
    ("processors", "master", "says"),
    [
        ([[0], [GONE, GONE + 1]], "local[2]", f"in p1 on which .* not run: {GONE}, {GONE + 1}"),
        (None, "local[2]", "m.json has no processors, so tasks cannot be bound"),
        ([[0]], "spark://host:7077", "Workers of spark://host:7077 cannot be bound"),
        ([[0]], "local-cluster[2,1,512]", "Workers of local-cluster.* cannot be bound"),
        ([[0]], "none", "the master none has none"),
    ],
)
def test_what_cannot_be_bound_is_a_sentence(
    tmp_path: Path, processors: list[list[int]] | None, master: str, says: str
) -> None:
    if processors and processors[0] == [0]:
        processors = [ALLOWED[:1], *processors[1:]]
    with pytest.raises(UsageError, match=says):
        Engine(master=master, pin=machine(tmp_path, processors), checkpoint=tmp_path / "c")


def test_a_file_that_is_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text("SELECT ?s WHERE { ?s ?p ?o }")
    given = ["run", str(tmp_path / "q.rq"), "--once", "--pin", str(tmp_path / "nowhere.yaml")]
    assert main(given) == 2
    assert "nowhere.yaml cannot be read: No such file or directory." in capsys.readouterr().err


def test_status_and_placement_tell_what_is_bound_in_this_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By an engine that binds nothing itself: what tells of it is the same."""
    (tmp_path / "s.nt").write_text("<e:a> <e:p> <e:b> 1 .\n")
    state = str(tmp_path / "c")

    def told(bound: Bound | None) -> tuple[str, list[Any]]:
        with Engine(spark=False, checkpoint=state) as engine:
            engine._bound = bound
            engine.stream("e:s", tmp_path / "s.nt")
            text = "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1S] "
            engine.register(f"{text} WHERE {{ WINDOW <e:w> {{ ?x ?p ?y }} }}", name="q")
            engine.start(once=True, keep_open=True)
            engine.await_end()
        texts, found = [], []
        for command in (["status", state, "--verbose"], ["explain", "--placement", state]):
            assert main(command) == 0
            texts.append(" ".join(capsys.readouterr().out.split()))
            assert main([*command, "--json"]) == 0
            found.append(json.loads(capsys.readouterr().out)["cpu_pinning"])
        return " ".join(texts), found

    text, found = told(Bound("m.yaml", {"left": [0, 1], "right": [2]}))
    said = "Tasks are bound by m.yaml: partitions 0, 2, .. to 0, 1 (left); partitions 1, 3, .. to 2"
    assert text.count(said) == 2
    assert found == [{"name": "m.yaml", "places": {"left": [0, 1], "right": [2]}}] * 2
    with (tmp_path / "s.nt").open("a") as file:
        file.write("<e:a> <e:p> <e:b> 9 .\n")
    text, found = told(None)
    assert "bound" not in text and found == [None, None]


class ProcessorsTask:
    """Returns the processors that its thread may use."""

    def __call__(self, split: int, records: Any) -> Any:
        yield sorted(os.sched_getaffinity(0))

    def error_records(self, document: bytes, split: int) -> Any:
        return [document]


def test_a_task_is_bound_while_it_runs_and_no_longer() -> None:
    places = ((ALLOWED[-1],), tuple(ALLOWED))
    for split in range(4):
        assert list(BoundTask(ProcessorsTask(), places)(split, [])) == [list(places[split % 2])]
        assert sorted(os.sched_getaffinity(0)) == ALLOWED
    (record,) = BoundTask(ProcessorsTask(), ((GONE,),))(0, [])
    error = decode_error(record)
    assert isinstance(error, EngineError)
    assert f"could not be bound to the processors {GONE} any more: Invalid argument" in str(error)
