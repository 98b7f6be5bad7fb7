"""Static files are read once, whatever queries come later, and say what they would say alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from levada import Engine
from levada.checkpoint.leadership.rollback import rollback
from levada.checkpoint.state_files import map_
from levada.connectors.ingest.static_load_report import describe_load
from levada.engine.status.status import read_status
from levada.runtime.task import static_reader as reader
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.polling import until_engine
from support.query_dsl import STREAM, element, feed

TEXT = """PREFIX : <http://e/>
SELECT {} FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S]
WHERE {{ WINDOW :w {{ ?x :p ?v }} ?x :kind ?k {} }}"""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The static files that are read, as often as they are."""
    found: list[str] = []
    plain = reader.chunks

    def counted(file: Any, *rest: Any) -> Any:
        found.append(Path(file.path).name)
        return plain(file, *rest)

    with patch.object(reader, "chunks", counted):
        yield found


def kinds(sink: MemorySink, name: str) -> list[list[str]]:
    """What a query says of kinds, report by report."""
    return [
        sorted(dict(s)["k"].strip("<>").removeprefix("http://e/") for s in r.solutions.elements())
        for r in sink.reports.get(name, [])
    ]


def test_equal_join_that_comes_later_reads_no_file(tmp_path: Path, opened: list[str]) -> None:
    path, static = write_lines(tmp_path / "s.nt", []), tmp_path / "kinds.nt"
    static.write_text("<http://e/a> <http://e/kind> <http://e/Room> .\n")
    sink = MemorySink()

    def engine() -> Engine:
        found = Engine(spark=False, checkpoint=tmp_path / "c", sink=sink, partitions=1)
        found.stream(STREAM, path)
        found.static(static)
        return found

    texts = {
        "first": TEXT.format("?x ?v ?k", ""),
        "same": TEXT.format("?x ?v ?k", ""),
        "less": TEXT.format("?k", ""),
        "other": TEXT.format("?k", "FILTER(?v > 0)"),
        "changed": TEXT.format("?x ?v ?k", ""),
    }
    read = []
    with engine() as running:
        running.start()
        for i, (name, text) in enumerate(texts.items()):
            if name == "changed":
                static.write_text("<http://e/a> <http://e/kind> <http://e/Store> .\n")
            running.register(text, name=name)
            feed(running, path, [element(1000 * i + 500, f"a p {i + 1}")])
            read.append(len(opened))
    assert read == [1, 1, 1, 1, 2], "what is there now is read, by whoever comes then"
    with engine() as running, pytest.warns(UserWarning, match="has changed since it was read"):
        for name, text in texts.items():
            running.register(text, name=name)
        running.start(once=True)
        running.await_end()
    assert kinds(sink, "first") == [["Room", "Room"], ["Room", "Room"], ["Room"]]
    assert kinds(sink, "same") == [["Room"], ["Room", "Room"], ["Room"]]
    assert kinds(sink, "less") == [["Room", "Room"], ["Room"]]
    assert kinds(sink, "changed") == [["Store"]]


