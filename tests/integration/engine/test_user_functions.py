"""Functions, aggregates and operators of the user: their types, errors, restarts and neighbours."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

import levada
from levada import Engine, QueryError, UsageError
from levada.cli.app.app_file import load_app
from levada.core import user_functions
from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.engine.suspended_queries import read_suspended
from levada.errors import UnknownNameError
from levada.plan.logical.print_logical import show
from levada.plan.lowering.print_physical import show_operators
from levada.server.checks.check_tasks import Task, answer
from levada.server.checks.check_workers import Order, Start
from support import user_functions as f

XSD = "http://www.w3.org/2001/XMLSchema#"
HEAD = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT1M STEP PT1M] WHERE { WINDOW :w { ?s :p ?v } }"
TERMS = [
    '"3"^^<xsd:integer>', '"4.5"^^<xsd:decimal>', '"1e1"^^<xsd:double>', '"plain"', '"hi"@en',
    '"true"^^<xsd:boolean>', "<http://e/a/b>", "<http://e/bad>", '"q\\"\\n\\u00e9"',
    f'"{10**30}"^^<xsd:integer>',
]  # fmt: skip
ROWS = "ts,dev,v\n1000,a,1.0\n2000,b,50.0\n3000,a,3.0\n9000,b,2.0\n"


def write_terms(folder: Path) -> None:
    lines = (
        f"<http://e/s{i}> <http://e/p> {term.replace('<xsd:', f'<{XSD}')} {1000 + i} .\n"
        for i, term in enumerate(TERMS)
    )
    (folder / "s.nt").write_text("".join(lines))


def run(
    folder: Path, queries: Mapping[str, str], *, end: bool = True, **options: Any
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each query, with the time of their report; CQL if a text has no brackets."""
    with Engine(spark=False, **options) as engine:
        if (folder / "s.nt").exists():
            engine.stream("http://e/s", folder / "s.nt")
        if (folder / "t.csv").exists():
            engine.stream("T", folder / "t.csv", schema="dev:string;v:double", time="field:ts")
        asked = {
            name: engine.register(text, name=name, dialect=None if "{" in text else "cql")
            for name, text in queries.items()
        }
        engine.start(once=True, keep_open=not end)
        engine.await_end()
        return {
            name: sorted(
                ((r.time, *row) for r in query.results() for row in r.rows.rows()), key=repr
            )
            for name, query in asked.items()
        }


def values(folder: Path, function: str) -> list[str | None]:
    """The value of a function of each term."""
    write_terms(folder)
    text = f"{HEAD}SELECT ?s ({function} AS ?x) {WINDOW}"
    return [row[2] for row in run(folder, {"q": text})["q"]]


TRUE = f'"true"^^<{XSD}boolean>'


def number(text: str, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (":hypot(?v, 4)", [5.0, math.hypot(4.5, 4), math.hypot(10, 4), *6 * [None], 1e30]),
        (":half(?v * 2)", [number("3", "integer"), *9 * [None]]),
        (":half(?v)", 10 * [None]),
        (":shout(?v)", [*3 * [None], '"PLAIN\\"!\\n"', *4 * [None], '"Q\\"\\nÉ\\"!\\n"', None]),
        (":long(?v)", [*3 * [None], TRUE, *4 * [None], TRUE, None]),
        (":parent(?v)", [*6 * [None], "<http://e/a/>", *3 * [None]]),
        (
            "SUBSTR(:text(?v), 1, 4)",
            [
                '"\\"3\\"^"',
                '"\\"4.5"',
                '"\\"1e1"',
                '"\\"pla"',
                '"\\"hi\\""',
                '"\\"tru"',
                '"<htt"',
                '"<htt"',
                '"\\"q\\\\\\""',
                '"\\"100"',
            ],
        ),
        ("COALESCE(:shout(?v), 'none')", None),
        ("IF(:long(?v), 1, 2)", None),
    ],
)
def test_arguments_that_do_not_fit_are_errors_of_their_rows(
    function: str, expected: list[Any] | None, tmp_path: Path
) -> None:
    got = values(tmp_path, function)
    if expected is None:
        assert got[0] == ('"none"' if "COALESCE" in function else None)
        return
    for one, wanted in zip(got, expected, strict=True):
        if isinstance(wanted, float | int):
            assert one is not None and math.isclose(float(one.split('"')[1]), wanted)
        else:
            assert one == wanted


