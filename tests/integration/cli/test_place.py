"""``levada place`` and ``levada graph`` from the outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from levada.cli.main import main
from levada.engine.placement.placement_options import read_placement
from levada.placement.placers import PLACERS

LINKS = [
    {"source": str(3 * i + j), "target": str(3 * i + j + 1), "value": 100}
    for i in range(12)
    for j in (0, 1)
]
GRAPH = json.dumps({"nodes": [{"name": str(i)} for i in range(36)], "links": LINKS})


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.json").write_text(GRAPH)
    return tmp_path


def test_json_is_all_that_is_on_standard_output(graph: Path) -> None:
    """METIS prints by itself where a part has no tasks: one task here weighs as much as all."""
    whole = json.loads(GRAPH)
    whole["links"][0]["value"] = 10**6
    (graph / "heavy.json").write_text(json.dumps(whole))
    command = [sys.executable, "-m", "levada", "place", "heavy.json", "--machines", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    known = "uniform random round_robin first_fit metis metis_vol refined"
    assert set(told["placers"]) == set(known.split())
    assert told["placers"]["refined"]["rsd"] <= told["bound"] + 1e-9 and told["bound"] > 1


@pytest.mark.long
def test_a_table_and_a_placement(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["place", "g.json", "--machines", "3", "--bound", "1%", "--out", "p.json"]) == 0
    shown = capsys.readouterr().out
    assert "36 tasks, 24 edges, 2,400 rows, 3 machines" in shown
    line = next(line for line in shown.splitlines() if line.startswith("refined"))
    assert line.split() == ["refined", "0.00%", "0.00%"]
    machine = json.loads((graph / "p.json").read_text())["machine"]
    assert all(machine[link["source"]] == machine[link["target"]] for link in LINKS)
    assert main(["place", "g.json", "--machines", "3", "--from", "p.json", "--moves", "0"]) == 0
    sankey = ["graph", "sankey", "g.json", "--placement", "p.json", "--machines", "3"]
    assert main([*sankey, "--out", "s.html"]) == 0
    assert (graph / "s.html").read_text().count('class="near"') == 24


def test_learning_takes_the_slices_before(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["place", "g.json", "g.json", "g.json", "--machines", "3", "--json"]
    assert main([*arguments, "--learn", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["placers"]["refined"]["share"] == 0
    assert main([*arguments, "--learn", "3"]) == 2
    assert "--learn 3 needs 4 slices; there are 3" in capsys.readouterr().err
    assert main(arguments) == 2
    assert "There are 3 send graphs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--bound", "many"], "many is no bound on RSD"),
        (["--bound", "2.4"], "2.4 is no bound on RSD"),
        (["--bound", "0.1%", "--machines", "5"], "No placement on 5 machines has an RSD of 0.10%"),
        (["--unit", "bytes"], "g.json tells nothing of bytes"),
        (["--load", "cpu"], "g.json tells nothing of cpu"),
        (["--machines", "1000000"], "A placement cannot be on 1,000,000 machines. Say 4,096 or"),
        (["--moves", "3"], "--from and --moves go together"),
        (["--placer", "refind"], "Did you mean refined?"),
        (["--distance", "d.json"], "d.json cannot be read"),
        (["--from", "g.json", "--moves", "1"], "g.json is no placement"),
    ],
)
def test_wrong_uses_are_sentences(
    graph: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    machines = [] if "--machines" in more else ["--machines", "3"]
    assert main(["place", "g.json", *machines, *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("3", "d.json, the table: this is no list"),
        ("[[0, 1]]", "d.json, the table: it has 1 entries for 2 machines"),
        ("[[0, 1], 4]", "d.json, row 1: this is no list"),
        ("[[0, 1], [1]]", "d.json, row 1: it has 1 entries for 2 machines"),
        ("[[0, -1], [1, 0]]", "d.json, row 0, number 1: -1 is no distance"),
        ("[[0, 1], [NaN, 0]]", "d.json, row 1, number 0: nan is no distance"),
        ('[[0, "1"], [1, 0]]', "d.json, row 0, number 1: '1' is no distance"),
        ("[[0, 1], [1, 2]]", "d.json, row 1, number 1: 2 is how far a machine is from itself"),
        ("[[0, 1], [1, 0]", "d.json holds no table of distances"),
    ],
)
def test_a_wrong_distance_is_told_with_its_place(
    graph: Path, capsys: pytest.CaptureFixture[str], table: str, said: str
) -> None:
    (graph / "d.json").write_text(table)
    assert main(["place", "g.json", "--machines", "2", "--distance", "d.json"]) == 2
    assert said in capsys.readouterr().err


def test_where_a_task_is_heavy_it_is_named_and_there_is_room_to_search(
    graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within the least RSD alone nothing but evenness could be looked for."""
    names = ["r0", "r1", *(f"group {i}/64" for i in range(64))]
    links = [
        {"source": f"r{i % 2}", "target": f"group {i}/64", "value": 5_010 if i == 17 else 10}
        for i in range(64)
    ]
    whole = {"nodes": [{"name": name} for name in names], "links": links}
    (graph / "heavy.json").write_text(json.dumps(whole))
    assert main(["place", "heavy.json", "--machines", "4", "--json"]) == 0
    told = capsys.readouterr()
    assert "the heaviest task, group 17/64, has 88.8% of the load" in told.err
    assert "No placement helps" not in told.err
    assert json.loads(told.out)["placers"]["refined"]["share"] < 0.2


