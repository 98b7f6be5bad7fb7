"""``levada test``: cases that pass and fail, what is compared and how, JUnit, and from pytest."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from levada.cli.main import main
from levada.testing import check_case, find_cases

CQL = "Rstream(Select k, Count(*) As n From S [Range 10 Seconds Slide 10 Seconds] Group By k)"
RQ = """PREFIX : <http://e/>
SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT10S]
WHERE { WINDOW :w { ?x :t ?t } } GROUP BY ?x"""
JSON = """{"report": "1970-01-01T00:00:10Z", "k": "b", "n": 1}
{"k":"a","n":2,"report":"1970-01-01T00:00:10Z"}
"""


def case(root: Path, **files: str) -> Path:
    """A case of these files; `expected__q_csv` is expected/q.csv."""
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, errors="surrogateescape")
    return root


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return case(
        tmp_path / "table", q_cql=CQL, S_csv="ts,k\n1000,a\n2000,a\n3000,b\n",
        expected__q_json=JSON,
    )  # fmt: skip


def test_rows_may_come_in_any_order_and_spelling(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", str(table)]) == 0
    assert "1 passed, 0 failed" in capsys.readouterr().out
    check_case(table)


def test_a_difference_is_shown_and_fails(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rdf = case(
        tmp_path / "rdf", q_rq=RQ, s_nt='<e:a> <http://e/t> "1" 1000 .\n',
        expected__q_csv="report,x,n\n10000,e:a,2\n",
    )  # fmt: skip
    junit = tmp_path / "report.xml"
    assert main(["test", str(tmp_path), "--junit", str(junit)]) == 1
    out = capsys.readouterr().out
    assert "-10000,e:a,2" in out and "+10000,e:a,1" in out and "1 passed, 1 failed" in out
    suite = ET.parse(junit).getroot()
    assert suite.attrib["tests"] == "2" and suite.attrib["failures"] == "1"
    assert [c.attrib["name"] for c in suite if len(c)] == ["rdf"]
    with pytest.raises(AssertionError, match="10000,e:a,1"):
        check_case(rdf)
    assert find_cases(tmp_path) == [rdf, table]
    assert main(["test", str(tmp_path), "--update"]) == 0
    assert (rdf / "expected" / "q.csv").read_text() == "report,x,n\n10000,e:a,1\n"
    assert main(["test", str(tmp_path)]) == 0


def test_an_app_file_says_the_options(tmp_path: Path) -> None:
    app = "streams: {S: {path: in.csv, schema: 'k:string', time: 'field:at'}}\n"
    app += "queries: {q: {file: q.cql, dialect: cql}}\noptions: {checkpoint: ck}\n"
    root = case(
        tmp_path / "a", app_yaml=app, in_csv="at,k\n1000,a\n", q_cql=CQL,
        expected__q_ndjson="",
    )  # fmt: skip
    assert main(["test", str(root), "--update"]) == 0
    assert '"report": 10000' in (root / "expected" / "q.ndjson").read_text()
    check_case(root)
    assert not (root / "ck").exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"S_csv": "ts,k\n1000,a\n2000,b,c,d\n"}, "dead letter"),
        ({"q_cql": "Rstream(Select nothing From S [Now])"}, "nothing"),
        ({"expected__r_csv": "report\n"}, "is of no query of the case: they are q."),
        ({"expected__q_txt": "x"}, "is no file of results."),
        ({"expected__q_json": "[" * 100_000}, "q.json holds no results: maximum recursion"),
        ({"expected__q_json": '{"k": 1\n'}, "q.json holds no results: Expecting"),
        ({"expected__q_json": "[1]\n"}, "q.json holds no results: a line is not an object"),
        ({"expected__q_json": '{"k": "\udcff"}\n'}, "q.json holds no results: 'utf-8' codec"),
        ({"q_cql": f"{CQL} \udcff"}, "q.cql is not UTF-8."),
        ({"expected__q_json": '{"k": "\x7f"}\n'}, r"\x7f"),
    ],
)
def test_what_cannot_be_compared_is_said(
    table: Path, files: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", str(case(table, **files))]) == 1
    assert message in capsys.readouterr().out


def test_a_folder_without_a_case_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", str(tmp_path)]) == 2
    assert "There is no case in" in capsys.readouterr().err