def test_an_aggregate_is_an_error_of_a_group_as_a_sum_is(tmp_path: Path) -> None:
    write_terms(tmp_path)
    text = f"{HEAD}SELECT (:spread(?v) AS ?x) (SUM(?v) AS ?y) {WINDOW}"
    numbers = text.replace("?s :p ?v", "?s :p ?v FILTER(?v < 20)")
    rows = run(tmp_path, {"all": text, "numbers": numbers})
    assert rows["all"] == [(60_000, None, None)]
    assert rows["numbers"] == [(60_000, number("21", "double"), number("17.5", "double"))]


def test_an_aggregate_of_texts_merges_panes_and_partitions(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS + "9500,long,2.0\n")
    write_terms(tmp_path)
    window = "[Range 8 Seconds Slide 2 Seconds]"
    rows = run(
        tmp_path,
        {
            "all": f"Rstream(Select Longest(dev) As n From T {window})",
            "rdf": f"{HEAD}SELECT (:longest(STR(?v)) AS ?n) {WINDOW}",
        },
        partitions=3,
    )
    longest = [*[(r, number("1", "integer")) for r in (2000, 4000, 6000, 8000)]]
    longest += [(r, number("4", "integer")) for r in (10_000, 12_000, 14_000, 16_000)]
    assert rows["all"] == sorted(longest, key=repr)
    assert rows["rdf"] == [(60_000, number("31", "integer"))]


def test_a_function_that_fails_suspends_its_query_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    window = "From T [Range 4 Seconds Slide 4 Seconds]"
    others = {
        "sound": f"Rstream(Select dev, Hypot(v, 1) As x {window})",
        "spread": f"Rstream(Select dev, Spread(v) As x {window} Group By dev)",
    }
    bad = {"bad": f"Rstream(Select dev, Fails(v) As x {window})"}
    with pytest.warns(UserWarning, match=r"bad is suspended.*user_functions\.py:\d+: ValueError"):
        rows = run(tmp_path, {**others, **bad}, checkpoint=tmp_path / "checkpoint")
    assert rows.pop("bad") == []
    assert rows == run(tmp_path, others)
    cause = read_suspended(tmp_path / "checkpoint")["bad"].cause
    assert cause.startswith("The function <http://e/fails> (support.user_functions:fails) failed")
    assert cause.endswith("ValueError: too large.")


@pytest.mark.parametrize(
    ("function", "reason"),
    [("wrong", "it returned String, and declares integer"), ("short", r"returned 0 values for \d")],
)
def test_a_result_of_another_type_or_size_suspends(
    function: str, reason: str, tmp_path: Path
) -> None:
    with pytest.warns(UserWarning, match=reason):
        assert values(tmp_path, f":{function}(?v)") == []


