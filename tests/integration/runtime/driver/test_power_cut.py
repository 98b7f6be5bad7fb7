"""A power cut before any change of the disk: a new start on what was synced gives the results of a
run without one, and what was published before is as it was.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint import file_read_log, live_files
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.connectors.spool.push_spool import PushLog
from levada.connectors.spool.spool_folder import spool_folder
from levada.engine.engine import Engine
from levada.engine.status.result_archive import Archive
from levada.testing.stream_builders import lines, write_lines
from support.fault_injection import Fate, published, survived
from support.generators import Clause
from support.power_cut import Disk
from support.query_dsl import S, T, element, query, register, step

LEFT = [element(250 * i, f"a{i % 3} p {i % 4}", f"a{i % 3} q b{i % 2}") for i in range(14)]
RIGHT = [element(400 * i, f"b{i % 2} r {i}") for i in range(9)]
QUERIES = [
    query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :r ?n }",
        name="join",
        windows={"w": (S, step(2000, 1000)), "v": (T, Clause("range", 1500))},
    ),
    query(
        "SELECT ?a (SUM(?n) AS ?m)",
        "WINDOW :w { ?a :p ?n }",
        tail=" GROUP BY ?a",
        name="sum",
        windows={"w": (S, step(2000, 1000))},
    ),
]


def source(folder: Path) -> Path:
    """Two streams, with a late element and a malformed line."""
    folder.mkdir()
    text = list(lines(LEFT))
    text.insert(20, "<http://e/late> <http://e/p> <http://e/o> 1 .")
    text.insert(24, "this is no triple")
    (folder / "s.nt").write_text("".join(f"{line}\n" for line in text))
    write_lines(folder / "t.nt", RIGHT)
    return folder


def attempt(data: Path, root: Path, kills: int | None = None, fate: Fate | None = None) -> bool:
    """A run that keeps an index; whether it came to its end."""
    engine = Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=12, partitions=2, seed=7, keep="1h",
        sink=FileSink(root / "out", Format.NDJSON), letters=root / "out", keep_results=False,
    )  # fmt: skip
    engine.stream(S, data / "s.nt")
    engine.stream(T, data / "t.nt")
    register(engine, QUERIES)
    return survived(engine, kills, fate)


def indexed(root: Path) -> dict[str, list[int]]:
    """The reports that the index has, by query."""
    archive = Archive(root / "ck")
    archive.refresh()
    return {q: [r for f in archive.after(q, None) for r in f.ids] for q in ("join", "sum")}


def count_calls(monkeypatch: pytest.MonkeyPatch, root: Path, run: Any) -> int:
    """How often a run to its end changes the disk."""
    root.mkdir()
    with monkeypatch.context() as patch:
        fate = Fate(patch)
        assert run(root, None, fate)
        return fate.calls


def powers_cut(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Any, points: range
) -> list[Path]:
    """The folders that are left of runs whose power was cut at these points."""
    left = []
    for k in points:
        root, cut = tmp_path / str(k), tmp_path / f"{k}-cut"
        root.mkdir()
        with monkeypatch.context() as patch:
            disk = Disk(patch, root, tmp_path / "pins")
            assert not run(root, k, Fate(patch)), f"the kill before call {k} came"
            disk.cut(cut)
            disk.forget()
        left.append(cut)
    return left


@pytest.mark.parametrize(
    "stride", [pytest.param(i, marks=[pytest.mark.long] * (i > 0)) for i in range(0, 16, 4)]
)
def test_a_power_cut_before_any_change_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    monkeypatch.setattr(live_files, "MAX_INLINE_NAMES", 4)  # so there are inventories
    data = source(tmp_path / "data")
    calls = count_calls(monkeypatch, tmp_path / "whole", partial(attempt, data))
    whole, reports = published(tmp_path / "whole"), indexed(tmp_path / "whole")
    assert calls > 80, "there are several epochs with many steps each"
    done = 0
    points = range(stride, calls, 16)
    for root in powers_cut(monkeypatch, tmp_path, partial(attempt, data), points):
        before = published(root) if (root / "out").exists() else {}
        assert before.items() <= whole.items(), root
        done += bool(before)
        assert attempt(data, root), root
        assert published(root) == whole, root
        assert indexed(root) == reports, root
    assert done > 3, "results are there after a cut"


def test_a_power_cut_at_the_end_takes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, root = source(tmp_path / "data"), tmp_path / "root"
    root.mkdir()
    with monkeypatch.context() as patch:
        disk = Disk(patch, root, tmp_path / "pins")
        assert attempt(data, root)
        disk.cut(tmp_path / "cut")
    assert published(tmp_path / "cut") == published(root)
    assert indexed(tmp_path / "cut") == indexed(root)


def test_a_power_cut_takes_no_row_that_was_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, cut = tmp_path / "root", tmp_path / "cut"
    data = spool_folder(root / "ck", S) / "data"
    root.mkdir()

    def run(folder: Path) -> int:
        engine = Engine(spark=False, checkpoint=folder / "ck", partitions=1, keep_results=False)
        engine.stream(S, "push:", format="nq")
        register(engine, QUERIES[1:])
        assert survived(engine, None, None, keep_open=True)
        return sum(record.elements for record in engine._records().values())

    with monkeypatch.context() as patch:
        disk = Disk(patch, root, tmp_path / "pins")
        run(root)
        for n in range(5):
            line = f'<http://e/a> <http://e/p> "{n}" {500 * n} .\n'
            PushLog(data, "nq").append(line.encode(), {f"key {n}": "digest"})
        disk.cut(cut)
    keys = PushLog(spool_folder(cut / "ck", S) / "data", "nq")
    assert [keys.find_by_key(f"key {n}") for n in range(5)] == ["digest"] * 5
    assert run(cut) == 5


@pytest.mark.parametrize("reload", [False, True], ids=["lines", "a file"])
def test_a_power_cut_while_static_data_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reload: bool
) -> None:
    data = source(tmp_path / "data")
    statements = [f"<http://e/a{i}> <http://e/r> <http://e/z> .\n" for i in range(3)]
    (data / "k.nt").write_text("".join(statements))
    joined = query("SELECT ?a ?n ?z", "?a :r ?z . WINDOW :w { ?a :p ?n }", name="joined",
                   windows={"w": (S, step(2000, 1000))})  # fmt: skip

    def run(root: Path, kills: int | None = None, fate: Fate | None = None) -> bool:
        engine = Engine(
            spark=False, checkpoint=root / "ck", epoch_rows=24, partitions=1, seed=7,
            sink=FileSink(root / "out", Format.NDJSON), letters=root / "out", keep_results=False,
        )  # fmt: skip
        engine.stream(S, data / "s.nt")
        if reload:
            engine.static(data / "k.nt", replaceable=True)
        else:
            engine.static(statements)
        register(engine, [joined])
        return survived(engine, kills, fate)

    calls = count_calls(monkeypatch, tmp_path / "whole", run)
    whole = published(tmp_path / "whole")
    assert any("joined" in name for name in whole)
    for root in powers_cut(monkeypatch, tmp_path, run, range(0, calls, 12)):
        assert run(root), root
        assert published(root) == whole, root


@pytest.mark.long
def test_a_power_cut_while_what_is_read_goes_into_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_read_log, "MAX_SETTLED_FILES", 2)
    data = tmp_path / "data"
    data.mkdir()
    for i, each in enumerate(LEFT):
        write_lines(data / f"{i * 5 % len(LEFT):02}.nt", [each])

    def run(root: Path, kills: int | None = None, fate: Fate | None = None) -> bool:
        engine = Engine(
            spark=False, checkpoint=root / "ck", epoch_rows=5, partitions=1, seed=7,
            sink=FileSink(root / "out", Format.NDJSON), keep_results=False,
        )  # fmt: skip
        engine.stream(S, data, files="parallel", lateness="1h")
        register(engine, QUERIES[1:])
        return survived(engine, kills, fate)

    calls = count_calls(monkeypatch, tmp_path / "whole", run)
    whole = published(tmp_path / "whole")
    for root in powers_cut(monkeypatch, tmp_path, run, range(0, calls, 16)):
        assert run(root), root
        assert published(root) == whole, root
