"""The commands from the outside: exit codes, what goes to which output, and what an ``App`` reaches
the engine.
"""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
import pytest

from levada.__main__ import main as start
from levada.cli.app.app_file import App, Options, QuerySource
from levada.cli.app_builder import CommandArguments, assemble
from levada.cli.main import main
from levada.cli.run import Mode, check_run, run_with, write_summary
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.serialization.serialize import Batch
from levada.engine.status.summary import Progress, StreamCounts, Summary
from levada.errors import EngineError, UsageError
from levada.language.cql import parser

HOT = """PREFIX : <http://e/>
SELECT ?s FROM NAMED WINDOW :w ON <http://e/temp> [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?s :v ?v } }
"""
W1 = "Istream(Select A.k, A.v From A [Range 60 s], B [Range 60 s] Where A.k = B.k)"
STREAMS = ["--stream", "A=a.csv,schema=k:integer;v:double", "--stream", "B=b.csv,schema=k:integer"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    Path("hot.rq").write_text(HOT)
    Path("w1.cql").write_text(W1)
    Path("bad.rq").write_text("SELECT ?s WERE { }")
    Path("bad.cql").write_text("Select k Form A")
    Path("app.yaml").write_text(
        "queries: {hot: {file: hot.rq, t0: 7}}\noptions: {epoch: 2s, empty_reports: true}\n"
    )
    return tmp_path


def test_a_byte_order_mark_before_a_query_is_no_part_of_it(folder: Any) -> None:
    Path("hot.rq").write_text(HOT, encoding="utf-8-sig")
    assert main(["check", "hot.rq"]) == 0


def test_check_accepts_and_says_what_it_saw(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "hot.rq"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (
        "hot: ok, SELECT RSTREAM over http://e/temp [RANGE PT10S STEP PT5S close [)]\n",
        "",
    )
    assert main(["check", "w1.cql", *STREAMS]) == 0
    assert capsys.readouterr().out == "w1: ok, SELECT ISTREAM over A [RANGE PT1M], B [RANGE PT1M]\n"


def test_check_and_explain_know_streams_that_queries_make(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    window = (
        "FROM NAMED WINDOW :w ON :temp [RANGE PT10S STEP PT5S] WHERE { WINDOW :w { ?s :v ?v } }"
    )
    Path("make.rq").write_text(
        f"PREFIX : <http://e/>\nREGISTER RSTREAM :made AS CONSTRUCT {{ ?s :v ?v }} {window}"
    )
    Path("read.rq").write_text(HOT.replace("temp", "made"))
    assert main(["check", "read.rq", "make.rq", "--stream", "temp=t.nt"]) == 0
    assert capsys.readouterr().out.startswith("read: ok, SELECT RSTREAM over http://e/made")
    Path("both.yaml").write_text(
        "queries: {make: {file: make.rq}, read: {file: read.rq}}\nstreams: {temp: {path: t.nt}}\n"
    )
    Path("t.nt").touch()
    assert main(["explain", "read", "--app", "both.yaml", "--stage", "physical"]) == 0
    assert "match" in capsys.readouterr().out
    assert main(["check", "read.rq", "--stream", "temp=t.nt"]) == 2


def test_check_goes_on_after_an_error_and_fails_at_the_end(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "bad.cql", "w1.cql", *STREAMS]) == 2
    out, err = capsys.readouterr()
    assert out == "w1: ok, SELECT ISTREAM over A [RANGE PT1M], B [RANGE PT1M]\n"
    assert err.startswith(
        "levada: bad: line 1, column 10: 'Form' does not fit here.\n  Select k Form A\n"
        "           ^\n"
    )
    assert err.endswith("Did you mean From?\n")


def test_check_of_rsp_ql_shows_the_place(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "bad.rq"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("levada: bad: line 1, column 11: ")


def test_a_format_that_is_none_says_which_may_be_meant(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "hot.rq", "--stream", "temp=t.nt", "--format", "jsonl"]) == 2
    assert capsys.readouterr().err == (
        "levada: --format: there is no format jsonl. It is called ndjson here.\n"
    )


def test_check_knows_the_streams_that_are_given(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "hot.rq", "--stream", "temp=t.nt"]) == 0
    assert main(["check", "hot.rq", "--stream", "tmp=t.nt"]) == 2
    assert (
        capsys.readouterr().err
        == "levada: hot: line 2, column 35: There is no stream http://e/temp.\n"
        f"  {HOT.splitlines()[1]}\n{'^':>37}\nDid you mean tmp?\n"
    )


def test_check_and_explain_say_what_a_run_over_these_streams_would(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("t.nt").write_text("")
    Path("graphs.rq").write_text("PREFIX : <http://e/>\nSELECT ?s FROM :nowhere { ?s ?p ?o }")
    Path("merge.csparql").write_text(
        "SELECT ?s FROM STREAM <http://e/temp> [RANGE 4s STEP 4s] { ?s <http://e/p> ?o }"
    )
    assert (
        main(["check", "hot.rq", "merge.csparql", "--stream", "temp=t.csv,schema=k:integer"]) == 2
    )
    err = capsys.readouterr().err
    for name in ("hot", "merge"):
        assert f"{name}: The stream http://e/temp holds tuples, which a query in" in err
    assert main(["check", "graphs.rq"]) == 0
    assert main(["check", "graphs.rq", "--stream", "temp=t.nt"]) == 2
    assert "There is no static graph <http://e/nowhere>" in capsys.readouterr().err
    assert main(["explain", "merge.csparql", "--stage", "physical"]) == 0
    out = capsys.readouterr().out
    assert "union" in out
    assert "exchange by ?s ?o\n" in out
    assert out.count("(match (?s <http://e/p> ?o)") == 4 and "..0" not in out
    assert main(["explain", "merge.csparql", "--stage", "physical", "--stream", "temp=t.nt"]) == 0
    assert "union" not in capsys.readouterr().out  # without static data the merge is the window


def test_the_dialect_option_beats_the_ending(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "w1.cql", "--dialect", "rspql"]) == 2
    assert capsys.readouterr().err.startswith("levada: w1: line 1, column 1: ")


def test_explain(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "w1.cql", "--stage", "ast"]) == 0
    assert capsys.readouterr().out.startswith("Istream(\nSelect A.k, A.v\n")
    assert main(["explain", "hot.rq", "--stage", "ast"]) == 0
    assert capsys.readouterr().out.startswith("(query-unit\n")
    assert main(["explain", "w1.cql", "--stage", "algebra", *STREAMS]) == 0
    assert capsys.readouterr().out.startswith(
        "SELECT (?k ?v) ISTREAM\n  window 0 <A> on <A> [RANGE PT1M]\n"
    )
    assert main(["explain", "hot.rq", "--stage", "optimized"]) == 0
    assert capsys.readouterr().out.startswith(
        "SELECT (?s) RSTREAM\n  window 0 <http://e/w> on <http://e/temp>"
    )


