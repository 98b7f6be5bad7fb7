"""Static patterns that come one by one, over files with blank nodes, repeated triples and several
graphs: each says what the reference says, and each file is read once.

Ten sets of four; ``LEVADA_CASES`` is another number of sets, of seven queries, and has every second
engine stop and go on between two queries.
"""

from __future__ import annotations

import gzip
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from levada import Engine
from levada.runtime.driver import load_static
from levada.runtime.task import static_reader
from levada.testing.memory_sink import MemorySink
from levada.testing.reference import evaluate
from levada.testing.reference_model import ReferenceQuery, Report
from support.polling import until_engine

SETS = int(os.environ.get("LEVADA_CASES", "0"))
QUERIES = 7 if SETS else 4
E = "http://e/"
PREFIX = f"PREFIX : <{E}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
GRAPHS = (None, f"{E}g", f"{E}h")
PREDICATES = ("p", "q", "r", "kind")
VALUES = (
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>',
    f'"{2**60}"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"text"',
    '"Wort"@de',
)
pytestmark = pytest.mark.timeout(0)


def term(draw: random.Random, blanks: str) -> str:
    return draw.choice((f"<{E}{draw.choice('abcd')}>", f"_:{blanks}{draw.randrange(3)}"))


def triple(draw: random.Random, blanks: str) -> str:
    o = term(draw, blanks) if draw.random() < 0.6 else draw.choice(VALUES)
    return f"{term(draw, blanks)} <{E}{draw.choice(PREDICATES)}> {o}"


def pattern(draw: random.Random) -> str:
    s = draw.choice(("?x", "?x", "?y", "?z", ":a"))
    p = draw.choice((*(f":{p}" for p in PREDICATES), "?k"))
    return f"{s} {p} {draw.choice(('?y', '?x', '?z', '?v', ':b', '1'))}"


def text(draw: random.Random) -> str:
    """A query over static graphs."""
    groups = []
    for _ in range(draw.randint(1, 2)):
        group = " . ".join(pattern(draw) for _ in range(draw.randint(1, 2)))
        where = draw.choice(("{}", "{}", "GRAPH :g {{ {} }}", "GRAPH ?g {{ {} }}"))
        groups.append(where.format(group))
    conditions = {"?v": "FILTER(?v > 1)", "?y": "FILTER(STRLEN(STR(?y)) > 3)"}
    bound = [c for v, c in conditions.items() if v in " ".join(groups)]
    condition = draw.choice(("", *bound))
    optional = draw.choice(("", "", "OPTIONAL { ?x :kind ?c }"))
    head = draw.choice(("SELECT *", "SELECT *", "SELECT (COUNT(*) AS ?n)", "SELECT DISTINCT ?x"))
    return f"{PREFIX}{head} {{ {' . '.join(groups)} {optional} {condition} }}"


def solutions(report: Report) -> Counter[frozenset]:
    """What a report says, whatever names blank nodes have."""
    return Counter(
        frozenset((n, "_:" if v.startswith("_:") else v) for n, v in s)
        for s in report.solutions.elements()
    )


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, int]]:
    """How often tasks have read each file from each place on."""
    found: Counter[tuple[str, int]] = Counter()
    plain = static_reader.chunks

    def counted(file, seed, start, stop):  # type: ignore[no-untyped-def]
        found[Path(file.path).name, start] += 1
        return plain(file, seed, start, stop)

    monkeypatch.setattr(static_reader, "chunks", counted)
    return found


def write(draw: random.Random, root: Path) -> dict[str | None, list[str]]:
    """Five files; the triples of each graph."""
    graphs: dict[str | None, list[str]] = {graph: [] for graph in GRAPHS}
    sources = (("a.nt", None), ("b.nt.gz", None), ("c.nt", f"{E}g"), ("d.nq", ""), ("e.ttl", None))
    for name, graph in sources:
        found = [triple(draw, name[0]) for _ in range(draw.randint(0, 14))]
        found += found[: draw.randint(0, 3)]
        of = [draw.choice(GRAPHS) if graph == "" else graph for _ in found]
        named = [f"<{g}>" if graph == "" and g else "" for g in of]
        lines = [f"{t} {g} .\n" for t, g in zip(found, named, strict=True)]
        data = "".join(lines).encode()
        (root / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        for t, g in zip(found, of, strict=True):
            graphs[g].append(t)
    return graphs


def engine(root: Path, sink: MemorySink, partitions: int) -> Engine:
    found = Engine(spark=False, checkpoint=root / "ck", sink=sink, partitions=partitions)
    (root / "s.nt").touch()
    found.stream(f"{E}s", root / "s.nt")
    found.static(root / "a.nt")
    found.static(root / "b.nt.gz")
    found.static(root / "c.nt", f"{E}g")
    found.static(root / "d.nq")
    found.static(root / "e.ttl")
    found.static([], f"{E}h")  # the quads of a set may name none
    found.static([], f"{E}g")
    return found


def asked(root: Path, texts: Sequence[str], partitions: int, *, stops: bool) -> MemorySink:
    """Registers the queries one after the other, each when the one before has been answered."""
    sink = MemorySink()
    runs = [texts[: len(texts) // 2], texts[len(texts) // 2 :]] if stops else [texts]
    known = 0
    for own in runs:
        with engine(root, sink, partitions) as running:
            for i, before in enumerate(texts[:known]):
                running.register(before, name=f"q{i}")
            running.start()
            for new in own:
                name = f"q{known}"
                running.register(new, name=name)
                until_engine(running, lambda name=name: name in sink.reports)  # type: ignore[misc]
                known += 1
    return sink


@pytest.mark.parametrize("number", range(SETS or 10))
def test_each_says_what_the_reference_says_and_files_are_read_once(
    tmp_path: Path,
    opened: Counter[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    random_seed: int,
) -> None:
    draw = random.Random(random_seed + number)
    graphs, texts = write(draw, tmp_path), [text(draw) for _ in range(QUERIES)]
    if number % 3 == 0:  # by many tasks, of which each has a few lines
        monkeypatch.setattr(load_static, "LARGE_FILE_BYTES", 1)
        monkeypatch.setattr(load_static, "PIECE", 300)
    sink = asked(tmp_path, texts, draw.randint(1, 3), stops=bool(SETS) and number % 2 == 1)
    for i, own in enumerate(texts):
        expected = evaluate(ReferenceQuery(own, {}), {}, graphs)
        got = sink.reports[f"q{i}"][0]
        assert solutions(got) == solutions(expected[0]), own
    assert opened and max(opened.values()) == 1, opened