OTHERS = {
    "first": TEXT.format("?x ?v ?k", ""),
    "pattern": TEXT.format("?x ?v ?n", "").replace(":kind ?k", ":name ?n"),
    "key": TEXT.format("?k ?n ?v", "").replace("?x :kind ?k", "?n :kind ?k . ?k :at ?v"),
    "any": TEXT.format("?x ?k (COUNT(?o) AS ?n)", "").replace(":kind ?k", "?k ?o")
    + " GROUP BY ?x ?k",
    "named": TEXT.format("?x ?k", "").replace("?x :kind ?k", "GRAPH ?g { ?k :of ?x }"),
    "once": "PREFIX : <http://e/>\nSELECT ?x ?n { ?x :name ?n FILTER(STRLEN(?n) > 3) }",
}
DATA = {
    "kinds.nt": "<http://e/a> <http://e/kind> _:r . _:r <http://e/at> 7 .\n".replace(
        " . _:r", " .\n_:r"
    ).replace("7", '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    "names.ttl": "@prefix : <http://e/> . :a :name 'Anna', 'An' . :b :name 'Berta' .",
    "of.nq": "<http://e/c> <http://e/of> <http://e/a> <http://e/g> .\n" * 2,
}


class Room:
    """Engines on one checkpoint, over the files of ``DATA`` and a stream that is fed."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root, self.sink = root, MemorySink()
        self.path = write_lines(root / "s.nt", [])
        for name, text in DATA.items():
            (root / name).write_text(text)
        self.fed = 0

    def engine(self, *names: str, reload: bool = False) -> Engine:
        """An engine that has these queries."""
        found = Engine(
            spark=False, checkpoint=self.root / "c", sink=self.sink, partitions=2, seed=7
        )
        found.stream(STREAM, self.path)
        for name in DATA:
            found.static(self.root / name, reload=reload and name == "names.ttl")
        found.static(["<http://e/a> <http://e/name> <http://e/line>"])
        for name in names:
            found.register(OTHERS[name], name=name)
        return found

    def feed(self, running: Engine) -> None:
        """An element, which the reports of an epoch follow from."""
        until_engine(
            running, lambda: sum(r.elements for r in running._records().values()) == self.fed
        )
        self.fed += 1
        feed(running, self.path, [element(2000 * self.fed + 500, f"a p {self.fed % 3 + 6}")])

    def says(self, name: str) -> list[list[str]]:
        """The reports of a query, but for times and the names of blank nodes."""
        return [
            sorted(
                str(sorted((n, "_:" if v.startswith("_:") else v) for n, v in s))
                for s in r.solutions.elements()
            )
            for r in self.sink.reports.get(name, [])
        ]


def alone(root: Path, name: str, fed: int, after: int) -> list[list[str]]:
    """What a query says that comes after so many of the elements, in an engine of its own."""
    room = Room(root)
    with room.engine() as running:
        running.start()
        running.register("SELECT * FROM NAMED WINDOW <w> ON <http://e/s> [NOW] "
                         "{ WINDOW <w> { ?s ?p ?o } }", name="stays", dialect="rspql")  # fmt: skip
        for i in range(fed):
            if i == after:
                running.register(OTHERS[name], name=name)
            room.feed(running)
    return room.says(name)


def test_other_queries_that_come_later_open_no_file(tmp_path: Path, opened: list[str]) -> None:
    room = Room(tmp_path / "all")
    came = list(OTHERS)
    with room.engine() as running:
        running.start()
        for name in came[:4]:
            running.register(OTHERS[name], name=name)
            room.feed(running)
    with room.engine(*came[:4]) as running:  # it goes on
        running.start()
        for name in came[4:]:
            running.register(OTHERS[name], name=name)
            room.feed(running)
    assert sorted(opened) == sorted([*DATA, "3.nt"])
    static = read_status(tmp_path / "all" / "c").static_load
    assert (
        static is not None
        and static.imprint_parts
        and static.imprint_triples
        and not static.source_parts
    )
    assert f"{static.imprint_triples} triples of {static.imprint_parts} imprints" in describe_load(
        static
    )
    del opened[:]
    for i, name in enumerate(came):
        expected = alone(tmp_path / name, name, len(came), i)
        assert any(expected), name
        assert room.says(name) == expected, name
    assert len(opened) >= len(came), "alone each reads what there is"


def imprinted(room: Room) -> list[str]:
    """The files of which there are imprints."""
    names = [p.name for p in (room.root / "c" / "state").glob(f"*-{reader.MARK}-*")]
    metas = (map_(str(room.root / "c"), f"state/{name}")[1] for name in sorted(names))
    return sorted(Path(s.path).name for meta in metas for s in reader.sources_in(meta))


def test_a_rollback_has_the_imprints_of_the_manifest_before(
    tmp_path: Path, opened: list[str]
) -> None:
    room = Room(tmp_path)
    with room.engine("first", "pattern") as running:
        running.start()
        for _ in range(4):
            room.feed(running)
    assert len(opened) == len(DATA) + 1
    before, read = room.says("first"), len(opened)
    rollback(tmp_path / "c", None, wall=0)
    with room.engine("first", "pattern", "key", "once") as running:
        running.start()
        room.feed(running)
        room.feed(running)
    assert len(opened) == read
    assert room.says("first")[: len(before)] == before and len(room.says("first")) >= 5
    assert room.says("once") == [["[('n', '\"Anna\"'), ('x', '<http://e/a>')]",
                                  "[('n', '\"Berta\"'), ('x', '<http://e/b>')]"]]  # fmt: skip


def test_what_is_replaced_is_read_once_and_the_old_imprint_goes(
    tmp_path: Path, opened: list[str]
) -> None:
    room = Room(tmp_path)
    with room.engine("pattern", reload=True) as running:
        running.start()
        room.feed(running)
        room.feed(running)
        first = imprinted(room)
        (tmp_path / "new").write_text(DATA["names.ttl"].replace("'An'", "'Ann'"))
        (tmp_path / "new").replace(tmp_path / "names.ttl")
        until_engine(running, lambda: {*imprinted(room)} - {*first})
        for _ in range(3):
            room.feed(running)
        read = len(opened)
        running.register(OTHERS["once"], name="once")
        room.feed(running)
        assert len(opened) == read and len(set(opened)) == read, "each content once"
    assert len({*first} - {*imprinted(room)}) == 1
    names = ["".join(report) for report in room.says("pattern") if report]
    assert '"An"' in names[0] and '"An"' not in names[-1] and '"Ann"' in names[-1]
    assert "Anna" in str(room.says("once")) and "Berta" in str(room.says("once"))


def test_a_file_that_has_changed_is_read_anew_and_one_that_is_gone_is_known(
    tmp_path: Path, opened: list[str]
) -> None:
    room = Room(tmp_path)
    with room.engine("first") as running:
        running.start()
        room.feed(running)
        (tmp_path / "names.ttl").write_text(DATA["names.ttl"].replace("Berta", "Beate"))
        (tmp_path / "kinds.nt").unlink()
        running.register(OTHERS["once"], name="once")
        running.register(OTHERS["key"], name="key")
        for _ in range(4):
            room.feed(running)
    assert sorted(opened) == ["3.nt", "kinds.nt", "names.ttl", "names.ttl", "of.nq"]
    assert "Beate" in str(room.says("once")) and "Berta" not in str(room.says("once"))
    assert [r for r in room.says("key") if r]
    assert imprinted(room).count("names.ttl") == 2, "one file of imprints has both others, too"


def test_what_the_last_epoch_reads_is_for_nobody(tmp_path: Path) -> None:
    room = Room(tmp_path)
    with room.engine("first", "once") as running:
        running.start(once=True)
        running.await_end()
    assert room.says("once") and not imprinted(room)
