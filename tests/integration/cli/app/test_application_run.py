"""A whole application, stepped: output folders and whose they are, letters, the summary,
signals.
"""

import io
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from levada.cli.app.app_file import App, Options, QuerySource
from levada.cli.app.run_app import run_app
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import LOCK
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.errors import CheckpointError, QuerySyntaxError, SinkError, SourceError, UsageError
from levada.testing.compare import read_ndjson
from levada.testing.read_published import read_published
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element, judge, query, step

ELEMENTS = [element(300 * i, f"a{i % 3} p {i}") for i in range(20)]
STEPS = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="steps", windows={"w": (S, step(2000, 1000))}
)
SUM = query(
    "SELECT (SUM(?n) AS ?m)",
    "WINDOW :w { ?a :p ?n }",
    name="sum",
    windows={"w": (S, step(2000, 1000))},
)


@pytest.fixture
def app(tmp_path: Path) -> Any:
    path = write_lines(tmp_path / "s.nt", ELEMENTS)

    def make(*queries: Any, out: str = "out", checkpoint: str = "ck", **options: Any) -> Any:
        sources = tuple(QuerySource(q.name, q.text) for q in queries or (STEPS, SUM))
        chosen = Options(
            out=str(tmp_path / out),
            checkpoint=None if checkpoint is None else str(tmp_path / checkpoint),
            epoch_rows=6,
            **options,
        )
        return App((StreamConfig.from_options(S, path),), (), sources, chosen)

    return make


def run(app: Any, *, overwrite: bool = False, once: bool = True, **more: Any) -> Any:
    return run_app(app, once=once, keep_open=False, overwrite=overwrite, spark=False, **more)


def results(out: Path) -> Any:
    names = sorted(p for p in out.rglob("*.ndjson") if p.parent.name not in ("late", "dead-letter"))
    return read_ndjson(line for p in names for line in p.read_text().splitlines())


def test_a_run_into_a_folder(app: Any, tmp_path: Path) -> None:
    summary = run(app())
    judge([STEPS, SUM], {S: ELEMENTS}, results(tmp_path / "out"))
    assert {p.name for p in (tmp_path / "out").iterdir()} - {LOCK} == {"steps", "sum", ".levada"}
    assert (summary.elements, summary.triples, summary.late, summary.dead_letters) == (20, 20, 0, 0)
    assert summary.epochs == 4
    assert summary.query_results == {
        n: sum(r.solutions.total() for r in rs) for n, rs in results(tmp_path / "out").items()
    }
    assert summary.results == sum(summary.query_results.values())
    assert json.loads(summary.to_json())["streams"][S]["watermark"] == "end"


def test_results_to_standard_output(app: Any) -> None:
    out = io.BytesIO()
    run(app(checkpoint=None), on_results=StdoutSink(Format.NDJSON, out))
    judge([STEPS, SUM], {S: ELEMENTS}, read_ndjson(out.getvalue().splitlines()))


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_tables_have_a_header_in_each_file(app: Any, tmp_path: Path, form: str) -> None:
    run(app(STEPS, format=form))
    separator = "," if form == "csv" else "\t"
    for path in (tmp_path / "out" / "steps").iterdir():
        assert path.read_text().splitlines()[0].replace("?", "") == separator.join(
            ("report", "a", "n")
        )


def test_a_folder_with_results_that_the_checkpoint_does_not_know_is_refused(
    app: Any, tmp_path: Path
) -> None:
    run(app())
    before = results(tmp_path / "out")
    for checkpoint in ("other", None):
        with pytest.raises(
            UsageError, match=r"out holds results of another run, such as .*--overwrite"
        ):
            run(app(checkpoint=checkpoint))
    run(app(STEPS, out="out2", checkpoint="ck2"))
    with pytest.raises(UsageError, match=r"out2 holds results of another run"):
        run(app(out="out2"))
    assert results(tmp_path / "out") == before


def test_overwrite_removes_them_and_the_old_owner_is_refused_then(app: Any, tmp_path: Path) -> None:
    run(app())
    run(app(SUM, checkpoint="other"), overwrite=True)
    assert set(results(tmp_path / "out")) == {"sum"}
    with pytest.raises(UsageError, match="holds results of another run"):
        run(app())


def test_the_same_checkpoint_goes_on_in_its_folder(app: Any, tmp_path: Path) -> None:
    run(app())
    before = results(tmp_path / "out")
    summary = run(app())
    assert summary.note.startswith("This checkpoint had ended")
    assert (summary.elements, summary.results, summary.epochs) == (0, 0, 0)
    assert results(tmp_path / "out") == before