def test_queries_with_the_same_function_call_it_once(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    text = "Rstream(Select Hypot(v, 2) As x From T [Range 4 Seconds Slide 4 Seconds])"
    calls = []
    for queries in ({"a": text}, {f"q{i}": text for i in range(3)}):
        f.CALLS.clear()
        run(tmp_path, queries)
        calls.append(len(f.CALLS))
    assert calls[0] == calls[1] > 0


def test_a_checkpoint_names_no_module(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    text = "Rstream(Select dev, n From Table(Running(Table T Partition By dev)) [Now])"
    root = tmp_path / "checkpoint"
    run(tmp_path, {"a": text}, end=False, checkpoint=root)
    files = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    assert not any(b"support" in data or b"user_functions" in data for data in files)
    assert any(b"http://e/running" in data for data in files)


def test_a_restart_without_the_function_refuses_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_terms(tmp_path)
    text = f"{HEAD}SELECT (:shout(?v) AS ?x) {WINDOW}"
    run(tmp_path, {"q": text}, end=False, checkpoint=tmp_path / "checkpoint")
    with monkeypatch.context() as patch:
        patch.delitem(user_functions.DECLARED, "http://e/shout")
        with pytest.raises(UnknownNameError, match=r"e/shout> is not known(?s:.*)Declare it with"):
            run(tmp_path, {"q": text}, checkpoint=tmp_path / "checkpoint")
    rows = run(tmp_path, {"q": text}, checkpoint=tmp_path / "checkpoint")["q"]
    assert ('"PLAIN\\"!\\n"') in [row[1] for row in rows]


@pytest.mark.parametrize(
    ("iri", "text"),
    [
        ("http://e/spread", "Select dev, Spread(v) As x From T [Range 1 Minute Slide 1 Minute]"),
        ("http://e/running", "Select dev, n From Table(Running(Table T Partition By dev)) [Now]"),
    ],
)
def test_another_state_than_the_stored_one_suspends(
    iri: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t.csv"
    folder.write_text(ROWS)
    asked = {"q": f"Rstream({text}{' Group By dev' if 'Spread' in text else ''})"}
    run(tmp_path, asked, end=False, checkpoint=tmp_path / "checkpoint")
    if "running" in iri:  # it reads its state when a row of the key arrives
        folder.write_text(ROWS + "9500,b,2.5\n")
    made: Any = user_functions.DECLARED[iri]
    other = replace(made, state={"other": user_functions.ValueType.DOUBLE})
    if "spread" in iri:
        value = pl.col("value").max()
        other = replace(other, fold=lambda rows: rows.group_by("group").agg(other=value))
    monkeypatch.setitem(user_functions.DECLARED, iri, other)
    with pytest.warns(UserWarning, match="has another state than the one that is stored"):
        run(tmp_path, asked, checkpoint=tmp_path / "checkpoint")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{HEAD}SELECT (:hypot(?v) AS ?x) {WINDOW}", r"takes 2 arguments \(double, double\), not"),
        (f"{HEAD}SELECT (:shuot(?v) AS ?x) {WINDOW}", "Did you mean http://e/shout or"),
        (f"{HEAD}SELECT (:spread(?v, ?v) AS ?x) {WINDOW}", "takes one argument"),
        (f"{HEAD}SELECT * {WINDOW[:-2]} FILTER(:spread(?v) > 1) }}", "(?i)aggregate"),
        ("Select Hypot(dev, v) As x From T [Now]", "argument 1 of Hypot is of the type string"),
        ("Select Hypot(v) As x From T [Now]", "takes 2 arguments, not 1"),
        ("Select Parent(dev) As x From T [Now]", "There is no function Parent"),
        ("Select Spread(*) As x From T [Now]", "takes one argument, and neither"),
        ("Select n From Table(Running(Table T [Now]))", "stands behind its brackets"),
        ("Select n From Table(Runing(Table T))", r"no operator Runing(?s:.*)@levada\.function"),
        ("Select word From Table(Letters(Table T Partition By ts))", "T has no column ts"),
        (
            "Select * From Table(Running(Table(Letters(Table T)))) [Now]",
            "its table has no column v",
        ),
        ("Select n From Table(Running(Table R)) [Now]", "There is no tuple stream R"),
        (
            "Register Relation V (v Float) As Select v From T [Now]; "
            "Istream(Select n From Table(Running(Table V)) [Now])",
            "reads a stream, and V is a view",
        ),
    ],
)
def test_calls_that_cannot_be_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    with Engine(spark=False) as engine, pytest.raises(QueryError, match=reason):
        engine.stream("http://e/s")
        engine.stream("T", schema="dev:string;v:double")
        engine.register(text, name="q", dialect=None if "{" in text else "cql")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"iri": "half"}, "not an absolute IRI"),
        ({"iri": "http://e/hypot"}, "functions with the same IRI"),
        ({"name": "hypot"}, "functions with the same name"),
        ({"name": "two words"}, "is not a word"),
        ({"arguments": ("number",)}, "The type number is not one of a argument|type number"),
        ({"arguments": "double"}, "a list of types"),
        ({"returns": "term"}, "type term"),
        ({"arguments": ("iri",), "name": "mine"}, "CQL has no values of all types"),
    ],
)
def test_declarations_that_cannot_be_are_refused(words: dict[str, Any], reason: str) -> None:
    asked = {"iri": "http://e/mine", "arguments": ("double",), "returns": "double", **words}
    with pytest.raises(UsageError, match=reason):
        levada.function(**asked)(lambda a: a)


def test_a_name_of_cql_stays_that_of_cql(monkeypatch: pytest.MonkeyPatch) -> None:
    @levada.function(iri="http://e/abs", name="abs", arguments=("double",), returns="double")
    def absolute(a: pl.Series) -> pl.Series:
        return a

    try:
        with Engine(spark=False) as engine, pytest.raises(QueryError, match="another name="):
            engine.stream("T", schema="dev:string;v:double")
            engine.register("Select Abs(v) As x From T [Now]", name="q", dialect="cql")
    finally:
        del user_functions.DECLARED["http://e/abs"]


def test_an_app_file_names_functions_of_its_folder(tmp_path: Path) -> None:
    module = f"functions_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(
        "import levada\n"
        "@levada.function(iri='http://e/twice', arguments=('double',), returns='double')\n"
        "def twice(a):\n    return a * 2\n"
        "other = 1\n"
    )
    app = tmp_path / "app.yaml"
    try:
        app.write_text(f"functions: ['{module}:twice']\n")
        load_app(app)
        assert user_functions.find_function("http://e/twice") is not None
        check = Task("check", f"{HEAD}SELECT (:twice(?v) AS ?x) {WINDOW}", dialect="rspql")
        assert answer(check, NameScope)["ok"] is False  # no stream, but the function is known
        assert "stream" in str(answer(check, NameScope)["errors"])
        for place, reason in (
            (f"{module}:other", "is not a declared function"),
            (f"{module}:none", "cannot be imported here"),
            ("no_such_module:f", "cannot be imported here"),
        ):
            app.write_text(f"functions: ['{place}']\n")
            with pytest.raises(UsageError, match=f"functions: .*{place}.*{reason}"):
                load_app(app)
    finally:
        user_functions.DECLARED.pop("http://e/twice", None)


