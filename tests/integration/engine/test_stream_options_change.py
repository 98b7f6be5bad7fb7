"""Streams that have other options than in the run before on a checkpoint: the effect is reported,
and a window never mixes two meanings unless that is accepted.
"""

import warnings
from pathlib import Path
from typing import Any

import pytest

from levada.cli.app.run_app import check_same
from levada.engine.engine import Engine
from levada.errors import UsageError
from levada.testing.memory_sink import MemorySink

S = "http://e/s"
TEXT = """PREFIX : <http://e/>
SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT10S]
WHERE { WINDOW :w { ?a :p ?b } }"""
TABLE = "SELECT k FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]"


def write(folder: Path, name: str, *times: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / name).write_text(
        "".join(f'<http://e/a{t}> <http://e/p> "{t}" {t} .\n' for t in times)
    )


def run(folder: Path, *, accept: bool = False, ends: bool = False, **options: Any) -> list[str]:
    """The counts of a run, and before them what it warned of."""
    sink = MemorySink()
    with (
        warnings.catch_warnings(record=True) as told,
        Engine(spark=False, checkpoint=folder / "ck", sink=sink) as engine,
    ):
        warnings.simplefilter("always")
        engine.stream(S, folder / "in", **options)
        engine.register(TEXT, name="q")
        engine.start(once=True, keep_open=not ends, accept_changes=accept)
        engine.await_end()
    counts = [str(row) for report in sink.reports.get("q", []) for row in report.solutions]
    return [str(each.message) for each in told if "other options" in str(each.message)] + counts


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A checkpoint whose open window holds three elements."""
    write(tmp_path, "f1.nt", 1000, 2000, 3000)
    assert run(tmp_path) == []
    return tmp_path


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({"unit": "s"}, "unit was ms and is s"),
        ({"time": "graph", "format": "nq"}, "time was column and is graph"),
        ({"element": "subject"}, "element was line and is subject"),
        ({"files": "parallel"}, "files was sequence and is parallel"),
    ],
)
def test_an_option_that_would_mix_meanings_is_refused(
    begun: Path, options: dict[str, Any], change: str
) -> None:
    write(begun, "f2.nt", 4000)
    with pytest.raises(UsageError, match=change) as refused:
        run(begun, **options)
    assert "--accept-changes" in refused.value.hint
    (count,) = run(begun, ends=True)
    assert '"4"' in count, "the checkpoint is as it was"


def test_an_accepted_option_is_reported_and_goes_on(begun: Path) -> None:
    write(begun, "f2.nt", 4, 5)
    told, count = run(begun, accept=True, ends=True, unit="s")
    assert "unit was ms and is s" in told
    assert "Windows and the watermark keep the times" in told
    assert '"5"' in count


def test_an_accepted_option_is_reported_once(begun: Path) -> None:
    write(begun, "f2.nt", 4)
    assert len(run(begun, accept=True, unit="s")) == 1
    assert run(begun, unit="s") == []


def test_a_lateness_is_reported_with_its_effect_and_goes_on(begun: Path) -> None:
    write(begun, "f2.nt", 4000)
    told, count = run(begun, ends=True, lateness="5s")
    assert "lateness was PT0S and is PT5S" in told
    assert "The watermark does not go back" in told
    assert '"4"' in count


def test_an_option_of_a_stream_without_elements_is_reported(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f1.nt").write_text("this is not a statement\n")
    assert run(tmp_path) == []
    write(tmp_path, "f2.nt", 4)
    told, count = run(tmp_path, ends=True, unit="s")
    assert "None of its elements had been read" in told
    assert '"1"' in count


def test_an_option_beside_columns_that_were_looked_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,ts\n1,1000\n2,2000\n")

    def start(**options: Any) -> None:
        with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
            engine.stream("s", tmp_path / "s.csv", schema="auto", **options)
            engine.register(TABLE, name="q", dialect="cql")
            engine.start(once=True, keep_open=True)
            engine.await_end()

    start(time="field:ts")
    start()
    with pytest.raises(UsageError, match="unit was ms and is s"):
        start(unit="s")


def test_a_standby_with_an_option_that_would_mix_is_refused_before_it_waits(begun: Path) -> None:
    with Engine(spark=False, checkpoint=begun / "ck") as engine:
        engine.stream(S, begun / "in", unit="s")
        engine.register(TEXT, name="q")
        with pytest.raises(UsageError, match="unit was ms and is s"):
            check_same(begun / "ck", engine._registry)
        check_same(begun / "ck", engine._registry, accept_changes=True)
