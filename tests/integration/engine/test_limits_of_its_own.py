"""A query that was added with lower limits than others have: it alone is suspended by them, and
whoever shares its operators, or asks for the same, goes on exactly.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from levada import Engine
from levada.checkpoint import request_files as store
from levada.checkpoint.request_files import QuerySpec, Request
from levada.core.query_limits import Limited, QueryLimits
from levada.engine.status.status import read_status
from levada.testing.memory_sink import MemorySink
from levada.testing.reference_model import Report

S = "http://e/s"
PREFIX = "PREFIX : <http://e/> "
WINDOW = f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT1S] WHERE {{ WINDOW :w "
ALL = f"{PREFIX}SELECT ?a ?n {WINDOW}{{ ?a :p ?n }} }}"
OFTEN = ALL.replace("STEP PT1S", "STEP PT0.1S")
ONE = f"{PREFIX}SELECT ?a ?n {WINDOW}{{ ?a :p ?n }} FILTER(?a = :aK) }}"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
IDS = map("{:020d}".format, itertools.count())

pytestmark = pytest.mark.filterwarnings("ignore:.*suspended")
Asked = Mapping[str, tuple[str, str]]  # text and limits by name


def numbers(first: int, last: int, each: int = 50) -> str:
    """An element every 50 ms, in ms."""
    return "".join(
        f'<http://e/a{t // each % 7}> <http://e/p> "{t // each}"^^<{INTEGER}> {t} .\n'
        for t in range(first, last, each)
    )


def run(root: Path, stream: Path, sharing: str = "exact") -> dict[str, list[Report]]:
    """All that is there to read; what was published, by query."""
    sink = MemorySink()
    with Engine(
        spark=False, checkpoint=root, sink=sink, keep="1h", partitions=1, epoch_rows=80,
        sharing=sharing, limits="solutions=10000",
    ) as engine:  # fmt: skip
        engine.stream(S, stream)
        engine.start(once=True, keep_open=True)
        engine.await_end()
    return sink.reports


def world(folder: Path, queries: Asked, lines: str, sharing: str = "exact") -> Path:
    """A checkpoint on which queries were asked for before anything was read."""
    folder.mkdir()
    stream, root = folder / "s.nt", folder / "ck"
    stream.write_text("")
    run(root, stream)
    asked = [QuerySpec(name, text, limits=limits) for name, (text, limits) in queries.items()]
    store.place(root, Request(next(IDS), asked))
    stream.write_text(lines)
    return root


@pytest.mark.parametrize(
    ("limit", "text", "told", "sharing"),
    [
        ("solutions=39", ALL, "40 solutions; the limit is 39.", "relax"),
        ("bytes=1KB", ALL, "bytes; the limit is 1,000.", "exact"),
        ("reports=5", OFTEN, "reports of what was read at once; the limit is 5.", "relax"),
        ("rate=100", OFTEN, "a second.", "relax"),
        ("kept=5KB", ALL, "bytes of its results are kept; the limit is 5,000.", "off"),
    ],
)
def test_who_asks_for_the_same_goes_on(
    tmp_path: Path, limit: str, text: str, told: str, sharing: str
) -> None:
    lines, others = numbers(0, 6000), {f"q{k}": (ONE.replace("K", str(k)), "") for k in range(3)}
    root = world(tmp_path / "a", {**others, "theirs": (text, "")}, lines)
    alone = run(root, tmp_path / "a" / "s.nt", sharing)
    asked = {**others, "mine": (text, limit), "theirs": (text, "kept=1GB,bytes=off")}
    root = world(tmp_path / "b", asked, lines)
    found = run(root, tmp_path / "b" / "s.nt", sharing)
    assert {name: found[name] for name in alone} == alone and len(alone) == 4
    (name, why), *more = read_status(root).suspended_queries.items()
    assert (name, more) == ("mine", [])
    assert told in why and f"a limit of its own, of whoever has added it ({limit[:4]}" in why
    run(root, tmp_path / "b" / "s.nt", sharing)
    assert list(read_status(root).suspended_queries) == ["mine"], "it lasts"


@pytest.mark.long
def test_random_limits(tmp_path: Path, random_seed: int) -> None:
    """Each query is suspended if a report of it has more than it may have, and no other is."""
    draw = random.Random(random_seed)
    lines = numbers(0, 4000, 25)
    texts = [ALL, OFTEN, *(ONE.replace("K", str(k)) for k in range(3))]
    for trial in range(2):
        asked = {f"q{i}": (draw.choice(texts), "") for i in range(10)}
        root = world(tmp_path / f"{trial}", asked, lines)
        free = run(root, tmp_path / f"{trial}" / "s.nt")
        most = {name: max(_size(report)[0] for report in free[name]) for name in asked}
        sizes = {name: max(_size(report)[1] for report in free[name]) for name in asked}
        limits = {name: draw.choice(("", "solutions", "bytes")) for name in asked}
        bounds = {
            name: max(int((sizes if word == "bytes" else most)[name] * draw.uniform(0.5, 1.5)), 1)
            for name, word in limits.items()
        }
        said = {name: f"{word}={bounds[name]}" if word else "" for name, word in limits.items()}
        wanted = {name: (text, said[name]) for name, (text, _) in asked.items()}
        root = world(tmp_path / f"{trial}l", wanted, lines)
        found = run(root, tmp_path / f"{trial}l" / "s.nt", draw.choice(("off", "exact", "relax")))
        found_sizes = {"solutions": most, "bytes": sizes}
        over = {n for n, word in limits.items() if word and found_sizes[word][n] > bounds[n]}
        assert set(read_status(root).suspended_queries) == over, (random_seed, wanted)
        assert {n: found[n] for n in asked if n not in over} == {
            n: free[n] for n in asked if n not in over
        }, (random_seed, wanted)


def _size(report: Report) -> tuple[int, int]:
    """How many solutions a report has, and the bytes of their texts."""
    rows = [row for row, n in report.solutions.items() for _ in range(n)]
    return len(rows), sum(len(text.encode()) for row in rows for _, text in row)


def test_limits_come_back_with_the_query(tmp_path: Path) -> None:
    asked = {"mine": (ALL, "solutions=45"), "theirs": (ALL, "")}
    root = world(tmp_path / "a", asked, numbers(0, 4000))
    stream = tmp_path / "a" / "s.nt"
    run(root, stream)
    assert read_status(root).suspended_queries == {}
    stream.write_text(stream.read_text() + numbers(4000, 8000, 25))
    found = run(root, stream)
    assert list(read_status(root).suspended_queries) == ["mine"]
    assert max(_size(report)[0] for report in found["theirs"]) == 80
    ledger = store.read_ledger(root)
    assert [added.limits for added in ledger.added_queries] == ["solutions=45", ""]


def test_limits_that_are_none_are_refused(tmp_path: Path) -> None:
    root = world(tmp_path / "a", {"mine": (ALL, "solution=45")}, numbers(0, 1000))
    run(root, tmp_path / "a" / "s.nt")
    (answer,) = (store.take_answer(root, path.stem) for path in (root / "requests").iterdir())
    assert answer is not None and answer.refusal.startswith("There is no limit solution.")
    assert store.read_ledger(root).added_queries == []


def test_the_lower_limit_holds() -> None:
    engine = QueryLimits.parse("bytes=1MB,reports=10", rows=100)
    asked = QueryLimits.parse("bytes=5MB,reports=5,kept=7", rows=100).tightened_by(engine)
    assert asked == QueryLimits(rows=100, solutions=100, bytes=1_000_000, reports=5, kept=7)
    limited = Limited(engine, {"q": asked})
    assert (limited.limits_of_query("q").reports, limited.limits_of_query("p").reports) == (5, 10)
    assert limited.any("kept") and not Limited(engine).any("kept")
