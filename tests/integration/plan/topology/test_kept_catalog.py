"""A catalog that another process has written: texts have other hashes there, and its queries are
found all the same.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.encoding.plan_codec import encode_plan
from levada.plan.execution.joins import Arrange
from levada.plan.migration.recover_join_orders import recover_blocks, recover_conjunctions
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.recover_arrangements import recover_arrangements
from levada.plan.topology import catalog_members as members
from levada.plan.topology.catalog_file import encode_catalog, read_catalog
from levada.plan.topology.topology import Topology

TEXT = """PREFIX : <http://e/> SELECT ?x ?y FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?x :p ?y . ?y :q ?z } }"""
GONE = TEXT.replace(":q ?z", ":r ?z . ?z :r ?y")
WRITER = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_kept_catalog import kept
from levada.plan.topology.catalog_file import encode_catalog
sys.stdout.buffer.write(encode_catalog(kept(), {{"q": "a", "r": "b"}}))
"""


def _other(first: str, second: str) -> str:
    """The query with other predicates."""
    return TEXT.replace(":q", second).replace("?x :p", f"?x {first}")


def kept() -> Topology:
    """Queries that share, after others are gone, so that nodes have empty places and later
    generations; a version has been sealed. No two joins have a side in common: who keeps it is
    known in one run alone (``plan/install/shared/sides``).
    """
    topology = Topology({"http://e/s": StreamFacts(), "t": StreamFacts({"k": "integer"}, True)})
    asked = {"gone": GONE, "q": TEXT} | {f"g{i}": _other(f":p{i}", f":q{i}") for i in range(3)}
    with patch.object(members, "EMPTY", 1), patch.object(members, "SHARE", 0):
        for name, text in asked.items():
            topology.add(name, translate(parse(text), text=text), 0)
            if name.startswith("g"):
                topology.remove(name)
        text = _other(":s", ":p")
        topology.add("r", translate(parse(text), text=text), 0)
        topology.install()
    topology.seal()
    return topology


@pytest.fixture(params=["1", "2"], scope="module")
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that a process with other hashes has written."""
    done = subprocess.run(
        [sys.executable, "-c", WRITER],
        env=os.environ | {"PYTHONHASHSEED": request.param},
        capture_output=True,
        check=True,
    )
    path = tmp_path_factory.mktemp("kept") / "catalog"
    path.write_bytes(done.stdout)
    return path


def test_queries_share_and_go_across_processes(path: Path) -> None:
    topology, identities = read_catalog(path)
    assert identities == {"q": "a", "r": "b"}
    recover_arrangements(topology)
    nodes = set(topology.graph.nodes)
    assert any(node.shape.generation for node in topology.graph.nodes.values())
    topology.add("again", translate(parse(TEXT), text=TEXT), 0)
    topology.install()
    assert set(topology.graph.nodes) == nodes, "a query of the same shape makes no node"
    for name in ("q", "r", "again"):
        topology.remove(name)
    assert not topology.graph.nodes and not topology.graph.index and not topology.graph.alike


def test_every_process_writes_the_same(path: Path) -> None:
    assert path.read_bytes() == encode_catalog(kept(), {"q": "a", "r": "b"})


def test_what_comes_next_is_what_would_have_come(path: Path) -> None:
    """Numbers of nodes and members, versions, what is fresh: a catalog goes on as it was."""
    before, after = kept(), read_catalog(path)[0]
    recover_arrangements(after)
    for name, text in (("q", TEXT), ("r", _other(":s", ":p"))):
        recover_blocks(after, name, translate(parse(text), text=text), empty_reports=False)
    more = TEXT.replace("RANGE PT2S", "RANGE PT4S"), GONE.replace(":p", ":n")
    for topology in (before, after):
        for i, text in enumerate(more):
            topology.add(f"new{i}", translate(parse(text), text=text), 5)
        topology.streams.stream_of(topology.queries["new1"])
        topology.remove("r")
    assert encode_plan(before.seal()) == encode_plan(after.seal())
    assert encode_catalog(before, {}) == encode_catalog(after, {})


JOINED = TEXT.replace("} }", "} ?x :kind ?k . ?y :kind ?k }").replace("SELECT ?x ?y", "SELECT ?k")


@pytest.mark.parametrize(("version", "kept_once"), [(7, True), (8, False)])
def test_static_rows_are_found_again_as_long_as_the_files_are(
    tmp_path: Path, version: int, kept_once: bool
) -> None:
    topology = Topology({"http://e/s": StreamFacts()})
    topology.data = 7
    topology.add("q", translate(parse(JOINED), text=JOINED), 0)
    topology.seal()
    before = {
        type(n.shape.step).__name__: len(n.members.index) for n in topology.graph.nodes.values()
    }
    assert "Arrange" in before
    (tmp_path / "catalog").write_bytes(encode_catalog(topology, {"q": "a"}))
    again, _ = read_catalog(tmp_path / "catalog")
    again.data = version
    recover_arrangements(again)
    text = JOINED.replace(":q", ":r").replace("?x", "?a").replace("?k", "?b")
    query = translate(parse(text), text=text)
    again.add("later", query, 0)
    again.seal()
    static = [n for n in again.graph.nodes.values() if isinstance(n.shape.step, Arrange)]
    assert static
    for node in static:
        assert len(node.members.index) == (1 if kept_once else 2)
    again.remove("q")
    again.remove("later")
    assert not again.graph.nodes
    assert not [n for n in again.graph.common.known.values() if n.made]


def test_a_query_over_what_is_kept_is_known_when_its_run_goes_on() -> None:
    topology = Topology({"http://e/s": StreamFacts()})
    query = optimize(translate(parse(JOINED), text=JOINED))
    topology.add("q", query, 0)
    topology.seal()
    assert recover_conjunctions(topology, "q", query, empty_reports=False)


def test_a_side_that_was_kept_for_several_is_found_again(tmp_path: Path) -> None:
    """Who comes with another join of it reads it there, and with an equal one the join, too."""
    topology = Topology({"http://e/s": StreamFacts()})
    asked = [_other(f":p{i}", ":q") for i in range(3)]
    for i in (0, 1):
        topology.add(f"q{i}", translate(parse(asked[i]), text=asked[i]), 0)
    topology.seal()
    (tmp_path / "catalog").write_bytes(encode_catalog(topology, {"q0": "a", "q1": "b"}))
    again, _ = read_catalog(tmp_path / "catalog")
    recover_arrangements(again)
    nodes = set(again.graph.nodes)
    for i, text in enumerate(asked):
        again.add(f"again{i}", translate(parse(text), text=text), 0)
        again.install()
    assert set(again.graph.nodes) == nodes
    members = {
        type(n.shape.step).__name__: len(n.members.index) for n in again.graph.nodes.values()
    }
    assert (members["ArrangeStream"], members["StreamJoin"]) == (1, 3)