def test_explain_as_json(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "w1.cql", "--stage", "algebra", "--json", *STREAMS]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["query"], found["stage"], found["tree"]["type"], found["tree"]["output"]) == (
        "w1",
        "algebra",
        "Query",
        "ISTREAM",
    )
    assert found["tree"]["pattern"]["child"]["right"]["columns"] == [["k", "k"]]
    assert main(["explain", "hot.rq", "--stage", "ast", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tree"]["type"] == "QueryUnit"


def test_explain_shows_operators_and_exchanges(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "w1.cql", "--stage", "physical", *STREAMS]) == 0
    out = capsys.readouterr().out
    assert out.startswith("(emit")
    assert "(join" in out
    assert out.count("exchange by ?k") == 2
    assert out.count("(scan") == 2
    assert main(["explain", "w1.cql", "--json", *STREAMS]) == 0
    assert json.loads(capsys.readouterr().out)["tree"]["type"] == "Op"


def test_explain_finds_a_query_of_the_app_file(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "hot", "--app", "app.yaml", "--stage", "algebra"]) == 0
    assert "t0 7" in capsys.readouterr().out
    assert main(["explain", "hut", "--app", "app.yaml", "--stage", "ast"]) == 2
    assert capsys.readouterr().err == "levada: There is no query hut. Did you mean hot?\n"


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("levada 0.")
    for command in ("run", "check", "explain"):
        assert main([command, "--help"]) == 0
        assert "Example" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "levada: There is no query. Give query files, or an app file with --app.\n"),
        (["check"], "levada: There is no query. Give query files, or an app file with --app.\n"),
        (["explain"], "levada: There is no query. Give query files, or an app file with --app.\n"),
        (
            ["run", "hot.rq"],
            "levada: hot: line 2, column 35: There is no stream http://e/temp.\n"
            f"  {HOT.splitlines()[1]}\n{'^':>37}\n"
            "No stream is named: say --stream NAME=PATH, or engine.stream(name, path).\n",
        ),
        (
            ["run", "no.rq"],
            "levada: The query file no.rq cannot be read: No such file or directory.\n",
        ),
        (
            ["run", "hot.rq", "hot.rq"],
            "levada: The query hot is there twice. Give one query another name.\n",
        ),
        (
            ["run", "hot.rq", "--app", "app.yaml"],
            "levada: The query hot is there twice. Give one query another name.\n",
        ),
        (
            ["run", "hot.rq", "--stream", "a=t.nt", "--keep-open"],
            "levada: --keep-open is for --once. Without --once the windows stay open anyway.\n",
        ),
        (
            ["run", "hot.rq", "--t0", "noon"],
            "levada: --t0: noon is not a time. Say for example 2013-01-01T05:00:00Z or "
            "an integer of milliseconds.\n",
        ),
        (
            ["run", "hot.rq", "w1.cql", "--format", "csv", *STREAMS],
            "levada: csv on standard output is for one query, these are 2. "
            "Say --out DIR or --format ndjson.\n",
        ),
    ],
)
def test_wrong_uses_are_one_message_and_exit_2(
    folder: Any, capsys: pytest.CaptureFixture[str], arguments: Any, message: str
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", message)


@pytest.mark.parametrize("arguments", [["run", "--bounds", "()"], ["rnu"], ["run", "--once=5"]])
def test_wrong_options_exit_2(
    folder: Any, capsys: pytest.CaptureFixture[str], arguments: Any
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Error" in err


def test_debug_shows_the_stack_trace(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "no.rq", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_the_installed_command(folder: Any) -> None:
    command = Path(sys.executable).with_name("levada")
    done = subprocess.run(
        [command, "check", "bad.cql"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("levada: bad: line 1, column 10:")
    assert "Traceback" not in done.stderr


def test_arguments_override_the_app_file(folder: Any) -> None:
    given = CommandArguments(
        queries=("w1.cql",),
        app=Path("app.yaml"),
        streams=("A=./a.csv,schema=k:integer",),
        static=("r.ttl",),
        options={
            "epoch": "250ms",
            "t0": "1970-01-02",
            "out": None,
            "empty_reports": False,
            "epoch_rows": 5,
        },
    )
    app = assemble(given)
    assert [(query.name, query.dialect, query.said) for query in app.queries] == [
        ("hot", None, {"t0": 7}),
        ("w1", "cql", {}),
    ]
    said = {"t0": 86_400_000, "empty_reports": True}
    assert app.options == Options(epoch=250, epoch_rows=5, said=said)
    assert ([s.name for s in app.streams], [s.path for s in app.static]) == (["A"], ["r.ttl"])


def test_a_stream_of_the_arguments_takes_the_place_of_that_of_the_app_file(folder: Any) -> None:
    (folder / "two.yaml").write_text(
        "streams: {A: {path: gone.csv, schema: {k: integer}}, B: {path: b.nt}}"
    )
    app = assemble(CommandArguments(app=Path("two.yaml"), streams=("A=./a.csv,schema=k:integer",)))
    assert [(s.name, Path(s.path).name) for s in app.streams] == [("B", "b.nt"), ("A", "a.csv")]
    with pytest.raises(UsageError, match="A"):
        assemble(
            CommandArguments(streams=("A=./a.csv,schema=k:integer", "A=./b.csv,schema=k:integer"))
        )


def test_an_interrupt_before_there_is_anything_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("levada.cli.main.main", interrupted)
    assert (start(), capsys.readouterr().err) == (130, "levada: interrupted.\n")


def one_query(**options: Any) -> Any:
    stream = StreamConfig.from_options("A", "a.csv", schema="k:integer")
    return App(
        streams=(stream,), queries=(QuerySource("q", "x", "cql"),), options=Options(**options)
    )


SUMMARY = Summary(
    elements=10,
    results=3,
    query_results={"q": 3},
    streams={"A": StreamCounts(10, 0, 1, 2, 5)},
    wall_seconds=2.0,
)


def test_a_run_hands_everything_to_the_engine_and_writes_its_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = {}

    def engine(app: Any, **arguments: Any) -> Any:
        seen.update(arguments, app=app)
        arguments["progress"](Progress(1, 10, 3, 1.0))
        return SUMMARY

    app = one_query(out=str(tmp_path), master="local[2]", summary=str(tmp_path / "s.json"))
    assert run_with(engine, app, Mode(once=True, overwrite=True, progress=True)) is SUMMARY
    show = seen.pop("progress")
    assert show is not None
    assert seen == {
        "app": app,
        "once": True,
        "keep_open": False,
        "keep": "",
        "published": True,
        "overwrite": True,
        "master": "local[2]",
        "on_results": None,
        "standby": 0.0,
        "endless": False,
        "accept_changes": False,
    }
    assert json.loads((tmp_path / "s.json").read_text())["streams"]["A"]["late"] == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "10 elements" in err


def test_lines_of_a_summary_are_not_broken_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    big = replace(
        SUMMARY, elements=10**9, triples=10**9, streams={"A" * 40: StreamCounts(1, 1, 0, 0, 5)}
    )
    run_with(lambda app, **arguments: big, one_query(out=str(tmp_path)), Mode(once=True))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("CPU-s)")
    assert any(line.endswith("1970-01-01T00:00:00.005Z") for line in lines)


def test_a_summary_goes_through_a_pipe_and_not_in_its_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_summary(pipe, b"{}\n")
    assert os.read(reader, 9) == b"{}\n"
    os.close(reader)
    assert pipe.is_fifo()
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_a_summary_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a folder"):
        check_run(one_query(summary=str(tmp_path)), Mode())


def test_results_go_to_standard_output(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = Batch(np.array([5]), columns={"k": pl.Series(["<http://e/a>"])})

    def engine(app: Any, *, on_results: Any, progress: Any, **arguments: Any) -> Any:
        assert progress is None
        on_results.publish("q", ["k"], 1, batch)
        return SUMMARY

    with io.TextIOWrapper(io.FileIO(1, "wb", closefd=False)) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        run_with(engine, one_query(format="csv"), Mode(progress=False))
    assert capfdbinary.readouterr().out == b"report,k\n5,http://e/a\n"


def test_the_display_is_closed_when_the_engine_fails() -> None:
    def engine(app: Any, *, progress: Any, **arguments: Any) -> NoReturn:
        raise EngineError("It broke.")

    with pytest.raises(EngineError, match="It broke"):
        run_with(engine, one_query(), Mode(progress=True))


def test_what_only_a_run_needs() -> None:
    check_run(one_query(), Mode(once=True, keep_open=True))
    check_run(App(queries=(QuerySource("q", "x"),)), Mode())
    with pytest.raises(UsageError, match="There is no query"):
        check_run(App(), Mode())


def test_check_and_explain_know_static_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.rq").write_text("SELECT * { GRAPH ?g { ?s ?p 1 } }")
    (tmp_path / "house.nt").write_text("")
    assert main(["check", "in.rq", "--static", "house.nt,graph=http://e/house"]) == 0
    assert capsys.readouterr().out == "in: ok, SELECT RSTREAM over static data, once\n"
    assert (
        main(
            ["explain", "in.rq", "--stage", "algebra", "--static", "house.nt,graph=http://e/house"]
        )
        == 0
    )
    assert "(graph <http://e/house>)" in capsys.readouterr().out
    assert main(["check", "in.rq"]) == 2


SCRIPT = """-- two queries over one view
Register Relation Sums (k Integer, total Float) As Select k, Sum(v) From A [Range 4 s] Group By k;
query : Select k From Sums; dest : out/sums
Rstream(Select v From A [Now], Sums Where A.k = Sums.k And tottal > 3)
"""


def test_a_cql_file_of_several_queries(folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.cql").write_text(SCRIPT.replace("tottal", "total"))
    assert main(["check", "two.cql", *STREAMS]) == 0
    names = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["sums", "two-2"]
    assert main(["explain", "two.cql", "--stage", "ast", *STREAMS]) == 0
    view = "Register Relation Sums (k Integer, total Double) As\nSelect k, Sum(v)\n"
    out = capsys.readouterr().out
    assert out.startswith(view) and out.count(view) == 2 and out.count("Rstream(") == 1


def test_errors_of_one_of_several_queries_have_the_places_of_the_file(
    folder: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("two.cql").write_text(SCRIPT)
    assert main(["check", "two.cql", *STREAMS]) == 2
    out, err = capsys.readouterr()
    assert (
        out.startswith("sums: ok") and "two-2: line 4, column 60: There is no column tottal." in err
    )


def test_failure_of_the_parser_of_cql_leaves_the_other_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = parser._parse

    def fail(text: str, *arguments: Any) -> Any:
        if "Length" in text:
            raise ZeroDivisionError("injected")
        return original(text, *arguments)

    monkeypatch.setattr(parser, "_parse", fail)
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("k,ts\n1,1000\n")
    Path("bad.cql").write_text("Rstream(Select Length(k) As n From S [Now])")
    Path("good.cql").write_text("Rstream(Select k From S [Now])")
    command = ["run", "bad.cql", "good.cql", "--stream", "S=s.csv,schema=k:integer"]
    assert main([*command, "--once", "--master", "none", "--format", "json"]) == 0
    rows, said = capsys.readouterr()
    assert '"good"' in rows and "bad is not run" in said and "ZeroDivision" in said