def test_tasks_that_nothing_was_learned_of_are_told(
    graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [{"name": "0"}, {"name": "new"}]
    links = [{"source": "0", "target": "new", "value": 5}]
    (graph / "other.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    assert main(["place", "g.json", "other.json", "--machines", "3", "--learn", "1"]) == 0
    told = "1 of the 2 tasks of other.json are in no slice that is learned from"
    assert told in capsys.readouterr().err


def test_a_picture_by_operator(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["s a.nt", "s b.nt", "1.0", "1.1", "output"]
    ends = [("s a.nt", "1.0"), ("s b.nt", "1.1"), ("s b.nt", "1.0"), ("1.1", "output")]
    links = [{"source": a, "target": b, "value": 5} for a, b in ends]
    (graph / "t.json").write_text(
        json.dumps({"nodes": [{"name": name} for name in names], "links": links})
    )
    sankey = ["graph", "sankey", "t.json", "--by", "operator"]
    assert main(sankey) == 0
    page = capsys.readouterr().out
    assert page.count("<path") == 2 and "s to stage 1: 15" in page and "1 to output: 5" in page
    assert main([*sankey, "--placement", "p.json"]) == 2
    assert "Operators have no machine" in capsys.readouterr().err
    (graph / "none.json").write_text(json.dumps({"nodes": [], "links": []}))
    assert main(["graph", "sankey", "none.json"]) == 2
    assert "none.json has no messages, so there is nothing to draw" in capsys.readouterr().err
    assert main(["graph", "export", "nothing", "--groups", "64"]) == 2
    assert "nothing cannot be read: there is no such file" in capsys.readouterr().err


def test_more_machines_than_tasks(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = {"nodes": [{"name": "a"}], "links": [{"source": "a", "target": "a", "value": 3}]}
    (graph / "one.json").write_text(json.dumps(one))
    assert main(["place", "one.json", "--machines", "4", "--json"]) == 0
    told = capsys.readouterr()
    assert (
        "Of 4 machines 3 stay empty: one.json has fewer tasks (1)" in told.err
        and "link 0: a to a is from a task to itself" in told.err
    )
    assert json.loads(told.out)["placers"]["refined"]["share"] == 0


def test_where_no_placement_helps_it_is_said_beforehand(
    graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files cut by line: each reader sends to each task alike."""
    tasks = [*(f"s {i}.csv" for i in range(12)), *(f"1.{i}" for i in range(12))]
    links = [{"source": a, "target": b, "value": 50} for a in tasks[:12] for b in tasks[12:]]
    whole = {"nodes": [{"name": task} for task in tasks], "links": links}
    (graph / "lines.json").write_text(json.dumps(whole))
    out = ["--out", "p.json", "--bound", "1%"]
    assert main(["place", "lines.json", "--machines", "4", *out]) == 0
    assert "No placement helps much: refined leaves 75.0% across machines, lots about 75.0%" in (
        capsys.readouterr().err
    )
    with pytest.warns(UserWarning, match="p.json was made of a send graph that no placement helps"):
        assert read_placement(graph / "p.json") is None
    assert main(["place", "g.json", "--machines", "3", *out]) == 0
    assert "No placement helps" not in capsys.readouterr().err
    assert read_placement(graph / "p.json") is not None


def test_a_slice_with_few_tasks_is_learned_from_without_metis(
    graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"nodes": [{"name": "0"}, {"name": "1"}], "links": LINKS[:1]}
    (graph / "few.json").write_text(json.dumps(few))
    assert main(["place", "few.json", "g.json", "--machines", "3", "--learn", "1", "--json"]) == 0
    told = capsys.readouterr()
    assert "METIS is left out: there are fewer than 10 tasks a machine" in told.err
    assert set(json.loads(told.out)["placers"]) == set(PLACERS) - {"metis", "metis_vol"}


def test_slices_without_messages_are_named(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (graph / "none.json").write_text(json.dumps({"nodes": [{"name": "0"}], "links": []}))
    command = ["place", "--machines", "3", "--learn", "1"]
    assert main([*command, "g.json", "none.json"]) == 2
    assert "none.json has no messages, so there is nothing to place" in capsys.readouterr().err
    assert main([*command, "none.json", "g.json"]) == 2
    told = capsys.readouterr().err
    assert "none.json has no messages: nothing is learned from it" in told
    assert "No slice before the last has messages" in told


def test_graphs_in_metis_format_come_back(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["graph", "export", "g.json", "--out", "g.metis"]) == 0
    assert main(["graph", "import", "g.metis", "--out", "back.json"]) == 0
    back = json.loads((graph / "back.json").read_text())
    assert sorted(map(str, back["links"])) == sorted(map(str, LINKS))
    assert main(["graph", "export", "g.json"]) == 2
    assert "No format is said" in capsys.readouterr().err
