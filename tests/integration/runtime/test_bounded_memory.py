"""``--memory``: a window larger than it gives the same results, epochs become smaller before a task
holds too much, and what cannot be smaller is a sentence.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from levada import Engine
from levada.checkpoint.verify import verify
from levada.core.query_limits import Memory
from levada.errors import EngineError, UsageError
from levada.operators.state.state_parts import read_head
from levada.runtime.cost_model import memory_admission
from levada.testing.memory_sink import MemorySink
from support.temp_dirs import on_disk

ROWS = 6000
JOIN = "Istream(Select A.k, A.v, B.v As w From A [Range 1 hour], B [Range 1 hour] Where A.k = B.k)"
GROUPS = (
    "Rstream(Select A.k, count(*) As n, sum(A.v) As s From A [Range 10 s Slide 3 s] Group By A.k)"
)
WHOLE = "Select A.k, A.v From A [Range 1 hour Slide 1 hour]"


Found = list[tuple[int, list[tuple[tuple[str, str], ...]]]]


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Streams a and b: a minute, keys that mostly differ, and one that is hot in b."""
    folder, rng = tmp_path_factory.mktemp("streams"), np.random.default_rng(16)
    for name in "ab":
        keys = rng.integers(0, 4 * ROWS, ROWS)
        if name == "b":
            keys[rng.random(ROWS) < 0.2] = 4 * ROWS
        lines = [f"{i * 10},{key},{i}" for i, key in enumerate(keys.tolist())]
        (folder / f"{name}.csv").write_text("\n".join(["ts,k,v", *lines]) + "\n")
    return folder


def run(streams: Path, checkpoint: Path, text: str, memory: str) -> tuple[Engine, Found]:
    """An engine that has read all, with what it has reported."""
    sink = MemorySink()
    with Engine(
        spark=False, partitions=2, checkpoint=checkpoint, epoch_rows=ROWS, sink=sink, memory=memory
    ) as engine:
        for name in "AB":
            path = streams / f"{name.lower()}.csv"
            engine.stream(name, path, schema={"k": "integer", "v": "integer"})
        engine.register(text, name="q", dialect="cql")
        engine.start(once=True, keep_open=text == JOIN)
        engine.await_end()
        if memory:
            assert not verify(checkpoint).damaged
    found = [
        (r.time, sorted(tuple(dict(s).items()) for s in r.solutions)) for r in sink.reports["q"]
    ]
    return engine, found


@pytest.mark.long
@pytest.mark.parametrize(("text", "memory"), [(JOIN, "200KB"), (GROUPS, "1MB")])
def test_results_are_the_same_and_epochs_smaller(
    streams: Path, tmp_path: Path, text: str, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_admission, "START", 1)  # the first epochs are too large
    free, want = run(streams, tmp_path / "free", text, "")
    bounded, got = run(streams, tmp_path / "bounded", text, f"{memory},theta=5KB")
    rows = [(t, row) for t, some in got for row in some]
    assert sorted(rows) == sorted((t, row) for t, some in want for row in some)
    last, before = bounded._checkpoint.last, free._checkpoint.last
    assert last.epoch > (4 if text == JOIN else 1) * before.epoch
    left = {f"state/{path.name}" for path in (tmp_path / "bounded" / "state").iterdir()}
    assert set(last.state.values()) <= left
    if text == JOIN:
        root = str(tmp_path / "bounded")
        from levada.checkpoint.state_files import map_

        heads = [read_head(map_(root, name)[1]) for name in last.state.values()]
        pieces = [p for head in heads for some in head.pieces.values() for p in some]
        assert max(p.depth for p in pieces) >= 2, "runs are cut"
        files = [p.file for p in pieces if p.file]
        assert len(set(files)) > 10, "and written piece by piece"


