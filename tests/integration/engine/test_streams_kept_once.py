"""Rows of a stream that several joins have as a side are kept once, by what keeps them for all; a
join alone keeps its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.state_files import map_
from levada.engine.status.sharing_report import read_sharing_report, show_run
from levada.operators.state.state_parts import read_head
from levada.plan.execution import steps as s
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.query_dsl import STREAM, element, feed

TEXT = """PREFIX : <http://e/>
SELECT {} FROM NAMED WINDOW :w ON :s [RANGE PT1H]
WHERE {{ WINDOW :w {{ {} }} {} }}"""
ROWS = 12
SHAPES = (
    "?x :p ?v . ?x :q{} ?w", "?y :q{} ?x . ?x :p ?v", "?x :p ?v . ?x :q{} 7",
    "?x :p ?v . ?x :q{} ?w FILTER(?w > 2)", "?x :q{} ?w . ?x :p ?v FILTER(?v > ?w)",
)  # fmt: skip
SHOWN = ("?x", "?v ?x", "(COUNT(*) AS ?n)", "DISTINCT ?v")


class Room:
    """An engine over a stream that is fed, and the state that it has."""

    def __init__(self, root: Path, partitions: int = 2) -> None:
        self.root, self.partitions, self.sink = root, partitions, MemorySink()
        self.path, self.fed = write_lines(root / "s.nt", []), 0

    def engine(self, **options: Any) -> Engine:
        """An engine of no queries."""
        found = Engine(
            spark=False, checkpoint=self.root / "c", sink=self.sink, partitions=self.partitions,
            seed=7, **options,
        )  # fmt: skip
        found.stream(STREAM, self.path)
        return found

    def feed(self, running: Engine, *things: str) -> None:
        """An element of each, of one time, then one that nobody asks for, and until they are
        read.
        """
        self.fed += 1
        own = [element(1000 * self.fed, thing) for thing in things]
        feed(running, self.path, [*own, element(1000 * self.fed + 999, "a other b")])

    def rows(self, running: Engine) -> dict[str, int]:
        """The rows that wait for partners, by the kind of operator that keeps them."""
        read, found = sum(one.elements for one in running._records().values()), dict[str, int]()
        last = None  # files tell of an epoch a moment after the engine does
        while last is None or sum(one.elements for one in last.streams.values()) < read:
            last = newest_manifest(self.root / "c")
        nodes = topology_of(running).graph.nodes
        for name in names_of(self.root / "c", last).state.values():
            for key, own in read_head(map_(str(self.root / "c"), name)[1]).pieces.items():
                number = key.split(".")[0]
                step = nodes[int(number)].shape.step if number.isdigit() else None
                if isinstance(step, s.Join | s.ArrangeStream):
                    kind = type(step).__name__
                    found[kind] = found.get(kind, 0) + sum(piece.rows for piece in own)
        return found


def topology_of(running: Engine) -> Topology:
    """The operators of an engine."""
    assert running._driver is not None and running._driver._catalog._topology is not None
    return running._driver._catalog._topology


def texts(many: int) -> dict[str, str]:
    """So many joins with one pattern by one key, of five shapes."""
    found = {}
    for i in range(many):
        shown, shape = SHOWN[i % 4], SHAPES[i % 5].format(i // 5)
        found[f"q{i}"] = TEXT.format(shown, shape, "")
    return found


def things(many: int = ROWS) -> list[str]:
    """Triples of the pattern that all have, and one of a pattern of the first five queries."""
    return [*(f"x{i} p {i}" for i in range(many)), "x1 q0 7"]


def test_a_side_of_many_joins_is_kept_once(tmp_path: Path) -> None:
    kept = {}
    for mode in ("off", "exact", "relax"):
        (tmp_path / mode).mkdir()
        room = Room(tmp_path / mode)
        with room.engine(sharing=mode) as running:
            for name, text in texts(15).items():
                running.register(text, name=name)
            running.start()
            room.feed(running, *things())
            kept[mode] = room.rows(running)
            told = show_run(read_sharing_report(room.root / "c"))
    assert kept["off"]["Join"] > 12 * ROWS
    assert set(kept["exact"]) == {"ArrangeStream", "StreamJoin"}
    # those with FILTER(?v > ?w) keep no row less; what joins have of their own is the other pattern
    assert kept["exact"]["ArrangeStream"] == ROWS
    assert kept["exact"]["StreamJoin"] <= 5
    assert kept["relax"]["ArrangeStream"] <= 2 * ROWS
    assert "ArrangeStream of http://e/s, (- <http://e/p> -)" in told.split("kept once")[1]


def relaxed(many: int, terms: int) -> dict[str, str]:
    """So many joins with one pattern, for each of which queries differ in so many terms of it:
    other ones for each third join.
    """
    return {
        f"q{i}_{c}": TEXT.format("?x ?w", f"?x :p :c{terms * (i % 3) + c} . ?x :q{i} ?w", "")
        for i in range(many)
        for c in range(terms)
    }


def test_relaxed_joins_have_sides_in_common(tmp_path: Path) -> None:
    """What is kept is what any of them wants; each meets what its own queries want."""
    kept, met, said = {}, {}, {}
    for mode in ("off", Sharing.CONTAINMENT, "relax"):
        (tmp_path / mode).mkdir()
        room = Room(tmp_path / mode)
        with room.engine(sharing=mode) as running:
            for name, text in relaxed(20, 2).items():
                running.register(text, name=name)
            running.start()
            some = [f"x{i} p c{i % 7}" for i in range(14)]
            room.feed(running, *some, "x0 q0 7", "x1 q1 8", "x7 q3 1")
            room.feed(running, "x8 q3 9", "x2 q0 9", "x15 p c0", "x15 q0 2", "x20 q1 5")
            room.feed(running, "x20 p c2")
            kept[mode] = room.rows(running)
            told = read_sharing_report(room.root / "c")
            met[mode] = (
                sum(one.joined_pairs for one in told.relaxed_joins),
                sum(o.needed_pairs for o in told.relaxed_joins),
            )
            running.await_end(0.01)
        said[mode] = {name: sorted(str(report.solutions) for report in reports)
                      for name, reports in room.sink.reports.items()}  # fmt: skip
    assert said["relax"] == said[Sharing.CONTAINMENT] == said["off"]
    assert kept["relax"] == {"RelaxedStream": 14, "StreamJoin": 7}, "of seven terms six"
    assert kept[Sharing.CONTAINMENT]["RelaxedStream"] == 14
    assert kept["off"]["Join"] > 5 * 14
    assert met["relax"] == met[Sharing.CONTAINMENT] == (5, 5), "x1 has c1, which is another join's"


def test_who_picks_longer_has_rows_kept_longer(tmp_path: Path) -> None:
    """Also where it is another join of the same side; rows go when nobody wants them."""
    room = Room(tmp_path, 1)
    windows = {0: ("PT2S", "PT3S"), 1: ("PT2S", "PT20S")}
    with room.engine(sharing="relax") as running:
        for i, ranges in windows.items():
            for c, own in enumerate(ranges):
                text = TEXT.format("?x ?w", f"?x :p :c{c} . ?x :q{i} ?w", "")
                running.register(text.replace("PT1H", own), name=f"q{i}_{c}")
        running.start()
        room.feed(running, *(f"x{i} p c{i % 2}" for i in range(10)))
        assert room.rows(running) == {"RelaxedStream": 10}
        for _ in range(4):
            room.feed(running, "a other b")
        room.feed(running, "x1 q0 1", "x1 q1 1", "x2 q1 1", "x3 p c1")
        running.unregister("q1_1")
        room.feed(running, "x3 q1 1", "x5 q0 1")
        assert (
            sum(one.joined_pairs for one in read_sharing_report(room.root / "c").relaxed_joins) == 1
        )
        running.await_end(0.01)
    said = {name: sum(len(report.solutions) for report in reports)
            for name, reports in room.sink.reports.items()}  # fmt: skip
    assert said == {"q1_1": 1}


def test_a_join_alone_keeps_its_own(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with room.engine() as running:
        for i, shown in enumerate(("?x", "?v ?w", "?x")):
            running.register(TEXT.format(shown, "?x :p ?v . ?x :q0 ?w", ""), name=f"q{i}")
        running.register(TEXT.format("?v", "?x :p ?v . ?v :q1 ?w", ""), name="another_key")
        running.register(
            TEXT.format("?v", "?x :p ?v . ?x :q2 ?w", "").replace("PT1H", "PT2H"), name="longer"
        )
        running.start()
        room.feed(running, *things())
        assert room.rows(running) == {"Join": 3 * ROWS + 1}


def test_whether_others_have_a_side_is_asked_of_what_there_is(tmp_path: Path) -> None:
    """So a join that has nothing in common costs no operator that keeps its sides for others."""
    room = Room(tmp_path)
    with room.engine() as running:
        body = "?x :p{0} ?v . ?x :q{0} ?w . ?w :r{0} ?u"
        for i in range(5):
            running.register(TEXT.format("?x", body.format(i), ""), name=f"q{i}")
        running.start()
        room.feed(running, *things())
        common = topology_of(running).graph.common
        assert len(common.known) > 5 * 5
        assert not any(isinstance(each.form.key[0], s.Arrange) for each in common.known.values())


def test_who_comes_later_finds_what_is_kept(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with room.engine() as running:
        running.start()
        rows, having = [], 0
        for i in range(4):
            running.register(TEXT.format("?x ?v ?w", f"?x :p ?v . ?x :q{i} ?w", ""), name=f"q{i}")
            room.feed(running, *things(5))
            having = room.rows(running).get("ArrangeStream", 0)
            rows.append((room.rows(running)["Join"], having))
        # the first keeps its own; the second has what is kept for all made
        assert rows == [(5 + 1, 0), (10 + 2, 5), (15 + 3, 10), (20 + 4, 15)]
        room.feed(running, "x3 q3 9", "x4 q3 9")
        for i in (1, 0, 2, 3):
            running.unregister(f"q{i}")
            room.feed(running, "x p 1")
            assert bool(room.rows(running)) == (i != 3), "what nobody reads goes"
        running.register(TEXT.format("?x ?v ?w", "?x :p ?v . ?x :q1 ?w", ""), name="new")
        room.feed(running, *things(5))
        assert room.rows(running) == {"Join": 5}
        running.unregister("new")
        room.feed(running, "x p 1")
        topology = topology_of(running)
        assert not topology.sharing.sides._joins and not topology.sharing.sides._having
        assert not topology.graph.common.known and not topology.graph.common._forms


def test_the_first_goes_over_to_what_others_keep(tmp_path: Path) -> None:
    """Once none of its windows holds what it had before; also after a stop on the way."""
    narrow = TEXT.replace("PT1H", "PT3S")
    texts = [narrow.format("?x ?v ?w", f"?x :p ?v . ?x :q{i} ?w", "") for i in range(3)]
    said, kept = [], dict[str, int]()
    for mode in ("exact", "off"):
        (tmp_path / mode).mkdir()
        room = Room(tmp_path / mode)
        with room.engine(sharing=mode) as running:
            running.start()
            for i, text in enumerate(texts):
                running.register(text, name=f"q{i}")
                room.feed(running, *things(5))
            assert bool(topology_of(running).switches) == (mode == "exact")
            kept = kept or room.rows(running)
            running.await_end(0.01)
        with room.engine(sharing=mode) as running:
            for i, text in enumerate(texts):
                running.register(text, name=f"q{i}")
            running.start()
            for _ in range(6):
                room.feed(running, *things(5))
            if mode == "exact":
                assert kept["Join"] > 5
                kept = room.rows(running)
            running.await_end(0.01)
        said.append({n: [(r.time, len(r.solutions)) for r in own]
                     for n, own in room.sink.reports.items()})  # fmt: skip
    assert set(kept) == {"ArrangeStream", "StreamJoin"}, "of its own it keeps nothing of ?x :p ?v"
    assert said[0]["q0"] == said[1]["q0"] and len(said[0]["q0"]) > 10


def test_a_newcomer_meets_no_row_from_before_it_came(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with room.engine() as running:
        for i in (0, 1):
            running.register(TEXT.format("?x ?v ?w", f"?x :p ?v . ?x :q{i} ?w", ""), name=f"q{i}")
        running.start()
        room.feed(running, "x1 p 1", "x2 p 2")
        running.register(TEXT.format("?x ?v ?w", "?x :p ?v . ?x :q2 ?w", ""), name="later")
        room.feed(running, "x1 q2 7", "x2 p 3")
        room.feed(running, "x2 q2 8", "x1 q1 9")
        running.await_end(0.01)
    own = {name: sum(len(report.solutions) for report in reports)
           for name, reports in room.sink.reports.items()}  # fmt: skip
    assert own["later"] == 1, "?x = x2, ?v = 3"
    assert own["q1"] == 1


@pytest.mark.parametrize(
    ("window", "beside"),
    [("[TRIPLES 5]", ""), ("[RANGE PT1H]", "WINDOW :v { ?x :other ?z }")],
)
def test_what_goes_otherwise_than_by_its_own_times_stays_with_its_join(
    tmp_path: Path, window: str, beside: str
) -> None:
    room = Room(tmp_path)
    with room.engine() as running:
        for i in range(3):
            text = TEXT.replace("[RANGE PT1H]", window)
            if beside:
                text = text.replace("\nWHERE", "FROM NAMED WINDOW :v ON :s [RANGE PT2H]\nWHERE")
                text = text.format("?x", f"?x :q{i} ?v", beside)
            else:
                text = text.format("?x", f"?x :p ?v . ?x :q{i} ?w", "")
            running.register(text, name=f"q{i}")
        running.start()
        room.feed(running, *things(3))
        assert "ArrangeStream" not in room.rows(running)
