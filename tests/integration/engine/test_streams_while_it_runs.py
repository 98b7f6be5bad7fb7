"""Streams come and go while an engine runs: what is refused, what comes again, what is left."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada import Engine
from levada.checkpoint.request_files import Answer, NewStream, Request, read_ledger
from levada.checkpoint.verify import verify
from levada.cli.remote.add_drop import ask
from levada.errors import SourceError, UsageError
from support.polling import until_engine

TEXT = """SELECT ?x ?y FROM NAMED WINDOW <e:w> ON <e:{0}> [RANGE PT2S STEP PT2S]
WHERE {{ WINDOW <e:w> {{ ?x <e:p> ?y }} }}"""
TWO = """SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT2S STEP PT2S]
FROM NAMED WINDOW <e:v> ON <e:t> [RANGE PT2S STEP PT2S]
WHERE { WINDOW <e:w> { ?x <e:p> ?y } WINDOW <e:v> { ?x <e:p> ?z } }"""
IDS = map("{:020d}".format, itertools.count())


def lines(*times: int) -> list[str]:
    return [f"<e:a> <e:p> <e:b> {time} ." for time in times]


@contextmanager
def engine(folder: Path, **streams: Any) -> Iterator[Engine]:
    with Engine(spark=False, checkpoint=folder / "ck", partitions=2) as made:
        for name, source in streams.items():
            made.stream(f"e:{name}", source)
        made.start()
        yield made


def asked(folder: Path, **request: Any) -> Answer:
    return ask(folder / "ck", Request(next(IDS), **request), lambda: time.sleep(0.002))


def has_read(engine: Engine, stream: str, elements: int) -> None:
    """Waits until a stream has had so many, with the plan of now."""

    def look() -> bool:
        driver = engine._driver
        assert driver is not None
        topology = driver._catalog._topology
        if engine._registry.changed or topology is None or driver.last.plan < topology.version:
            return False
        return engine._records()[f"e:{stream}"].elements == elements

    until_engine(engine, look)


def settled(engine: Engine) -> None:
    """Waits until what was taken away has left no trace."""
    assert engine._driver is not None
    until_engine(engine, lambda: not engine._driver.streams.ledger.removed_streams)


def test_every_kind_of_source(tmp_path: Path) -> None:
    (tmp_path / "f.nt").write_text("\n".join(lines(1, 2)) + "\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "1.nt").write_text("\n".join(lines(1, 2, 3)) + "\n")
    (tmp_path / "k.csv").write_text("k,ts\n1,1\n2,2\n")
    frame = pl.DataFrame({"k": [1, 2, 3], "ts": [1, 2, 3]})
    with engine(tmp_path) as running:
        running.stream("e:f", tmp_path / "f.nt")
        running.stream("e:d", tmp_path / "d", files="parallel")
        running.stream("e:k", tmp_path / "k.csv", schema="auto")
        running.stream("e:frame", frame)
        running.stream("e:rows", iter([("<e:a>", "<e:p>", "<e:b>", 5)]))
        running.stream("e:from", lambda read: lines(*range(4)[read:]))
        running.stream("e:pushed")
        running.push("e:pushed", lines(7))
        counts = {"f": 2, "d": 3, "k": 2, "frame": 3, "rows": 1, "from": 4, "pushed": 1}
        for name, elements in counts.items():
            has_read(running, name, elements)
    assert not verify(tmp_path / "ck").damaged
    with engine(tmp_path) as running:
        assert [name.removeprefix("e:") for name in running.streams()] == list(counts)
        running.stream("e:from", lambda read: lines(*range(6)[read:]))
        has_read(running, "from", 6)
        running.push("e:rows", lines(8))
        has_read(running, "rows", 2)
        with pytest.raises(UsageError, match="was declared otherwise"):
            running.stream("e:d", tmp_path / "d")
        running.stream("e:d", tmp_path / "d", files="parallel")
        with pytest.raises(UsageError, match="There are two streams e:d"):
            running.stream("e:d", tmp_path / "d", files="parallel")


def test_what_cannot_be_leaves_the_engine_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    with engine(tmp_path, s=None) as running:
        with pytest.raises(UsageError, match="There are two streams e:s"):
            running.stream("e:s", tmp_path)
        with pytest.raises(SourceError, match="not there"):
            running.stream("e:t", tmp_path / "not there.nt")
        with pytest.raises(UsageError, match="no option form"):
            running.stream("e:t", tmp_path / "t.nt", form="nt")  # type: ignore[call-arg]
        with pytest.raises(UsageError, match="There is no stream e:t"):
            running.remove_stream("e:t")
        running.register(TEXT.format("s"), name="q")
        running.register(TWO.replace("<e:t>", "<e:s>"), name="r")
        with pytest.raises(UsageError, match="The stream e:s is read by q and r"):
            running.remove_stream("e:s")
        running.push("e:s", lines(1))
        has_read(running, "s", 1)
        assert running.streams() == ["e:s"]
        assert read_ledger(tmp_path / "ck").added_streams == []
    with pytest.raises(UsageError, match="has ended"):
        running.stream("e:t", tmp_path)
    with pytest.raises(UsageError, match="has ended"):
        running.remove_stream("e:s")


def test_a_name_that_queries_have_said_keeps_its_meaning(tmp_path: Path) -> None:
    with engine(tmp_path) as running:
        running.stream("s")
        running.register(TEXT.format("x").replace("<e:x>", "<http://e/s>"), name="q")
        with pytest.raises(UsageError, match="Queries read the stream s as http://e/s"):
            running.stream("http://e/s")
        running.unregister("q")


def test_none_comes_to_what_ends(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text("\n".join(lines(1)) + "\n")
    with Engine(spark=False, checkpoint=tmp_path / "ck") as running:
        running.stream("e:s", tmp_path / "s.nt")
        running.start(once=True, keep_open=True)
        with pytest.raises(UsageError, match=r"what was there when it started|has ended"):
            running.stream("e:t")
        running.await_end()


def test_a_new_stream_holds_nobody_back_and_brings_nobody_forward(tmp_path: Path) -> None:
    with engine(tmp_path, s=None) as running:
        q = running.register(TEXT.format("s"), name="q")
        running.push("e:s", lines(1000, 2000, 5000))
        has_read(running, "s", 3)
        running.stream("e:t")
        running.stream("e:u")
        running.push("e:u", lines(90_000))
        has_read(running, "u", 1)
        assert running._records()["e:s"].watermark == 5000
        running.push("e:s", lines(7000))
        has_read(running, "s", 4)
        reports = q.results()
        assert [next(reports).time for _ in range(2)] == [2000, 4000]
        two = running.register(TWO, name="two")
        running.push("e:t", lines(8500, 11_000))
        running.push("e:s", lines(8500, 11_000))
        assert next(two.results()).time == 10_000


def test_what_a_silent_stream_does_not_keep(tmp_path: Path) -> None:
    """Texts of rows that are gone go, though a stream that no query reads has said nothing."""
    turns, size = 100, 4000
    with engine(tmp_path, s=None, silent=None) as running:
        running.register(TEXT.format("s"), name="q")
        for turn in range(turns):
            running.push("e:s", [f'<e:a> <e:p> "{turn} {"x" * size}" {1000 * turn} .'])
            has_read(running, "s", turn + 1)
    kept = sum(path.stat().st_size for path in (tmp_path / "ck" / "state").iterdir())
    assert kept < turns * size / 2, "some epochs' texts, not those of all"


def test_a_stream_that_was_taken_away_is_not_declared_back(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text("\n".join(lines(1, 2)) + "\n")
    (tmp_path / "t.nt").write_text("\n".join(lines(1, 2, 3)) + "\n")
    with engine(tmp_path, s=tmp_path / "s.nt") as running:
        has_read(running, "s", 2)
        assert (
            asked(tmp_path, remove_stream="e:s")
            .messages[0]
            .startswith("e:s: taken away after epoch ")
        )
    with pytest.warns(UserWarning, match="was taken away while an engine ran"), engine(
        tmp_path, s=tmp_path / "s.nt"
    ) as running:  # fmt: skip
        assert running.streams() == []
    with engine(tmp_path, s=tmp_path / "t.nt") as running:
        has_read(running, "s", 3)
        running.remove_stream("e:s")
        settled(running)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with engine(tmp_path, s=tmp_path / "s.nt") as running:  # its own removals it knows
            has_read(running, "s", 2)


def test_what_the_program_declares_otherwise_wins(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text("\n".join(lines(1, 2)) + "\n")
    with engine(tmp_path):
        stream = NewStream("e:s", str(tmp_path / "s.nt"), {"lateness": "1s"})
        assert asked(tmp_path, add_stream=stream).messages == ["e:s: added, from the next epoch on"]
        assert "There are two streams" in asked(tmp_path, add_stream=stream).refusal
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with engine(tmp_path) as running:
            assert running._registry.streams["e:s"].lateness == 1000
    with pytest.warns(UserWarning, match="declared otherwise"), engine(
        tmp_path, s=tmp_path / "s.nt"
    ) as running:  # fmt: skip
        assert running._registry.streams["e:s"].lateness == 0
        has_read(running, "s", 2)
    assert read_ledger(tmp_path / "ck").added_streams == []


def test_what_comes_and_goes_leaves_no_files(tmp_path: Path) -> None:
    with engine(tmp_path, s=None) as running:
        for turn in range(5):
            running.stream("e:t")
            running.push("e:t", lines(turn))
            has_read(running, "t", 1)
            running.remove_stream("e:t")
            if turn % 2:
                settled(running)
        settled(running)
        assert len(list((tmp_path / "ck" / "spool").iterdir())) == 1
        setups = list((tmp_path / "ck" / "plans").glob("setup-*"))
        assert len(setups) <= 2
    assert not verify(tmp_path / "ck").damaged