def test_an_operator_that_comes_later_begins_as_a_count_window_does(tmp_path: Path) -> None:
    """Elements that wait for the watermark when a query is added are not the query's."""
    (tmp_path / "t").mkdir()
    running = "Rstream(Select dev, n From Table(Running(Table T Partition By dev)) [Now])"
    counted = "Istream(Select dev, Count(*) As n From T [Partition By dev Rows 99] Group By dev)"
    parts = [
        [(1000 * i, "ab"[i % 2], 1.0) for i in range(1, 9)],
        [(6500, "a", 1.0), *((1000 * i, "ab"[i % 2], 1.0) for i in range(9, 14))],
    ]
    asked = [{"old": running}, {"old": running, "running": running, "counted": counted}]
    found: dict[str, list[tuple[Any, ...]]] = {}
    for i, (part, queries) in enumerate(zip(parts, asked, strict=True)):
        frame = pl.DataFrame(part, schema=["ts", "dev", "v"], orient="row")
        frame.write_parquet(tmp_path / "t" / f"{i}.parquet")
        options = {"checkpoint": tmp_path / "checkpoint", "epoch_rows": 3, "partitions": 2}
        with Engine(spark=False, **options) as engine:  # type: ignore[arg-type]
            engine.stream("T", tmp_path / "t", time="field:ts", lateness="3s")
            handles = {n: engine.register(t, name=n, dialect="cql") for n, t in queries.items()}
            engine.start(once=True, keep_open=i == 0)
            engine.await_end()
            for name, query in handles.items():
                rows = [(r.time, *row) for r in query.results() for row in r.rows.rows()]
                found.setdefault(name, []).extend(rows)
    assert sorted(found["running"]) == sorted(found["counted"]) != []
    in_order = sorted((ts, dev) for part in parts for ts, dev, _ in part)
    counts = {"a": 0, "b": 0}
    expected = []
    for ts, dev in in_order:
        counts[dev] += 1
        expected.append((ts, f'"{dev}"', number(str(counts[dev]), "integer")))
    assert sorted(found["old"]) == expected


def test_a_plan_shows_functions_by_their_iris() -> None:
    running = "Table(Running(Table T Partition By dev)) [Now]"
    text = f"Rstream(Select dev, Hypot(n, total) As h From {running})"
    scope = NameScope({"T": StreamFacts({"dev": "string", "v": "double"})})
    query = prepare(QueryRequest(text, "q", "cql"), scope)
    assert "(<http://e/hypot> ?T.n ?T.total)" in show(query.algebra)
    assert "(<http://e/running> of scan" in show(query.algebra)
    assert "useroperator http://e/running (dev)" in show_operators(query.physical.root)


def test_processes_that_check_texts_know_the_functions_of_the_server(tmp_path: Path) -> None:
    """As ``levada serve`` starts them, with what it has declared."""
    (tmp_path / "t.csv").write_text(ROWS)
    text = "Rstream(Select Hypot(v, 2) As x From T [Now])"
    run(tmp_path, {"q": text}, end=False, checkpoint=tmp_path / "checkpoint")
    order = Order(Task("check", text, dialect="cql"), 60.0, 4 << 30)
    answers = []
    for functions in (([], []), user_functions.places()):
        start = Start(str(tmp_path / "checkpoint"), [], os.getpid(), functions)
        done = subprocess.run(
            [sys.executable, "-m", "levada.server.checks.check_workers"],
            input=b"\n".join(map(msgspec.json.encode, (start, order))) + b"\n",
            stdout=subprocess.PIPE,
            check=False,
        )
        answers.append(msgspec.json.decode(done.stdout.splitlines()[-1])["answer"])
    without, known = answers
    assert not without["ok"] and "no function Hypot" in str(without["errors"])
    assert known["ok"], known


def test_spark_refuses_functions_that_executors_cannot_import() -> None:
    @levada.function(iri="http://e/local", arguments=("double",), returns="double")
    def local(a: pl.Series) -> pl.Series:
        return a

    try:
        with pytest.raises(UsageError, match=r"<locals>.*executors of Spark cannot import"):
            user_functions.check_importable()
    finally:
        del user_functions.DECLARED["http://e/local"]