def test_a_folder_that_is_a_file_is_told(app: Any, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(SinkError, match="out is not a folder"):
        run(app())


def test_a_full_disk_at_publication_loses_nothing(
    app: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("levada.core.durable_files._write_synced", _full)
        with pytest.raises(SinkError, match=r"The disk that holds .* is full.*no result is lost"):
            run(app())
    run(app())
    judge([STEPS, SUM], {S: ELEMENTS}, results(tmp_path / "out"))


def _full(path: Any, data: Any, mode: int) -> None:
    if path.parent.name == "sum":
        raise OSError(28, "No space left on device")
    path.write_bytes(data)


def test_late_and_dead_letters_lie_beside_the_results(app: Any, tmp_path: Path) -> None:
    chosen = app()
    with (tmp_path / "s.nt").open("a") as file:
        file.write("<http://e/a0> <http://e/p> <http://e/o> 100 .\nnonsense\n")
    summary = run(chosen)
    assert (summary.late, summary.dead_letters) == (1, 1)
    late = [
        json.loads(line)
        for p in (tmp_path / "out" / "late").iterdir()
        for line in p.read_text().splitlines()
    ]
    dead = [
        json.loads(line)
        for p in (tmp_path / "out" / "dead-letter").iterdir()
        for line in p.read_text().splitlines()
    ]
    assert set(late[0]) == {
        "stream", "source", "offset", "ts", "watermark", "text", "reason",
    }  # fmt: skip
    assert set(dead[0]) == {"stream", "source", "offset", "reason", "text"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_run_cleanly(app: Any, tmp_path: Path, number: Any) -> None:
    handlers = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    signals = iter([number])

    def stop_at_the_end(progress: Any) -> None:
        if progress.elements == len(ELEMENTS):
            for each in signals:
                os.kill(os.getpid(), each)

    summary = run(app(), once=False, progress=stop_at_the_end)
    assert summary.elements == len(ELEMENTS)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == handlers
    rest = run(app())
    assert rest.epochs > 0, "the next run ends the streams"
    judge([STEPS, SUM], {S: ELEMENTS}, results(tmp_path / "out"))


def test_errors_name_the_query_and_leave_no_checkpoint_open(app: Any, tmp_path: Path) -> None:
    bad = QuerySource("bad", "SELECT ?x WERE {}")
    with pytest.raises(QuerySyntaxError) as failure:
        run(App(app().streams, (), (bad,), app().options))
    assert failure.value.__notes__ == ["bad"]
    gone = StreamConfig.from_options(S, tmp_path / "gone.nt")
    with pytest.raises(SourceError, match=r"no file or directory .*/gone\.nt"):
        run(App((gone,), (), app().queries, app().options))
    run(app())


def test_a_checkpoint_in_use_is_told(app: Any, tmp_path: Path) -> None:
    from levada.checkpoint.checkpoint_folder import Checkpoint

    held = Checkpoint(tmp_path / "ck", partitions=1)
    with pytest.raises(CheckpointError, match="Another engine is running"):
        run(app())
    held.close()


def test_progress_is_told_and_ends_with_all(app: Any) -> None:
    told = []
    run(app(), progress=told.append)
    assert told[-1].elements == len(ELEMENTS)


def test_a_format_that_cannot_hold_a_query_is_refused_before_anything_runs(
    app: Any, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="trig cannot hold the results of the query steps"):
        run(app(format="trig"))
    assert not (tmp_path / "out").exists()


def test_what_was_constructed_is_a_stream_again(app: Any, tmp_path: Path) -> None:
    text = (
        "PREFIX : <http://e/>\nREGISTER RSTREAM :c AS CONSTRUCT { ?a :seen ?n }\n"
        f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT2S] WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"
    )
    one = app(format="nq")
    run(App(one.streams, (), (QuerySource("c", text),), one.options))
    again = StreamConfig.from_options(
        "http://e/c", tmp_path / "out" / "c", time="graph", element="graph"
    )
    count = (
        "SELECT (COUNT(*) AS ?m) FROM NAMED WINDOW <http://e/w> ON <http://e/c> [NOW] "
        "WHERE { WINDOW <http://e/w> { ?a <http://e/seen> ?n } }"
    )
    two = app(out="two", checkpoint="ck2")
    run(App((again,), (), (QuerySource("m", count),), two.options))
    found = results(tmp_path / "two")["m"]
    assert [r.time for r in found] == [2000, 4000, 6000]
    assert sum(int(dict(s)["m"].split('"')[1]) for r in found for s in r.solutions) == len(ELEMENTS)


@pytest.mark.parametrize("form", ["csv", "arrow", "srj"])
def test_an_ask_that_no_row_answers_says_false_in_every_format(
    app: Any, tmp_path: Path, form: str
) -> None:
    text = (
        f"PREFIX : <http://e/>\nASK FROM NAMED WINDOW :w ON <{S}> [RANGE PT2S STEP PT2S] "
        "FROM NAMED WINDOW :v ON <http://e/s> [RANGE PT4S STEP PT2S] WHERE { "
        "WINDOW :w { ?a :p 7 } WINDOW :v { ?a :p 7 } }"
    )
    one = app(format=form, terms=True)
    run(App(one.streams, (), (QuerySource("a", text),), one.options))
    found = {"csv": Format.CSV, "arrow": Format.ARROW, "srj": Format.SRJ}[form]
    files = sorted((tmp_path / "out" / "a").iterdir())
    if found is Format.CSV:
        rows = [line.split(",") for file in files for line in file.read_text().splitlines()[1:]]
        said: dict[int, bool | None] = {int(report): word == "true" for report, word in rows}
    else:
        said = {r.time: r.boolean for r in read_published(tmp_path / "out" / "a", found)}
    assert said == {2000: False, 4000: True, 6000: False, 8000: False}


def test_results_are_held_back_for_fuller_files(app: Any, tmp_path: Path) -> None:
    run(app(roll=10**9))
    judge([STEPS, SUM], {S: ELEMENTS}, results(tmp_path / "out"))
    assert sorted(p.name for p in (tmp_path / "out" / "steps").iterdir()) == [
        "000000001-0000.ndjson"
    ]


def test_what_is_held_back_is_published_when_a_run_leaves_the_windows_open(
    app: Any, tmp_path: Path
) -> None:
    one = app(roll=10**9)
    run_app(one, once=True, keep_open=True, overwrite=False, spark=False)
    first = {p: p.read_text() for p in (tmp_path / "out").rglob("*.ndjson")}
    assert len(first) == 2
    run(one)
    judge([STEPS, SUM], {S: ELEMENTS}, results(tmp_path / "out"))
    assert {p: p.read_text() for p in first} == first, "files do not change once they are there"
    assert len(list((tmp_path / "out").rglob("*.ndjson"))) == 4


def test_roll_is_for_files() -> None:
    with pytest.raises(UsageError, match="roll is for files"):
        App(options=Options(roll=5)).check_output()


TABLE = "Istream(Select k From T [Now])"


def table_app(path: Path, **options: Any) -> App:
    """One CQL query over a table, with results on standard output and no checkpoint."""
    config = StreamConfig.from_options("T", path, format="csv", schema="k:integer", **options)
    return App((config,), (), (QuerySource("q", TABLE, "cql"),), Options())


def test_where_all_is_dead_the_reasons_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("k,ts\n1,1.3.2024\n2,1.3.2024\nx,5\n")
    summary = run(table_app(tmp_path / "t.csv"), on_results=StdoutSink(Format.NDJSON, io.BytesIO()))
    assert summary.exit_code == 3
    assert summary.unread_streams["T"].startswith(
        "All that came of T are dead letters: 3. The first: t.csv, byte 5: its time is not "
    )
    assert [reason.split(": ")[1] for reason in summary.streams["T"].dead_letter_reasons] == [
        "its time is not a number, date or dateTime",
        "k is not an integer",
    ]
    letters = (tmp_path / summary.dead_letter_path).read_text().splitlines()
    assert len(letters) == 3 and summary.dead_letter_path == "levada-dead-letters.ndjson"
    assert summary.no_result_reasons["q"].endswith(": it has 3 dead letters.")


def test_an_empty_folder_is_another_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    sink = StdoutSink(Format.NDJSON, io.BytesIO())
    summary = run(table_app(tmp_path / "in"), on_results=sink)
    assert summary.exit_code == 3 and summary.dead_letter_path == ""
    assert summary.unread_streams == {
        "T": f"Nothing of T has been read: there is no element at {tmp_path / 'in'}."
    }
    (tmp_path / "in" / "a.csv").write_text("k,ts\n1,5\n")
    assert run(table_app(tmp_path / "in"), on_results=sink).exit_code == 0
    assert not (tmp_path / "levada-dead-letters.ndjson").exists()


def test_seconds_that_are_read_as_milliseconds_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "k,ts\n" + "".join(f"{k},{1_700_000_000 + k}\n" for k in range(9))
    )
    for unit, said in (("ms", "s"), ("s", "")):
        app = table_app(tmp_path / "t.csv", unit=unit)
        found = run(app, on_results=StdoutSink(Format.NDJSON, io.BytesIO()))
        assert found.streams["T"].suspected_unit == said and found.exit_code == 0
        assert ("Say unit=s?" in str([str(part) for part in found._parts()])) == bool(said)


def test_another_separator_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k;ts\n1;5\n")
    sink = StdoutSink(Format.NDJSON, io.BytesIO())
    with pytest.raises(SourceError, match="Say separator=semicolon"):
        run(table_app(tmp_path / "t.csv"), on_results=sink)
    assert run(table_app(tmp_path / "t.csv", separator=";"), on_results=sink).elements == 1
