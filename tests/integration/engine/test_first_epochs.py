"""The first epoch of a checkpoint, written ahead by a start that failed: one that asks or reads
something else begins with the first element.
"""

from pathlib import Path
from typing import Any

import pytest

from levada.engine.engine import Engine
from levada.errors import EngineError
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element, query, step

ELEMENTS = [element(500 * i, f"a p {i}") for i in range(8)]


def counts(more: str = "") -> str:
    where = f"WINDOW :w {{ ?a :p ?n {more} }}"
    return query(
        "SELECT (COUNT(*) AS ?c)", where, name="q", windows={"w": (S, step(4000, 4000))}
    ).text


def run(root: Path, text: str, file: str = "s.nt", **options: Any) -> list[int]:
    """What it has counted, in its first report."""
    sink = MemorySink()
    with Engine(spark=False, checkpoint=root / "ck", sink=sink) as engine:
        engine.stream(S, root / file, **options)
        engine.register(text, name="q")
        engine.start(once=True)
        engine.await_end()
    ((_, said),) = next(iter(sink.reports["q"][0].solutions))
    return [int(said.split('"')[1]), engine.progress().epochs]


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a checkpoint whose first start has failed."""
    write_lines(tmp_path / "s.nt", ELEMENTS)
    write_lines(tmp_path / "t.nt", ELEMENTS[:3])

    def fails(self: EpochRunner, intention: Any) -> None:
        raise EngineError("There is no cluster.")

    with monkeypatch.context() as patched:
        patched.setattr(EpochRunner, "run", fails)
        with pytest.raises(EngineError, match="There is no cluster"):
            run(tmp_path, counts())
    assert (tmp_path / "ck" / "intentions" / "open").exists()
    return tmp_path


@pytest.mark.filterwarnings("error")
def test_the_same_goes_on_with_it(failed: Path) -> None:
    (failed / "t.nt").write_text("")
    assert run(failed, counts()) == [8, 1]


def test_another_query_begins_with_the_first_element(failed: Path) -> None:
    """Found: the query of before had it all, and the new one nothing."""
    assert run(failed, counts("FILTER(?n > 2)")) == [5, 1]


def test_another_place_is_read_alone(failed: Path) -> None:
    assert run(failed, counts(), "t.nt") == [3, 1]


@pytest.mark.filterwarnings("error")
def test_another_option_of_the_stream_reads_all_anew(failed: Path) -> None:
    assert run(failed, counts(), unit="s") == [1, 1], "a window of 4 s holds one element"
