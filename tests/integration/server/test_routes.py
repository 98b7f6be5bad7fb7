"""The routes, over HTTP: what is there, in which formats, and what is refused how."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import httpx
import polars as pl
import pytest
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families

from levada.cli.main import main
from levada.server.app import WAYS
from support.doc_pages import ROOT
from support.http_server import GRAPHS, Run, last_report
from support.polling import until


def test_what_a_checkpoint_says(client: httpx.Client) -> None:
    assert client.get("/health").json() == {
        "ok": True,
        "engine": "running",
        "read_only": False,
    }
    for probe in ("live", "ready"):
        assert client.get(f"/health/{probe}").json() == {"ok": True}
    status = client.get("/status").json()
    assert status["streams"]["s"]["elements"] == 10
    assert [query["name"] for query in status["queries"]] == ["hot"]
    (stream,) = client.get("/streams").json()["streams"]
    assert (stream["name"], stream["format"], stream["watermark"]) == ("s", "nt", 4500)
    assert "path" not in stream, "where a stream lies is nobody's business"
    assert client.get("/streams/s").json()["name"] == "s"
    (query,) = client.get("/queries").json()["queries"]
    assert query["text"].startswith("PREFIX : <http://e/>\nSELECT ?a ?n")
    assert (query["state"], query["dialect"], query["results"]) == ("running", "rspql", 14)
    assert (query["watermark"], query["next_report"]) == (4500, 5000)
    assert query["input_rows"] > 0 and query["cpu_seconds"] > 0 and query["state_bytes"] > 0
    one = client.get("/queries/hot")
    assert one.json() == query
    assert one.headers["etag"].startswith('"')


def test_the_status_has_the_fields_of_the_command(
    client: httpx.Client, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    served = client.get("/status").json()
    assert main(["status", str(run.root), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert served.keys() == printed.keys() | {"engine"}
    assert served["streams"] == printed["streams"]
    assert [query.keys() for query in served["queries"]] == [
        query.keys() for query in printed["queries"]
    ]


def test_what_may_stand_in_a_text(client: httpx.Client) -> None:
    words = {word["insert"]: word["kind"] for word in client.get("/words").json()["words"]}
    assert (words["SELECT"], words["WINDOW"], words["s"]) == ("", "", "stream")
    assert words[": <http://e/>"] == "prefix"


def test_what_the_queries_share(client: httpx.Client) -> None:
    assert client.get("/explain").text.startswith("1 query: ")
    found = client.get("/explain", headers={"Accept": "application/json"}).json()
    assert found["nodes"][0]["name"] == "Match"
    assert {edge["producer"] for edge in found["edges"]} >= {"Match"}


def test_metrics_are_prometheus(client: httpx.Client) -> None:
    found = client.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {f.name: f for f in text_string_to_metric_families(found.text)}
    samples = {s.labels["stream"]: s.value for s in families["levada_stream_elements"].samples}
    assert samples == {"s": 10}
    (watermark,) = families["levada_query_watermark_seconds"].samples
    assert (watermark.labels, watermark.value) == ({"query": "hot"}, 4.5)
    for name in ("cpu_seconds", "input_rows", "state_bytes"):
        (taken,) = families[f"levada_query_{name}"].samples
        assert taken.labels == {"query": "hot"} and taken.value > 0
    assert families["levada_engine_running"].samples[0].value == 1
    assert {s.labels["status"] for s in families["levada_http_requests"].samples} <= {"200", "404"}
    page = (ROOT / "docs/monitoring/metrics.md").read_text()
    names = re.findall(r"^# TYPE (\w+)", found.text, re.MULTILINE)
    assert not [name for name in names if f"`{name}`" not in page]


def test_the_document_of_the_routes(client: httpx.Client) -> None:
    found = client.get("/openapi.json").json()
    validate(found)
    operations = sum(len(path) for path in found["paths"].values())
    assert operations == len(WAYS)
    assert len({op["operationId"] for path in found["paths"].values() for op in path.values()}) == (
        operations
    )


def test_results_by_time(client: httpx.Client, run: Run) -> None:
    last = client.get("/queries/hot/results")
    assert last.headers["levada-report"] == "4000"
    assert json.loads(last.text)["report"] == 4000
    one = client.get("/queries/hot/results/3000")
    assert "immutable" in one.headers["cache-control"]
    assert [b["n"]["value"] for b in one.json()["results"]["bindings"]] == ["2", "3", "4", "5"]
    again = client.get("/queries/hot/results/3000", headers={"If-None-Match": one.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    some = client.get("/queries/hot/results?after=1000&limit=2")
    assert [json.loads(line)["report"] for line in some.text.splitlines()] == [2000, 3000]
    assert some.headers["link"] == '</queries/hot/results?after=3000&limit=2>; rel="next"'
    rest = client.get("/queries/hot/results?after=3000&limit=2")
    assert [json.loads(line)["report"] for line in rest.text.splitlines()] == [4000]
    assert "link" not in rest.headers
    assert client.get("/queries/hot/results?after=4000").text == ""
    run.feed(4)
    until(lambda: last_report(client) == 6000)


FORMATS = {
    "application/x-ndjson": b'{"query": "hot", "report": 2000, "head"',
    "application/sparql-results+json": b'{"head": {"vars": ["a", "n"]}, "results"',
    "application/sparql-results+xml": b'<?xml version="1.0"?><sparql',
    "text/csv": b"report,a,n\n2000,http://e/a,0\n",
    "text/tab-separated-values": b'report\t?a\t?n\n2000\t<http://e/a>\t"0"\n',
    "text/plain;q=0.5, text/csv;q=0.1, */*;q=0.01": b"report,a,n\n",
}


@pytest.mark.parametrize("accept", FORMATS)
def test_formats_of_solutions(client: httpx.Client, accept: str) -> None:
    found = client.get("/queries/hot/results/2000", headers={"Accept": accept})
    assert found.content.startswith(FORMATS[accept])
    assert found.headers["content-type"].split(";")[0] in (accept, "text/csv")
    assert found.headers["vary"] == "Accept"


def test_formats_of_graphs(client: httpx.Client, run: Run) -> None:
    run.engine.register(GRAPHS, name="made")
    run.feed(10)
    last = until(lambda: last_report(client, "made"))
    for media, beginning in (
        ("text/turtle", b"<http://e/a> <http://e/q>"),
        ("application/n-quads", b"<http://e/a> <http://e/q>"),
        ("application/trig", f"<urn:levada:made:{last}> {{".encode()),
        ("application/ld+json", b"[{"),
    ):
        found = client.get(f"/queries/made/results/{last}", headers={"Accept": media})
        assert found.content.startswith(beginning), media
    several = client.get("/queries/made/results?after=0", headers={"Accept": "text/turtle"})
    assert several.status_code == 406, "several reports would be one graph"


def test_tables(client: httpx.Client) -> None:
    media = {"Accept": "application/vnd.apache.arrow.file"}
    found = client.get("/queries/hot/results?after=0", headers=media)
    assert pl.read_ipc(io.BytesIO(found.content)).height == 14


def test_what_is_refused(client: httpx.Client) -> None:
    for path, status, said in (
        ("/queries/hut", 404, "There is no query hut."),
        ("/queries/hut/results", 404, "There is no query hut."),
        ("/queries/hot/results/2500", 404, "hot has no report at 2500."),
        ("/queries/hot/results/noon", 400, "A report's time is a whole number, not noon."),
        ("/queries/hot/results?after=x", 400, "after is a whole number, not x."),
        ("/queries/hot/results?after=1&limit=0", 400, "limit is from 1 to 1000."),
        ("/queries/hot/results?limit=x", 400, "limit is a whole number, not x."),
        ("/queries/hot/results?limit=5", 400, "limit bounds the reports behind a time."),
        ("/queries/hot/results?format=cvs", 400, "There is no format of results cvs."),
        ("/queries/hot/results?format=trig", 406, "These results cannot be had as trig."),
        ("/streams/t", 404, "There is no stream t."),
        ("/events?query=hut", 404, "There is no query hut."),
        ("/nothing", 404, "There is nothing under this path."),
        ("/queries/../../etc/passwd", 404, "There is nothing under this path."),
    ):
        found = client.get(path)
        assert found.status_code == status, path
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json()["detail"] == said
    found = client.get("/queries/hot/results", headers={"Accept": "text/turtle"})
    assert found.status_code == 406
    assert "text/csv" in found.json()["available"]
    assert client.delete("/status").status_code == 405
    for path, methods in (
        ("/queries/hot", "DELETE, GET, HEAD, PUT"),
        ("/sparql", "GET, HEAD, POST"),
        ("/streams/s", "DELETE, GET, HEAD, POST, PUT"),
    ):
        other = client.request("PATCH", path)
        assert (other.status_code, other.headers["allow"]) == (405, methods)


def test_no_result_yet_says_why(run: Run, serve: Callable[..., httpx.Client]) -> None:
    never = "PREFIX : <http://e/> SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] "
    run.engine.register(never + "WHERE { WINDOW :w { ?a :never 1 } }", name="never")
    client = serve()
    until(lambda: "never" in {q["name"] for q in client.get("/status").json().get("queries", ())})
    run.feed(4)
    until(lambda: client.get("/status").json()["streams"]["s"]["elements"] == 14)
    found = client.get("/queries/never/results")
    assert found.status_code == 404
    assert found.json()["hint"].startswith("No triple of s has matched the pattern")
