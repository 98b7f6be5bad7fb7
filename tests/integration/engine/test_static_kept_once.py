"""Static rows are kept once by key, whoever joins with them; who comes later reads them there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from levada import Engine
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.file_inventory import names_of
from levada.checkpoint.state_files import map_
from levada.core.event_time import MAX
from levada.engine.status.sharing_report import read_sharing_report, show_run
from levada.operators.state.state_parts import StatePart, read_head
from levada.runtime.task.static_reader import StaticReader
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.polling import until_engine
from support.query_dsl import STREAM, element, feed

EACH = 250  # ms between elements that are fed
TEXT = """PREFIX : <http://e/>
SELECT {} FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S]
WHERE {{ WINDOW :w {{ {} }} {} }}"""
THINGS = 40
KINDS = [f"<http://e/x{i}> <http://e/kind> <http://e/k{i % 3}>" for i in range(THINGS)]
SHAPES = ("?x :{} ?v", "?v :{} ?x", "?x :{} ?v . ?x :r ?u", "?x :{} 1", "?x :{} ?v FILTER(?v > 2)")
SHOWN = ("?x ?k", "?k", "?k (COUNT(?x) AS ?n)", "DISTINCT ?k")


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """What static readers have read: files, and imprints of these."""
    found, plain = list[str](), StaticReader.triples

    def counted(self: StaticReader, part: Any, *rest: Any) -> Any:
        found.append(part.imprint or "file")
        return plain(self, part, *rest)

    with patch.object(StaticReader, "triples", counted):
        yield found


class Room:
    """Engines on one checkpoint, over a stream that is fed and things of three kinds."""

    def __init__(self, root: Path, partitions: int = 2) -> None:
        self.root, self.partitions, self.sink = root, partitions, MemorySink()
        self.path, self.fed = write_lines(root / "s.nt", []), 0
        self.static = write_lines(root / "kinds.nt", [])
        self.static.write_text("".join(f"{line} .\n" for line in KINDS))

    def engine(self, **options: Any) -> Engine:
        """An engine of no queries."""
        found = Engine(
            spark=False, checkpoint=self.root / "c", sink=self.sink, partitions=self.partitions,
            seed=7, **options,
        )  # fmt: skip
        found.stream(STREAM, self.path)
        found.static(self.static)
        return found

    def feed(self, running: Engine) -> None:
        """One more element, and until it is read, twice: an epoch that reads the first one may have
        begun before who has just come.
        """
        for _ in range(2):
            self.fed += 1
            feed(running, self.path, [element(EACH * self.fed, f"x{self.fed % THINGS} p 3")])

    def pieces(self) -> dict[str, list[StatePart]]:
        """The pieces of all partitions as they are now, by what they belong to."""
        found = dict[str, list[StatePart]]()
        # a manifest may go while it is looked for: there is a newer one
        last = next(filter(None, (newest_manifest(self.root / "c") for _ in range(100))))
        for name in names_of(self.root / "c", last).state.values():
            for key, own in read_head(map_(str(self.root / "c"), name)[1]).pieces.items():
                found.setdefault(key, []).extend(p for p in own)
        return found

    def kept(self) -> int:
        """The rows of all arrangements."""
        own = (some for key, some in self.pieces().items() if key.endswith(".arranged"))
        return sum(piece.rows for some in own for piece in some)

    def lasting(self) -> int:
        """The rows in state that never leave."""
        own = (some for key, some in self.pieces().items() if key[0].isdigit())
        return sum(piece.rows for some in own for piece in some if piece.dead >= MAX)


def texts() -> dict[str, str]:
    """A hundred joins of one static pattern by one key, of five shapes."""
    found = {}
    for i in range(100):
        shown, shape = SHOWN[i % 4], SHAPES[i % 5].format(f"p{i // 5}")
        tail = " GROUP BY ?k" if "COUNT" in shown else ""
        found[f"q{i}"] = TEXT.format(shown, shape, "?x :kind ?k") + tail
    return found


def test_a_hundred_joins_have_static_rows_once(tmp_path: Path, opened: list[str]) -> None:
    room = Room(tmp_path)
    with room.engine() as running:
        for name, text in texts().items():
            running.register(text, name=name)
        running.start()
        room.feed(running)
        assert room.kept() == THINGS == room.lasting()
        assert opened == ["file"]
        before = room.pieces()
        running.register(TEXT.format("?k ?o ?x", "?x :new ?o", "?x :kind ?k"), name="later")
        room.feed(running)
        after = room.pieces()
        assert opened == ["file"], "a newcomer opens no file and no imprint"
        assert room.kept() == THINGS == room.lasting(), "and keeps nothing"
        own = [key for key in before if key.endswith(".arranged")]
        assert own
        for key in own:
            assert [(p.name, p.rows) for p in before[key]] == [(p.name, p.rows) for p in after[key]]
    told = show_run(read_sharing_report(tmp_path / "c"))
    assert "Arrange of (- <http://e/kind> -), graphs default" in told
    assert "later" in told.split("kept once")[1]


def test_right_sides_are_kept_once_with_what_is_joined(tmp_path: Path, opened: list[str]) -> None:
    """Those of OPTIONAL as what is joined; of EXISTS and MINUS for all of these."""
    room = Room(tmp_path)
    sides = {
        "?x :kind ?k": THINGS,
        "OPTIONAL { ?x :kind ?k }": THINGS,
        "OPTIONAL { ?x :kind ?k FILTER(?k != :k1) }": 2 * THINGS,  # with values of ?k, too
        "FILTER EXISTS { ?x :kind ?k }": 3 * THINGS,
        "MINUS { ?x :kind ?k }": 3 * THINGS,
        "FILTER NOT EXISTS { ?x :kind ?any }": 3 * THINGS,
    }
    with room.engine() as running:
        running.start()
        for part in range(2):
            for i, (side, kept) in enumerate(sides.items()):
                shown = "?x ?v" if i > 2 else "?k ?v"
                running.register(TEXT.format(shown, f"?x :p{part} ?v", side), name=f"q{part}_{i}")
                room.feed(running)
                assert room.kept() == room.lasting() == (3 * THINGS if part else kept), side
        assert len(opened) == 3, "a file, and its imprint for each of the others"
        things = [element(9000 + i, f"x{n} p1 {i}") for i, n in enumerate((1, 2, 99))]
        feed(running, room.path, [*things, element(12_000, "x1 p 1")])
        running.await_end(0.01)
        told = show_run(read_sharing_report(tmp_path / "c")).split("kept once")[1]
    assert "ArrangedReportJoin: q0_1, q1_1" in told and "ArrangeDistinct of" in told
    said = [max((len(r.solutions) for r in room.sink.reports[f"q1_{i}"]), default=0)
            for i in range(len(sides))]  # fmt: skip
    assert said == [2, 3, 3, 2, 1, 1]


def test_a_run_that_goes_on_finds_what_is_kept(tmp_path: Path, opened: list[str]) -> None:
    room = Room(tmp_path)
    by_object = TEXT.format("?x ?k ?v", "?k :p ?v", "?x :kind ?k")
    asked = {"first": TEXT.format("?k", "?x :p ?v", "?x :kind ?k"), "object": by_object}
    rows = [2 * THINGS, 2 * THINGS, 3 * THINGS, 3 * THINGS]
    for part, kept in enumerate(rows):
        with room.engine() as running:
            if part == 2:  # other things, told by their size
                room.static.write_text(
                    room.static.read_text() + KINDS[0].replace("k0", "k7") + " .\n"
                )
            for name, text in asked.items():
                running.register(text, name=name)
            running.start()
            room.feed(running)
            asked[f"q{part}"] = TEXT.format("?k ?v", f"?x :p{part} ?v", "?x :kind ?k")
            running.register(asked[f"q{part}"], name=f"q{part}")
            room.feed(running)
        assert room.kept() == kept + (part > 1), part
    assert len(opened) == 2, "the first run, and the one that finds another file"


def test_another_key_another_condition_and_more_columns_are_kept_apart(
    tmp_path: Path, opened: list[str]
) -> None:
    room = Room(tmp_path)
    asked = {
        "by_subject": (TEXT.format("?v", "?x :p ?v", "?x :kind ?k"), THINGS),
        "again": (TEXT.format("?x", "?x :p ?v", "?x :kind ?k"), THINGS),
        "its_text": (TEXT.format("?k", "?x :p ?v", "?x :kind ?k"), 2 * THINGS),
        "its_text_again": (TEXT.format("?k ?v", "?x :p ?v", "?x :kind ?k"), 2 * THINGS),
        "by_object": (TEXT.format("?x ?v", "?k :p ?v", "?x :kind ?k"), 3 * THINGS),
        "a_constant": (TEXT.format("?x ?v", "?x :p ?v", "?x :kind :k1"), 3 * THINGS + 13),
    }
    with room.engine() as running:
        running.start()
        for name, (text, rows) in asked.items():
            running.register(text, name=name)
            room.feed(running)
            assert room.kept() == rows, name
        assert len(opened) == 4
        running.unregister("by_object")
        running.unregister("by_subject")
        room.feed(running)
        assert room.kept() == 2 * THINGS + 13, "what nobody reads goes"
        running.unregister("again")
        room.feed(running)
        assert room.kept() == THINGS + 13


def test_rows_of_tables_find_what_is_kept_and_others_find_theirs(
    tmp_path: Path, opened: list[str]
) -> None:
    room = Room(tmp_path)
    text = TEXT.format("?k ?v", "?x :p{{c}} ?v", "?x :kind ?k")
    with room.engine() as running:
        running.start()
        for part in range(3):
            table = [{"c": 10 * part + i} for i in range(4)]
            running.register_each(text, table, name="row-{{c}}")
            room.feed(running)
            if part == 1:
                single = TEXT.format("?k", "?x :q ?v", "?x :kind ?k")
                running.register(single, name="single")
                room.feed(running)
            assert room.kept() == THINGS, part
        assert opened == ["file"]
        feed(running, room.path, [element(2100, "x1 p23 7"), element(9000, "x2 p 1")])
        until_engine(running, lambda: "row-23" in room.sink.reports)
    (report, *_) = room.sink.reports["row-23"]
    ((k, v),) = [sorted(dict(solution).values()) for solution in report.solutions]
    assert "7" in k and v == "<http://e/k1>"


def test_queries_that_share_nothing_keep_their_own(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with room.engine(sharing="off") as running:
        for i in range(3):
            running.register(TEXT.format("?k", "?x :p ?v", "?x :kind ?k"), name=f"q{i}")
        running.start()
        room.feed(running)
        assert room.kept() == 3 * THINGS


def test_rows_of_members_that_are_gone_go_when_others_come(tmp_path: Path) -> None:
    room = Room(tmp_path, partitions=1)
    with room.engine() as running:
        running.register(TEXT.format("?x", "?x :p ?v", "?x :kind :k0"), name="stays")
        running.start()
        for i in range(12):
            running.register(TEXT.format("?x", "?x :p ?v", f"?x :kind :k{1 + i % 2}"), name=f"q{i}")
            room.feed(running)
            running.unregister(f"q{i}")
            room.feed(running)
        assert room.kept() <= 4 * 14, "not all twelve are there"
        assert len(next(v for k, v in room.pieces().items() if k.endswith(".arranged"))) <= 5


def test_queries_that_want_other_static_rows_share_what_any_of_them_wants(
    tmp_path: Path, opened: list[str]
) -> None:
    """14 things are of the first kind, 13 of each other one."""
    room = Room(tmp_path)

    def come(running: Engine, name: str, side: str, kept: int, length: str = "PT2S") -> None:
        text = TEXT.format("?x ?v", "?x :p ?v", side)
        running.register(text.replace("PT2S", length), name=name)
        feed_until(room, running, lambda: room.kept() == kept)

    with room.engine(sharing="relax") as running:
        for i in (0, 1):
            text = TEXT.format("?x ?v", "?x :p ?v", f"?x :kind :k{i}")
            running.register(text, name=f"q{i}")
        running.start()
        feed_until(room, running, lambda: room.kept() == 14 + 13)
        assert opened == ["file"]
        come(running, "q2", "?x :kind :k2", THINGS)
        come(running, "again", "?x :kind ?k FILTER(?k = :k2)", THINGS + 13)  # by its text, alone
        come(running, "others", "?x :kind ?k FILTER(?k IN (:k0, :k2))", THINGS + 13 + 27)
        assert "file" not in opened[1:], "newcomers read the imprint"
        for name in ("q0", "q1", "again", "others"):
            running.unregister(name)
        # of the 40 more than half are nobody's
        come(running, "last", "?x :kind :k2", 13, "PT4S")
        told = show_run(read_sharing_report(tmp_path / "c")).split("kept once")[1]
        assert "RelaxedStatic" in told
        at = EACH * room.fed
        things = [element(at, "x2 p 1"), element(at, "x3 p 1"), element(at + 9000, "x1 p 2")]
        feed(running, room.path, things)
        until_engine(running, lambda: says(room, "last"))
    assert says(room, "last")[-1] == ["<http://e/x2>"]


def feed_until(room: Room, running: Engine, condition: Callable[[], bool]) -> None:
    """One element after the other."""
    for _ in range(20):
        room.feed(running)
        if condition():
            return
    pytest.fail(f"{room.kept()} rows are kept")


def _keeps(room: Room, rows: int) -> bool:
    return room.kept() == rows


def says(room: Room, name: str) -> list[list[str]]:
    """The things of value 1 in the reports of a query that have some."""
    reports = room.sink.reports.get(name, [])
    found = [[dict(s)["x"] for s in r.solutions if dict(s)["v"].startswith('"1"')] for r in reports]
    return [each for each in found if each]


def test_rows_of_tables_that_want_other_static_rows_come_with_them(
    tmp_path: Path, opened: list[str]
) -> None:
    room = Room(tmp_path)
    text = TEXT.format("?x ?v", "?x :p ?v", "?x :kind ?k FILTER(?k = <http://e/k{{c}}>)")
    with room.engine(sharing="relax") as running:
        running.start()
        for part, kept in enumerate((14 + 13, THINGS, THINGS)):
            table = [{"c": part + i} for i in range(2)]
            running.register_each(text, table, name=f"row{part}-{{{{c}}}}")
            feed_until(room, running, partial(_keeps, room, kept))
        assert opened.count("file") == 1
        at = EACH * room.fed
        feed(running, room.path, [element(at, "x2 p 1"), element(at + 9000, "x1 p 2")])
        until_engine(running, lambda: says(room, "row1-2"))
    assert says(room, "row1-2")[-1] == ["<http://e/x2>"] and not says(room, "row0-0")


def test_rows_of_streams_are_kept_for_nobody_where_static_ones_are(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with room.engine() as running:
        running.stream("http://e/u", room.path, unique=True)
        on_unique = TEXT.format("?k", "?x :p ?v", "?x :kind ?k").replace("ON :s", "ON :u")
        running.register(on_unique, name="unique")
        running.register(TEXT.format("?k", "?x :p ?v", "?x :kind ?k"), name="set")
        running.start()
        room.feed(running)

        def sides() -> list[int]:
            kept = room.pieces().items()
            return [sum(p.rows for p in some) for k, some in kept if re.fullmatch(r"\d+\.[01]", k)]

        until_engine(running, lambda: sides() == [1])  # an element, by which equal ones are found
        assert room.kept() == THINGS
