"""A topology as a document: shown again, placed, not run; and what is wrong with one."""

import json
from pathlib import Path
from typing import Any

import pytest

from levada.cli.main import main
from levada.cli.placement.topology_to_graph import read
from levada.errors import UsageError
from levada.placement.json_file import write

QUERY = """PREFIX : <http://e/>
SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?s :v ?v . ?v :q ?u } }
"""
HAND: dict[str, Any] = {
    "stage": "topology",
    "nodes": [
        {"name": "read", "stage": 0, "streams": ["s"]},
        {"name": "narrow", "stage": 0},
        {"name": "join", "stage": 1},
        {"name": "count", "stage": 2, "rows": 7},
    ],
    "edges": [
        {"producer": "read", "consumer": "narrow", "grouping": "local"},
        {"producer": "narrow", "consumer": "join", "grouping": "field(0)", "rows": 13},
        {"producer": "join", "consumer": "count", "grouping": "home", "rows": 4},
    ],
    "tasks": {"s": 2, "stage 1": 2, "stage 2": 2, "output": 1},
}


@pytest.fixture
def document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """What explain has written of a query."""
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nt").touch()
    stream = f"http://e/s={tmp_path}/s.nt"
    given = [str(tmp_path / "q.rq"), "--stream", stream, "--stage", "topology"]
    assert main(["explain", *given]) == 0
    (tmp_path / "text").write_text(capsys.readouterr().out)
    assert main(["explain", *given, "--json"]) == 0
    (tmp_path / "t.json").write_text(capsys.readouterr().out)
    return tmp_path / "t.json"


def hand(folder: Path, **changes: Any) -> Path:
    path = folder / "hand.json"
    path.write_text(json.dumps(HAND | changes))
    return path


def test_it_is_shown_again_as_it_was(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(document)]) == 0
    assert capsys.readouterr().out == (document.parent / "text").read_text()
    assert main(["explain", str(document), "--json"]) == 0
    assert capsys.readouterr().out == document.read_text()
    assert main(["explain", str(document), "--stage", "algebra"]) == 2
    assert "t.json is a topology, and has no other stage" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check", "profile"])
def test_it_is_not_run(document: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, str(document)]) == 2
    told = capsys.readouterr().err
    assert "t.json is a topology, which can be shown and placed, and not run" in told


def test_it_is_placed_by_tasks_that_a_run_has(
    document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["place", str(document), "--machines", "2", "--json"]) == 2
    assert "does not say how many rows 3 of its 3 edges between" in capsys.readouterr().err
    topology = json.loads(document.read_text())
    for edge in topology["edges"]:
        edge["rows"] = 100
    for node in topology["nodes"]:
        if node["name"].startswith("Emit"):
            node["rows"] = 10
    document.write_text(json.dumps(topology))
    assert main(["place", str(document), "--machines", "2", "--json"]) == 0
    told = capsys.readouterr()
    parts = topology["tasks"]["stage 1"]
    tasks = {f"1.{p}" for p in range(parts)} | {"http://e/s", "output"}
    found = json.loads(told.out)["placers"]
    assert all(set(placer["machine"]) == tasks for placer in found.values())


def test_rows_that_are_said_are_spread_evenly(tmp_path: Path) -> None:
    links = json.loads(write(read(hand(tmp_path))))["links"]
    assert {(e["source"], e["target"]): e["value"] for e in links} == {
        ("s 0", "1.0"): 4, ("s 0", "1.1"): 3, ("s 1", "1.0"): 3, ("s 1", "1.1"): 3,
        ("1.0", "2.0"): 2, ("1.1", "2.0"): 2, ("2.0", "output"): 4, ("2.1", "output"): 3,
    }  # fmt: skip


def test_rows_are_not_assumed(tmp_path: Path) -> None:
    edges = [{k: v for k, v in edge.items() if k != "rows"} for edge in HAND["edges"]]
    with pytest.raises(UsageError, match="how many rows 2 of its 3 edges between stages carry"):
        read(hand(tmp_path, edges=edges))


NODE, EDGE = HAND["nodes"][0], HAND["edges"][1]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"nodes": 3}, "hand.json has no list of nodes"),
        ({"edges": None}, "hand.json has no list of edges"),
        ({"nodes": [NODE, NODE]}, "node 0: the node read is there twice"),
        ({"nodes": [NODE | {"stage": -1}]}, "node 0: its stage is -1"),
        ({"nodes": [NODE | {"name": 3}]}, "node 0: its name is 3"),
        ({"nodes": [NODE | {"streams": ["S"]}]}, "node 0: tasks does not say how many S has"),
        ({"nodes": [NODE | {"stage": 3}]}, "tasks does not say how many stage 3 has"),
        ({"nodes": [7]}, "node 0: its stage is None"),
        ({"edges": [EDGE | {"producer": "nobody"}]}, "edge 0: nobody is not among the nodes"),
        ({"edges": [EDGE | {"producer": "count"}]}, "edge 0: it goes back, from stage 2 to 1"),
        ({"edges": [EDGE | {"producer": "join"}]}, "edge 0: it goes from join to itself"),
        ({"tasks": dict.fromkeys(HAND["tasks"], 65536)}, "[0-9,]+ pairs of its tasks send"),
        ({"edges": [EDGE | {"grouping": "field"}]}, "edge 0: there is no grouping field"),
        ({"edges": [EDGE | {"rows": 1.5}]}, "edge 0: rows is 1.5"),
        ({"edges": [EDGE | {"rows": -1}]}, "edge 0: rows is -1"),
        ({"tasks": []}, "does not say which tasks there are"),
        ({"tasks": HAND["tasks"] | {"s": 0}}, "tasks has 0 for s"),
        ({"tasks": HAND["tasks"] | {"s": 70000}}, "tasks has 70000 for s"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(hand(tmp_path, **changes))


def test_damaged_json_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"stage": "topology", "nodes": [')
    with pytest.raises(UsageError, match=r"t\.json is no JSON: Expecting value"):
        read(tmp_path / "t.json")
