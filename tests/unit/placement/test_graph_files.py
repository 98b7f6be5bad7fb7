"""Send graphs and placements as files: what is written is read, and whatever is wrong is a sentence
that names the file and the place.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import graphs

from levada.errors import UsageError
from levada.placement import placement_file, sankey
from levada.placement.cost import score
from levada.placement.formats import FORMATS, read_graph
from levada.placement.send_graph import SendGraph

FEW = settings(max_examples=40, deadline=None)
KATTS = '{"nodes":[{"name":"3"},{"name":"90"}],"links":[{"source":"3","value":11,"target":"90"}]}'


def same(one: Any, two: Any) -> bool:
    return (one is None) == (two is None) and (one is None or np.array_equal(one, two))


@FEW
@given(graphs())
def test_what_is_written_is_read(graph: SendGraph) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # edges from a task to itself
        back = FORMATS["json"].read(FORMATS["json"].write(graph), "here")
    assert back.tasks == graph.tasks
    for column in ("source", "target", "rows", "bytes", "cpu", "received"):
        assert same(getattr(back, column), getattr(graph, column)), column


@FEW
@given(graphs(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_placement_scores_the_same_in_the_format_of_metis(
    graph: SendGraph, machines: int, random: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back = FORMATS["metis"].read(FORMATS["metis"].write(graph), "here")
    place = np.array([random.randrange(machines) for _ in graph.tasks], np.int32)
    own, other = score(graph, place, machines), score(back, place, machines)
    assert back.tasks == graph.tasks and own.rsd == other.rsd
    loops = int(graph.rows[graph.source == graph.target].sum())
    whole = int(graph.rows.sum())
    assert own.share * whole == pytest.approx(other.share * (whole - loops))


def test_the_weights_that_metis_reads_are_symmetric() -> None:
    graph = SendGraph(
        ("a", "b"), np.array([0, 1], np.int32), np.array([1, 0], np.int32), np.array([7, 2])
    )
    lines = FORMATS["metis"].write(graph).splitlines()
    assert lines == ['% levada tasks ["a", "b"]', "2 1 011 1", "2 2 9", "7 1 9"]


def test_katts_json_is_read_as_it_is() -> None:
    graph = FORMATS["json"].read(KATTS, "here")
    assert (graph.tasks, graph.rows.tolist()) == (("3", "90"), [11])


def test_uneven_weights_of_metis_are_told_and_taken_by_direction() -> None:
    with pytest.warns(UserWarning, match=r"x\.metis, line 2: .* weighs 11 there and 1 on"):
        graph = FORMATS["metis"].read("2 1 011 1\n1 2 11\n12 1 1\n", "x.metis")
    assert graph.rows.tolist() == [11, 1] and graph.loads("rows").tolist() == [1, 12]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w["links"][0].update(value=-1), r"g\.json, link 0: value is -1"),
        (lambda w: w["links"][0].update(value=1.5), r"g\.json, link 0: value is 1\.5"),
        (lambda w: w["links"][0].update(value=True), r"link 0: value is True"),
        (lambda w: w["links"][0].update(value=float("nan")), r"link 0: value is nan"),
        (lambda w: w["links"][0].update(value=1 << 60), r"link 0: value is"),
        (lambda w: w["links"][0].pop("value"), r"link 0: value is None"),
        (
            lambda w: w["links"].append(w["links"][0] | {"value": (1 << 53) - 1}),
            r"g\.json: all rows together are 2\^53 or more",
        ),
        (
            lambda w: w["links"][0].update(target="91"),
            r"link 0: task 91 is not among the nodes\. Known: 3, 90",
        ),
        (lambda w: w["links"][0].pop("source"), r"link 0: its source is None"),
        (lambda w: w["links"].append(7), r"link 1: its source is None"),
        (lambda w: w["nodes"].append({"name": "3"}), r"node 2: task 3 is there twice"),
        (lambda w: w["nodes"].append("3"), r"node 2: its name is None"),
        (lambda w: w["nodes"][1].update(cpu=-1), r"node 0: cpu is None"),
        (lambda w: w["links"].append(w["links"][0] | {"bytes": 3}), r"link 0: bytes is None"),
        (lambda w: w.pop("links"), r"g\.json is no send graph: it has no list of links"),
    ],
)
def test_bad_json_names_its_place(change: Any, said: str) -> None:
    whole = json.loads(KATTS)
    change(whole)
    with pytest.raises(UsageError, match=said):
        FORMATS["json"].read(json.dumps(whole), "g.json")


@pytest.mark.parametrize("text", ["", "{", "[1,", "[" * 100_000, '{"a" 1}', "graph", "9" * 5_000])
def test_what_is_no_json_is_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"g\.json"):
        FORMATS["json"].read(text, "g.json")


@pytest.mark.parametrize("extra", [("3", "90", "there before"), ("3", "3", "to itself")])
def test_odd_links_are_told(extra: tuple[str, str, str]) -> None:
    whole = json.loads(KATTS)
    whole["links"].append({"source": extra[0], "target": extra[1], "value": 4})
    with pytest.warns(UserWarning, match=rf"g\.json, link 1: .* {extra[2]}"):
        graph = FORMATS["json"].read(json.dumps(whole), "g.json")
    assert graph.rows.sum() == 15


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"x\.metis is no graph in METIS' format: it is empty"),
        ("2\n", "line 1: this is no first line"),
        ("2 1 111 1\n", "line 1: format 111 with 1 weights"),
        ("2 1 011 2\n", "line 1: format 011 with 2 weights"),
        ("% c\n2 1 011 1\n1 2 x\n1 1 1\n", "line 3: x is no whole number"),
        ("2 1 011 1\n1 2 -4\n1 1 -4\n", "line 2: -4 is no whole number"),
        ("2 1 011 1\n1 2 1.5\n1 1 1\n", "line 2: 1.5 is no whole number"),
        ("2 1 011 1\n1 3 1\n1 1 1\n", "line 2: there is no vertex 3 among 2"),
        ("2 1 011 1\n1 2\n1 1 1\n", "line 2: a neighbour has no weight"),
        (f"2 1 011 1\n{2**53 - 1} 2 1\n1 1 1\n", "all weights of vertices together are 2"),
        ("2 1 011 1\n1 1 1\n1 1 1\n", "line 2: vertex 1 has itself"),
        ("2 1 011 1\n1 2 1 2 1\n1 1 1\n", "line 2: vertex 1 has vertex 2 twice"),
        ("2 1 011 1\n\n1 1 1\n", "line 2: the vertex' weight is missing"),
        ("3 1 011 1\n1 2 1\n1 1 1", "has 2 lines of vertices, and its first line says 3"),
        ("2 2 011 1\n1 2 1\n1 1 1\n", "has 1 edges, and its first line says 2"),
        ('% levada tasks ["a"]\n2 1 011 1\n1 2 1\n1 1 1\n', "the comment with the tasks' names"),
    ],
)
def test_bad_metis_files_name_their_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        FORMATS["metis"].read(text, "x.metis")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_graph(tmp_path / "none.json")
    with pytest.raises(UsageError, match="says no format"):
        read_graph(tmp_path / "none.dat")
    (tmp_path / "x.json").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="no text in UTF-8"):
        read_graph(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no placement"),
        ("[]", "has no machines of tasks"),
        ('{"machine": {"3": 0}, "machines": 2}', "has no machines of tasks"),
        ('{"levada": "placement", "machines": 3, "machine": {"3": 0}}', "on 3 machines, and"),
        ('{"levada": "placement", "machines": 2, "machine": {"3": 2}}', "task 3 is on machine 2"),
        (
            '{"levada": "placement", "machines": 2, "predicted": 7, "machine": {"3": 0}}',
            "the share that it predicts is 7",
        ),
        ('{"levada": "placement", "machines": 2, "machine": {"3": 0, "3": 1}}', "3 is in it twice"),
    ],
)
def test_bad_placements(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(UsageError, match=said):
        placement_file.read(tmp_path / "p.json", FORMATS["json"].read(KATTS, "here"), 2)


def test_a_placement_is_read_as_it_was_written(tmp_path: Path) -> None:
    graph = FORMATS["json"].read(KATTS, "here")
    path, told = tmp_path / "p.json", np.array([1, 0], np.int32)
    placement_file.write(path, graph, told, 2, "refined")
    place, missing = placement_file.read(path, graph, 2)
    assert place.tolist() == [1, 0] and missing == 0
    assert placement_file.read_file(path).predicted == -1
    placement_file.write(path, graph, told, 2, "refined", predicted=0.25)
    assert placement_file.read_file(path).predicted == 0.25


def test_the_picture_has_a_band_an_edge() -> None:
    graph = FORMATS["json"].read(KATTS, "here")
    page = sankey.page(graph, np.array([0, 1], np.int32))
    assert page.count("<path") == 1 and 'class="far"' in page and "3 to 90: 11" in page