@pytest.mark.long
def test_a_report_that_is_too_large_is_a_sentence(streams: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"A task would hold .* --memory") as caught:
        run(streams, tmp_path / "c", WHOLE, "600KB,theta=5KB")
    assert "No epoch can be smaller." in caught.value.message
    _, rows = run(streams, tmp_path / "c", WHOLE, "")
    assert sum(len(some) for _, some in rows) == 2 * ROWS, "with more it goes on: all come and go"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("64MB,theta=1KB", r"theta is 1,000 bytes, less than a page \(4,096\)"),
        ("50KB", r"theta is 1,562 bytes, less than a page"),
        ("1MB,theta=500KB", r"out of order: theta is 500,000 bytes, and memory has 1,000,000"),
        ("much", r"The limit memory is a number above 0, not much"),
        ("1GB,tehta=1MB", r"Memory has no tehta\. Did you mean theta\?"),
        ("0", r"The limit memory is a number above 0"),
    ],
)
def test_what_is_no_bound(said: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Engine(spark=False, memory=said)


def test_what_a_bound_says() -> None:
    assert Memory.parse("") == Memory()
    assert Memory.parse("512MB").theta == 16_000_000
    assert Memory.parse("512MB").most < 512_000_000 // 2


GROWTH = """
import re, sys
from pathlib import Path
from levada import Engine
from levada.operators.state.state_parts import State

peak = [0]
def look():
    text = Path("/proc/self/smaps_rollup").read_text()
    peak[0] = max(peak[0], int(re.search(r"Private_Dirty: *([0-9]+)", text)[1]) << 10)

put = State.put
def looked(*given, **facts):
    look()
    return put(*given, **facts)
State.put = looked

def run(name, size, **bound):
    with Engine(spark=False, partitions=1, epoch_rows=size, keep_results=False, **bound) as engine:
        for stream in "AB":
            engine.stream(stream, f"{sys.argv[1]}/{name}{stream}.csv", schema={"k": "integer"})
        engine.register("Istream(Select A.k From A [Range 5 hours], B [Range 5 hours] "
                        "Where A.k = B.k)", dialect="cql")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        return sum((engine.root / f).stat().st_size for f in engine._checkpoint.last.files)

run("few", 2000, memory=sys.argv[2])
look()
before, peak[0] = peak[0], 0
size = run("many", 40_000, memory=sys.argv[2])
print(size, peak[0] - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc/self/smaps")
def test_what_a_task_has_of_its_own_follows_from_the_bound(tmp_path: Path) -> None:
    for name, rows in (("few", 4000), ("many", 200_000)):
        for first, stream in enumerate("AB"):  # no key is in both
            lines = [f"{i},{i * 14 % 2_000_003 * 2 + first}" for i in range(rows)]
            (tmp_path / f"{name}{stream}.csv").write_text("\n".join(["ts,k", *lines]) + "\n")
    (tmp_path / "grows.py").write_text(GROWTH)
    command = [sys.executable, str(tmp_path / "grows.py"), str(tmp_path), "4MB"]
    told = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=True, env=on_disk()
    ).stdout
    found = re.search(r"(\d+) (-?\d+)\s*$", told)
    assert found is not None
    size, grown = map(int, found.groups())
    assert size > 20_000_000
    assert grown < size, "without the bound it is some three times as much"


def lists_of_times(folder: Path) -> Path:
    """Two lists of elements, and one long after them that joins all."""
    path = folder / "s.nt"
    lines = [f"<e:x> <e:p> <e:y{i}> {1000 + i} ." for i in range(1000)]
    lines += [f"<e:y{i}> <e:r> <e:w> {10000 + i} ." for i in range(1000)]
    lines += ["<e:k> <e:k> <e:k> 3000000 .", "<e:x> <e:q> <e:z> 3000001 ."]
    path.write_text("\n".join([*lines, "<e:k> <e:k> <e:k> 3700000 ."]) + "\n")
    return path


LISTS = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w:> ON <e:s> [RANGE 1h]
WHERE { WINDOW <w:> { ?x <e:q> ?z . ?x <e:p> ?y . ?y <e:r> ?w } }"""


@pytest.mark.long
@pytest.mark.parametrize("memory", ["400KB", "700KB", "1MB", "1500KB", "40MB"])
def test_an_epoch_that_cannot_be_smaller_ends_the_engine_with_a_sentence(
    tmp_path: Path, memory: str
) -> None:
    """Joined rows are older than the watermark: an epoch that ends there would do nothing."""
    with Engine(spark=False, epoch_rows=200, memory=memory, partitions=1) as engine:
        engine.stream("e:s", lists_of_times(tmp_path))
        query = engine.register(LISTS, name="q")
        engine.start(once=True)
        try:
            engine.await_end()
        except EngineError as error:
            assert "No epoch can be smaller. Give tasks more with --memory" in str(error)
            assert memory != "40MB"
        else:
            counts = [row[0] for report in query.results() for row in report.rows.rows()]
            assert any(count.startswith('"1000"') for count in counts)
