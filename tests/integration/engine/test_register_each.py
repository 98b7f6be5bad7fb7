"""A query for each row of a table: what its text may hold, its table may be, what is refused."""

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from levada import Engine, Query, QueryRequest
from levada.cli.app.app_file import load_app
from levada.engine.templates.query_per_row import parse_text_template
from levada.engine.templates.query_templates import constants_of
from levada.errors import LevadaError, QueryError, UsageError
from levada.plan.logical.query_template import TemplateInstance

HEAD = "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT4S STEP PT2S] WHERE { WINDOW <e:w> { "
TEXT = HEAD + "<e:{{sensor}}> <e:p> ?x FILTER(?x > {{most}}) } }"
TABLE = [{"sensor": f"s{i}", "most": i + 10} for i in range(10)]


def engine() -> Engine:
    """An engine with a stream and a table of tuples."""
    found = Engine(spark=False)
    found.stream("e:s")
    found.stream("T", schema={"k": "string", "v": "integer"})
    return found


def planned(running: Engine) -> list[bool]:
    """Which queries are rows of templates."""
    return [
        isinstance(query.meaning, TemplateInstance) for query in running._registry.queries.values()
    ]


@pytest.mark.parametrize(
    "table",
    [TABLE, pl.DataFrame(TABLE), pd.DataFrame(TABLE), pa.Table.from_pylist(TABLE)],
    ids=["mappings", "polars", "pandas", "arrow"],
)
def test_tables_of_all_kinds(table: Any) -> None:
    with engine() as running:
        found = running.register_each(TEXT, table, name="hot-{{sensor}}")
        assert [query.name for query in found] == [f"hot-s{i}" for i in range(10)]
        assert "<e:s7>" in running.explain("hot-s7") and "17" in running.explain("hot-s7")
        assert planned(running) == [True] * 10


def test_a_file_of_csv_has_texts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sensor,most\n" + "".join(f"00{i},{i + 10}\n" for i in range(9)))
    with engine() as running:
        found = running.register_each(TEXT, path)
        assert [query.name for query in found] == [f"q{i}" for i in range(1, 10)]
        assert "<e:003>" in running.explain("q4") and all(planned(running))


def written(text: str, value: object, *, cql: bool = False) -> str:
    """What stands in a text of one column."""
    return parse_text_template(text, cql=cql).fill([value], [0], 1)


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("<e:{{x}}/a>", "b", "<e:b/a>"),
        ("<e:{{x}}>", 5, "<e:5>"),
        ('"{{x}}"', 'a "b" \\ \n', '"a \\"b\\" \\\\ \\n"'),
        ('"{{x}}"@en', "a", '"a"@en'),
        ("> {{x}}", 5, "> 5"),
        ("> {{ x }}", 0.5, "> 0.5e0"),
        ("> {{x}}", Decimal("1.50"), "> 1.50"),
        ("> {{x}}", True, "> true"),
        ("> {{x}}", float("nan"), '> "NaN"^^<http://www.w3.org/2001/XMLSchema#double>'),
        ("PT{{x}}S", 5, "PT5S"),
        ("{{x}}", "<e:a>", "<e:a>"),
        ("{{x}}", '"a b"@en', '"a b"@en'),
        ("{{x}}", "ex:a", "ex:a"),
        (
            "{{x}}",
            datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
            '"2026-01-02T00:00:00+00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
        ),
        ("# {{x}}\n{{x}}", 5, "# {{x}}\n5"),
        ("5 --{{x}}", 3, "5 --3"),
        # what SPARQL undoes before it reads
        ("= {{x}}", '"a\\u0022 || \\U00000031 || \\u0022"', '= "a\\" || 1 || \\""'),
        ("= {{x}}", '"\\\\u0022"@en', '= "\\\\u0022"@en'),
        ("e:a-{{x}}", "b-c", "e:a-b-c"),
        ("> {{x}}", np.float64(0.5), "> 0.5e0"),
        ("<e:{{x}}>", np.int64(5), "<e:5>"),
    ],
)
def test_values_are_written_as_sparql_has_them(text: str, value: object, wanted: str) -> None:
    assert written(text, value) == wanted


def test_values_are_written_as_cql_has_them() -> None:
    assert written("v > {{x}}", 0.5, cql=True) == "v > 0.5"
    assert written("k = '{{x}}'", "a b", cql=True) == "k = 'a b'"
    assert written("k = 'a\\' And v > {{x}}", 5, cql=True) == "k = 'a\\' And v > 5"


@pytest.mark.parametrize("value", [-5, -0.5, "-5"])
def test_a_minus_behind_a_minus_is_no_comment_of_cql(value: object) -> None:
    text = written("Where v > 10-{{x}} And k = 'a'", value, cql=True)
    assert text == f"Where v > 10- {value} And k = 'a'"


