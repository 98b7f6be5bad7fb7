"""The app file: what it becomes, and where each mistake is."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from levada.cli.app.app_file import App, Options, QuerySource, StaticSource, load_app
from levada.errors import UsageError
from levada.plan.logical.query_options import QueryOptions

WHOLE = """
streams:
  http://example.org/temp:
    {path: temp.nt.gz, lateness: 10s, from: 2013-01-01T00:00:00Z, to: 2013-02-01}
  A: {path: /data/a.csv, schema: {k: integer, v: double}, time: field:at}
static:
  - {path: rooms.ttl, graph: http://example.org/rooms}
  - more.nt
queries:
  hot: {file: hot.rq, empty_reports: true, report: "periodic:1m"}
  pairs: {file: pairs.cql, t0: 2013-01-01T00:00:00Z}
  text: {dialect: cql, text: "Select k From A", bounds: "(]", report: change, t0: 5}
options:
  out: results
  format: csv
  checkpoint: /state
  master: local[2]
  epoch: 500ms
  epoch_rows: 1k
  bounds: "[)"
  t0: 1970-01-02
  report: close
  summary: summary.json
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    (tmp_path / "hot.rq").write_text("SELECT ...")
    (tmp_path / "pairs.cql").write_text("Select ...")

    def write(text: Any) -> Any:
        path = tmp_path / "app.yaml"
        path.write_text(dedent(text))
        return path

    return write


def test_a_whole_application(write: Any, tmp_path: Path) -> None:
    app = load_app(write(WHOLE))
    temp, a = app.streams
    assert (temp.name, temp.path, temp.lateness) == (
        "http://example.org/temp",
        str(tmp_path / "temp.nt.gz"),
        10_000,
    )
    assert (temp.from_, temp.to) == (1356998400000, 1359676800000)
    assert (a.path, a.schema, a.time) == (
        "/data/a.csv",
        (("k", "integer"), ("v", "double")),
        "field:at",
    )
    assert app.static == (
        StaticSource(str(tmp_path / "rooms.ttl"), "http://example.org/rooms"),
        StaticSource(str(tmp_path / "more.nt")),
    )
    hot, pairs, text = app.queries
    assert hot == QuerySource(
        "hot", "SELECT ...", None, {"report": "periodic:1m", "empty_reports": True}
    )
    assert pairs == QuerySource("pairs", "Select ...", "cql", {"t0": 1356998400000})
    said = {"bounds": "(]", "report": "change", "t0": 5}
    assert text == QuerySource("text", "Select k From A", "cql", said)
    assert app.options == Options(
        out=str(tmp_path / "results"),
        format="csv",
        checkpoint="/state",
        master="local[2]",
        epoch=500,
        epoch_rows=1000,
        summary=str(tmp_path / "summary.json"),
        said={"bounds": "[)", "t0": 86_400_000, "report": "close"},
    )


def test_a_querys_own_options_win(write: Any) -> None:
    app = load_app(write(WHOLE))
    hot, _, text = (app.query_options(query) for query in app.queries)
    assert hot == QueryOptions(bounds="[)", t0=86_400_000, period=60_000, empty_reports=True)
    assert text == QueryOptions(bounds="(]", t0=5, report="change", empty_reports=False)


def test_an_empty_file_is_an_empty_application(write: Any) -> None:
    assert load_app(write("")) == App()
    assert load_app(write("streams:\nqueries:\n")) == App()


def test_standard_output_stays_what_it_is(write: Any) -> None:
    assert load_app(write("options: {out: '-'}")).options.out == "-"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("strems: {}", "strems is not an option.", "Did you mean streams?"),
        ("- 1", "The app file is a mapping, not [1].", ""),
        ("streams: [a]", "streams is a mapping, not ['a'].", ""),
        ("streams: {a: {path: a.nt, latenes: 5s}}", "streams.a.latenes is not an option.",
         "Did you mean lateness?"),
        ("streams: {a: {path: a.nt, name: b}}", "streams.a.name is not an option.", None),
        ("streams: {a: {lateness: 5s}}", "streams.a needs a path.", ""),
        ("streams: {a: {path: 5}}", "streams.a.path is a text, not 5.", ""),
        ("streams: {a b: {path: a.nt}}", "streams.a b: 'a b' is not a name of a stream.", None),
        ("streams: {a: {path: a.nt, unit: h}}",
         "streams.a: unit of the stream a: h is none of ms, s, us, ns.", None),
        ("static: {path: a.ttl}", "static is a list, not {'path': 'a.ttl'}.", ""),
        ("static: [{graph: http://e/g}]", "static[0] needs a path.", ""),
        ("static: [{path: a.ttl, graph: rooms}]",
         "'rooms' is not an absolute IRI, as a graph's name is.", ""),
        ("queries: {a b: {text: x}}", "queries.a b: 'a b' is not a name of a query.", None),
        ("queries: {late: {text: x}}",
         "queries.late: No query can be called late: the folder of that name holds late "
         "elements.", "A query has the name of its file: rename the file."),
        ("queries: {1: {text: x}}", "queries.1: a key is a text.", 'Write "1" in quotes.'),
        ("queries: {q: {}}", "queries.q needs one of file and text.", ""),
        ("queries: {q: {text: x, file: y}}", "queries.q needs one of file and text.", ""),
        ("queries: {q: {text: x, dialekt: cql}}", "queries.q.dialekt is not an option.",
         "Did you mean dialect?"),
        ("queries: {q: {text: x, dialect: sql}}",
         "queries.q.dialect is rspql, cqels, cqels2, csparql, sparqlstream, cql or stream, not "
         "'sql'.", None),
        ("queries: {q: {text: x, t0: yesterday}}", "queries.q.t0: yesterday is not a time.", None),
        ("queries: {q: {text: x, t0: true}}", "queries.q.t0 is a time, not True.", ""),
        (
            "queries: {q: {text: x, report: periodical}}",
            "queries.q.report: There is no report policy periodical.",
            "Did you mean periodic:?",
        ),
        ("queries: {q: {text: x, empty_reports: 1}}",
         "queries.q.empty_reports is true or false, not 1.", ""),
        ("options: {formt: csv}", "options.formt is not an option.", "Did you mean format?"),
        ("options: {format: xml}", "options.format is ndjson, json, csv, tsv, srj, srx, nt, nq, "
         "trig, jsonld, jelly, arrow or parquet, not 'xml'.", None),
        ("options: {epoch: soon}", "options.epoch: soon is not a duration.", None),
        ("options: {epoch_rows: 0}", "options.epoch_rows is a positive number, not 0.", ""),
        ("options: {epoch_rows: 1kk}", "options.epoch_rows: the number is '1kk', which is no whole "
         "number from 1 to 1,000,000,000,000,000,000.", "Write it as 5000, 100k or 2M."),
        ("options: {bounds: '()'}", "options.bounds is [) or (], not '()'.", None),
    ],
)  # fmt: skip
def test_mistakes_say_where_they_are(write: Any, text: str, message: str, hint: Any) -> None:
    with pytest.raises(UsageError) as caught:
        load_app(write(text))
    assert caught.value.message == message
    assert hint is None or caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "queries:\n  q: {text: x}\n  q: {text: y}\n",
            r"app\.yaml, line 3, column 3: the key q is there twice\.",
        ),
        ("streams: {a: [}", r"app\.yaml, line 1, column 15: "),
        (
            "queries: {q: {file: missing.rq}}",
            r"The query file .*missing\.rq cannot be read: No such file or directory\.",
        ),
    ],
)
def test_files_that_cannot_be_read(write: Any, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_app(write(text))


def test_a_missing_app_file(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"The app file .*no\.yaml cannot be read: No such file or directory\."
    ):
        load_app(tmp_path / "no.yaml")


def test_names_are_there_once() -> None:
    app = App(queries=(QuerySource("q", "x"),))
    with pytest.raises(UsageError, match="The query q is there twice"):
        app.merge(app)


def test_tables_on_standard_output_are_for_one_query() -> None:
    queries = (QuerySource("a", "x"), QuerySource("b", "x"))
    App(queries=queries).check_output()
    App(queries=queries[:1], options=Options(format="csv")).check_output()
    App(queries=queries, options=Options(format="csv", out="dir")).check_output()
    with pytest.raises(UsageError, match=r"tsv on standard output is for one query, these are 2\."):
        App(queries=queries, options=Options(format="tsv")).check_output()


def test_a_tilde_of_nobody_is_a_name_like_others(write: Any, tmp_path: Path) -> None:
    """Found by damaged app files: it was an exception, since nobody's folder is known."""
    app = load_app(write("streams: {temp: {path: ~nobody-of-that-name/t.nt}}"))
    assert app.streams[0].path == str(tmp_path / "~nobody-of-that-name" / "t.nt")
