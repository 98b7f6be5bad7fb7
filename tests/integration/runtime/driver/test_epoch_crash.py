"""Death before every single change of the disk, and a new start on the same checkpoint: nothing is
lost, nothing twice.

A process that is killed has done some of its writes and none of the later ones. So the run is
stopped before its k-th call that makes, names, syncs or deletes a file, for every k there is, and
nothing after that call reaches the disk.
"""

from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint import file_read_log
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink, Roll
from levada.engine.engine import Engine
from levada.testing.compare import read_ndjson
from levada.testing.stream_builders import lines, write_lines
from support.fault_injection import Fate, published, survived
from support.generators import Clause
from support.query_dsl import S, T, element, judge, query, register, step

LEFT = [element(250 * i, f"a{i % 3} p {i % 4}", f"a{i % 3} q b{i % 2}") for i in range(14)]
RIGHT = [element(400 * i, f"b{i % 2} r {i}") for i in range(9)]
STREAMS = {S: LEFT, T: RIGHT}
JOIN = {"w": (S, step(2000, 1000)), "v": (T, Clause("range", 1500))}
QUERIES = [
    query(
        "SELECT ?a ?n", "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :r ?n }", name="join", windows=JOIN
    ),
    query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :p ?n }",
        name="fresh",
        windows={"w": (S, Clause("range", 1000))},
        output="ISTREAM",
    ),
    query(
        "SELECT ?a (SUM(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=" GROUP BY ?a",
        name="sum",
        windows={"w": JOIN["w"]},
    ),
    query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :q ?b } OPTIONAL { WINDOW :v { ?b :r ?n } }",
        name="maybe",
        windows=JOIN,
    ),
]


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Any:
    return Fate(monkeypatch)


def source(folder: Any) -> Any:
    """Two streams; the left one has a late element and a malformed line."""
    folder.mkdir()
    text = list(lines(LEFT))
    text.insert(20, "<http://e/late> <http://e/p> <http://e/o> 1 .")
    text.insert(24, "this is no triple")
    (folder / "s.nt").write_text("".join(f"{line}\n" for line in text))
    write_lines(folder / "t.nt", RIGHT)
    return folder


EACH, FULLER = Roll(), Roll(bytes=12_000, age=10**9)


def attempt(
    data: Any, root: Any, kills: Any = None, fate: Any = None, roll: Any = EACH, rows: int = 24
) -> Any:
    """A run; whether it came to its end."""
    out = FileSink(root / "out", Format.NDJSON, roll)
    engine = Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=rows, partitions=2, sink=out,
        letters=root / "out", seed=7,
        keep_results=False,
    )  # fmt: skip
    engine.stream(S, data / "s.nt")
    engine.stream(T, data / "t.nt")
    register(engine, QUERIES)
    return survived(engine, kills, fate)


def reports(files: Any) -> Any:
    names = sorted(n for n in files if not n.startswith(("out/late", "out/dead")))
    return read_ndjson(line for name in names for line in files[name].splitlines())


def test_a_run_without_a_kill_is_right(tmp_path: Path) -> None:
    data = source(tmp_path / "data")
    assert attempt(data, tmp_path)
    files = published(tmp_path)
    judge(QUERIES, STREAMS, reports(files))
    assert sum("/late/" in name for name in files) == 1
    assert sum("/dead-letter/" in name for name in files) == 1


@pytest.mark.parametrize(
    "stride", [pytest.param(i, marks=[pytest.mark.long] * (i > 0)) for i in range(4)]
)
def test_killed_before_any_change_of_the_disk(tmp_path: Path, fate: Any, stride: Any) -> None:
    data = source(tmp_path / "data")
    assert attempt(data, tmp_path / "whole", None, fate)
    whole, points = published(tmp_path / "whole"), fate.calls
    assert points > 60, "there are several epochs with many steps each"
    for k in range(stride, points, 4):
        root = tmp_path / str(k)
        assert not attempt(data, root, k, fate), f"the kill before call {k} came"
        assert attempt(data, root), f"after a kill before call {k}"
        assert published(root) == whole, f"after a kill before call {k}"
        assert not leftovers(root), f"after a kill before call {k}"


def test_killed_again_and_again(tmp_path: Path, fate: Any) -> None:
    data = source(tmp_path / "data")
    attempt(data, tmp_path / "whole")
    kills = 0
    while not attempt(data, tmp_path, 11 + 5 * kills, fate):
        kills += 1
        assert kills < 60, "each start gets further than the one before"
    assert kills > 5
    assert published(tmp_path) == published(tmp_path / "whole")


@pytest.mark.long
def test_killed_while_results_are_held_back_for_fuller_files(tmp_path: Path, fate: Any) -> None:
    data = source(tmp_path / "data")
    assert attempt(data, tmp_path / "plain", rows=8)
    assert attempt(data, tmp_path / "whole", None, fate, FULLER, 8)
    whole, points = published(tmp_path / "whole"), fate.calls
    judge(QUERIES, STREAMS, reports(whole))
    assert 6 < len(whole) < len(published(tmp_path / "plain")), (
        "files cover several epochs, and are not one"
    )
    for k in range(5, points, points // 11):
        root = tmp_path / str(k)
        assert not attempt(data, root, k, fate, FULLER, 8), f"the kill before call {k} came"
        before = published(root) if (root / "out").exists() else {}
        assert attempt(data, root, roll=FULLER, rows=8), f"after a kill before call {k}"
        assert published(root) == whole, f"after a kill before call {k}"
        assert before.items() <= whole.items(), "what is there does not change"


@pytest.mark.long
def test_killed_while_what_is_read_goes_into_a_log(
    tmp_path: Path, fate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many files, of which a position keeps few; the log is written anew now and then, too."""
    monkeypatch.setattr(file_read_log, "MAX_SETTLED_FILES", 2)
    data = tmp_path / "data"
    data.mkdir()
    for i, one in enumerate(LEFT):
        write_lines(data / f"{i * 5 % len(LEFT):02}.nt", [one])

    def run(root: Path, kills: int | None = None, fate: Any = None) -> Any:
        engine = Engine(
            spark=False, checkpoint=root / "ck", epoch_rows=5, partitions=1,
            sink=FileSink(root / "out", Format.NDJSON), seed=7, keep_results=False,
        )  # fmt: skip
        engine.stream(S, data, files="parallel", lateness="1h")
        register(engine, QUERIES[2:3])
        return survived(engine, kills, fate)

    assert run(tmp_path / "whole", None, fate)
    whole, points = published(tmp_path / "whole"), fate.calls
    judge(QUERIES[2:3], STREAMS, reports(whole))
    for k in range(0, points, 3):
        root = tmp_path / str(k)
        assert not run(root, k, fate), f"the kill before call {k} came"
        assert run(root), f"after a kill before call {k}"
        assert published(root) == whole, f"after a kill before call {k}"


def leftovers(root: Path) -> list[str]:
    """Files of attempts in the checkpoint that no manifest names."""
    from levada.checkpoint.file_inventory import names_of
    from levada.checkpoint.manifest import read_manifest

    manifests = [
        read_manifest(p) for p in (root / "ck" / "manifests").iterdir() if p.name.isdigit()
    ]
    named = {name for m in manifests for name in names_of(root / "ck", m).files}
    return [p.name for p in (root / "ck" / "state").iterdir() if f"state/{p.name}" not in named]