@pytest.mark.parametrize(
    ("text", "value", "cql"),
    [
        ("= {{x}}", "5-3", False),
        ("= {{x}}", "--5", False),
        ("= {{x}}", '"a"^^<e:b\\u003e||1=1||\\u003ce:c>', False),
        ("= {{x}}", '"\\U99999999"', False),
        ("= e:{{x}}", "-5", False),
        ("= {{x}}", Decimal("NaN"), False),
        pytest.param("= {{x}}", 10**5000, False, id="long"),
        ("= {{x}}", "5--3", True),
        ("= {{x}}", "a-b", True),
    ],
)
def test_values_that_would_be_more_than_a_term(text: str, value: object, cql: bool) -> None:
    with pytest.raises(UsageError, match="Row 1, column x"):
        written(text, value, cql=cql)


def test_rows_that_are_none_and_files_with_too_many_fields(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with engine() as running:
        for rows in ([TABLE[0], 5], [TABLE[0], {1: "a"}]):
            with pytest.raises(UsageError, match="Row 2 maps no names of columns to values"):
                running.register_each(TEXT, rows)
        path.write_text('sensor,most\na,"1"\nb,2,3\n')
        with pytest.raises(UsageError, match=r"Row 2 of the table .* has 3 fields, its head 2"):
            running.register_each(TEXT, path)
        path.write_text("sensor,most,sensor\na,1,b\n")
        with pytest.raises(UsageError, match="has two columns sensor"):
            running.register_each(TEXT, path)
        assert running.queries() == []


@pytest.mark.parametrize(
    ("text", "row", "told"),
    [
        (TEXT, {"sensor": "a b", "most": 1}, "Row 2, column sensor: 'a b' cannot stand in an IRI"),
        (TEXT, {"sensor": "a", "most": None}, "Row 2, column most: there is no value"),
        (TEXT, {"sensor": "a", "most": "a b"}, "Row 2, column most: 'a b' is no term"),
        (TEXT, {"sensor": "a", "most": [1]}, "most: it is a list, and a column stands for one"),
        (TEXT, {"sensor": "a", "most": datetime.datetime(2026, 1, 2)}, "has no time zone"),
        (HEAD + "?x ?p {{mots}} } }", {"sensor": "a", "most": 1}, "no column mots. Did you mean"),
        (HEAD + "?x ?p 1 } }", {"sensor": "a", "most": 1}, "The text names no column"),
        ("Select k From T [Now] Where k = '{{sensor}}'", {"sensor": "'", "most": 1}, "has quotes"),
    ],
)
def test_a_broken_row_is_told_and_none_is_registered(
    text: str, row: Mapping[str, Any], told: str
) -> None:
    with engine() as running:
        with pytest.raises(UsageError) as error:
            running.register_each(text, [{"sensor": "a", "most": 1}, row], name="q-{{sensor}}")
        assert told in str(error.value)
        assert running.queries() == []


def test_names_of_rows() -> None:
    with engine() as running:
        for rows, told in (
            ([{"sensor": "a", "most": 1}] * 2, "Rows 1 and 2 are both called q-a."),
            ([{"sensor": "a", "most": 1}, {"sensor": "a/b", "most": 1}], "Row 2: 'q-a/b' is not"),
        ):
            with pytest.raises(UsageError, match=told.replace(".", r"\.")):
                running.register_each(TEXT, rows, name="q-{{sensor}}")
        assert running.queries() == []
        with pytest.raises(UsageError, match="no table"):
            running.register_each(TEXT, 5)
        with pytest.raises(UsageError, match="cannot be read"):
            running.register_each(TEXT, "there/is/none.csv")


def test_a_row_that_is_no_query_is_told() -> None:
    table = [*TABLE, {"sensor": "x", "most": "FILTER"}]
    with engine() as running:
        with pytest.raises(QueryError) as error:
            running.register_each(TEXT, table, name="q{{sensor}}")
        assert "row 11 of the table" in error.value.__notes__
        assert running.queries() == [] and running._registry.known.queries == {}


def test_two_of_one_name_in_a_batch() -> None:
    text = TEXT.replace("{{sensor}}", "a").replace("{{most}}", "5")
    with engine() as running, pytest.raises(UsageError, match="There is a query a already"):
        running.register_all([QueryRequest(text, "a"), QueryRequest(text.replace("5", "6"), "a")])


def texts(of: str, values: Sequence[object]) -> list[QueryRequest]:
    """A query for each value."""
    return [QueryRequest(of.replace("@@", str(v)), f"q{i}") for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("text", "values", "rows"),
    [
        (HEAD + "?x <e:p> <e:@@> } }", range(10), 10),
        ("PREFIX : <e:>" + HEAD + "?x :p :a@@ } }", range(10), 10),
        (HEAD + "?x <e:p> ?v FILTER(?v > -@@) } }", range(1, 11), 10),
        (HEAD + "?x <e:p> ?v FILTER(?v > @@.5) } }", range(10), 10),
        (HEAD + "?x <e:p> 's@@' } }", range(10), 10),
        (HEAD + "?x <e:p> <e:@@> . ?x <e:q> <e:a@@> } }", range(10), 10),
        (HEAD + "?x <e:p> 5 ; <e:q> @@ } }", range(10), 9),  # 5 is a constant of all
        (HEAD + "?x <e:@@> ?y } }", range(10), 10),
        (HEAD + "?x <e:p>/<e:q@@>* <e:a> } }", range(10), 10),
        ("Select k From T [Range 4 s] Where v > @@", range(10), 10),
        # where a constant means more than itself
        (HEAD + "?x <e:p> ?v } } LIMIT @@", range(1, 11), 0),
        (HEAD + "?x <e:p> ?v } } LIMIT 5 # @@", range(10), 0),
        (HEAD + "?x <e:p> ?v FILTER REGEX(?v, 'a@@') } }", range(10), 0),
        (HEAD + "?x <e:p> 's@@'@en } }", range(10), 0),
        (HEAD + "?x <e:p> ?y BIND(@@ AS ?z) } }", range(10), 0),
        (HEAD + "?x <e:p>/<e:q>* <e:a@@> } }", range(10), 0),
        (HEAD.replace("PT4S", "PT@@S") + "?x <e:p> ?y } }", range(4, 14), 0),
        (HEAD + "?x <e:p> @@ } }", [f"00{i}" for i in range(10)], 0),
        (HEAD + "?x <e:p> @@ } }", range(7), 0),  # too few
    ],
)
def test_which_texts_are_rows_of_a_template(text: str, values: Sequence[object], rows: int) -> None:
    with engine() as running:
        running.register_all(texts(text, values))
        assert sum(planned(running)) == rows


def test_a_constant_that_means_more_has_a_template_of_its_own() -> None:
    batch = [
        QueryRequest(f"{HEAD}?x <e:p> <e:{i}> }} }} ORDER BY ?x LIMIT {1 + i % 2}", f"q{i}")
        for i in range(20)
    ]
    with engine() as running:
        running.register_all(batch)
        assert planned(running) == [True] * 20
        templates = {id(q.meaning.template) for q in _rows(running)}
        assert len(templates) == 2


def _rows(running: Engine) -> list[Any]:
    return list(running._registry.queries.values())


def test_a_text_whose_tokens_are_not_sure_is_planned_by_itself() -> None:
    for text in ("?x <e:p> 'a\\'b' ", "?x <e:p> 'a''b' ", "BASE <e:x>?x <e:p> 1"):
        assert constants_of(text) is None


def test_what_rows_say_of_streams_that_are_not_there() -> None:
    text = TEXT.replace("<e:s>", "<e:none>")
    with engine() as running:
        with pytest.raises(LevadaError, match="There is no stream e:none"):
            running.register_each(text, TABLE)
        assert running.queries() == []


def test_static_data_that_come_later_bind_rows_anew(tmp_path: Path) -> None:
    (tmp_path / "g.nt").write_text("<e:a> <e:p> <e:b> .\n")
    with engine() as running:
        found: list[Query] = running.register_each(TEXT, TABLE, name="q{{sensor}}")
        running.static(tmp_path / "g.nt")
        assert planned(running) == [True] * 10
        assert "<e:s3>" in found[3].explain()


APP = """
streams:
  e:s: {path: s.nt}
queries:
  "hot-{{sensor}}": {file: hot.rq, each: t.csv, t0: 500}
  other: {file: other.rq}
"""


def test_an_app_file_has_tables(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(APP)
    (tmp_path / "hot.rq").write_text(TEXT)
    (tmp_path / "other.rq").write_text(HEAD + "?x ?p ?y } }")
    (tmp_path / "t.csv").write_text("sensor,most\na,5\nb,6\n")
    app = load_app(tmp_path / "app.yaml")
    assert [query.name for query in app.queries] == ["hot-a", "hot-b", "other"]
    assert "<e:b> <e:p> ?x FILTER(?x > 6)" in app.queries[1].text
    assert app.query_options(app.queries[0]).t0 == 500
    (tmp_path / "t.csv").write_text("sensor,most\na,5\nb c,6\n")
    with pytest.raises(UsageError, match=r"queries\.hot.*Row 2, column sensor"):
        load_app(tmp_path / "app.yaml")


def test_a_list_of_no_rows_registers_nothing() -> None:
    with Engine(spark=False) as engine:
        engine.stream("e:s")
        text = "SELECT * FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1M] WHERE { ?x <e:p> {{v}} }"
        assert engine.register_each(text, []) == []


@pytest.mark.parametrize("batch", [{"q": "text"}, ["text"], {QueryRequest("text", "q")}, 5])
def test_a_batch_of_something_else_is_a_sentence(batch: Any) -> None:
    with Engine(spark=False) as engine, pytest.raises(UsageError, match=r"no query to register"):
        engine.register_all(batch)
