"""What a request says of itself: which answer it wants (RFC 9110, 12.5.1), which content it has in
mind (13.1), under which name; names that are not ASCII.
"""

from __future__ import annotations

from urllib.parse import unquote

import httpx

from levada.engine.query_request import QueryRequest
from levada.plan.logical.ontology_schema import Regime
from levada.plan.logical.query_options import QueryOptions
from levada.server.checkpoint_catalog import Text
from support.http_server import TEXT, Run, last_report
from support.polling import until

SPARQL = {"Content-Type": "application/sparql-query"}
NDJSON, JSON, CSV = "application/x-ndjson", "application/sparql-results+json", "text/csv"


WANTED = (
    ("*/*", NDJSON),
    ("*/*, application/x-ndjson;q=0, application/ndjson;q=0", JSON),
    ("text/*", CSV),
    ("text/*, text/csv;q=0", "text/tab-separated-values"),
    ("text/csv;q=0.2, application/*;q=0.1", CSV),
    ("TEXT/CSV ; Q=0.5 , */*;q=0.4", CSV),
    ("text/event-stream;q=0.1, text/csv", CSV),
    ("text/event-stream;q=0, */*", NDJSON),
    ("text/csv;q=nan, application/sparql-results+json", JSON),
    (",,;q=1,", NDJSON),
    ("text/csv;header=absent", CSV),
    ("text/csv;q=0", None),
    ("*/*;q=0", None),
    ("*;q=1", None),
    ("text/html", None),
)


def test_which_answer_is_wanted(client: httpx.Client) -> None:
    for accept, found in WANTED:
        answer = client.get("/queries/hot/results/2000", headers={"Accept": accept})
        assert answer.status_code == (406 if found is None else 200), (accept, answer.text)
        said = answer.headers["content-type"].partition(";")[0]
        assert said == (found or "application/problem+json"), accept
        live = client.get("/queries/hot/results", headers={"Accept": accept})
        assert live.headers["content-type"].partition(";")[0] == said, accept


def test_an_etag_is_named_weakly_or_in_a_list(client: httpx.Client) -> None:
    path = "/queries/hot/results/2000"
    tag = client.get(path).headers["etag"]
    for said in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        assert client.get(path, headers={"If-None-Match": said}).status_code == 304, said
    assert client.get(path, headers={"If-None-Match": '"x"'}).status_code == 200
    own = client.get("/queries/hot").headers["etag"]
    warm = TEXT.replace("PT2S", "PT4S")
    for said, status in ((f"W/{own}", 412), ('"x"', 412), (f'"x", {own}', 200)):
        headers = {**SPARQL, "If-Match": said}
        assert client.put("/queries/hot", content=warm, headers=headers).status_code == status


def test_other_options_are_another_query(client: httpx.Client) -> None:
    made = client.put("/queries/warm", content=TEXT, headers=SPARQL)
    other = client.put("/queries/warm?report=change", content=TEXT, headers=SPARQL)
    assert (other.status_code, "other options" in other.json()["detail"]) == (409, True)
    match = {**SPARQL, "If-Match": made.headers["etag"]}
    put = client.put("/queries/warm?report=change", content=TEXT, headers=match)
    assert put.status_code == 200
    assert put.headers["etag"] != made.headers["etag"]
    again = client.put("/queries/warm?report=change", content=TEXT, headers=SPARQL)
    assert (again.status_code, again.headers["etag"]) == (200, put.headers["etag"])


def test_who_says_no_entailment_has_the_engines() -> None:
    there = Text("q", "rspql", TEXT, str(QueryOptions(entailment=Regime.RDFS)))
    assert there.is_as(QueryRequest(TEXT, "q"))
    assert there.is_as(QueryRequest(TEXT, "q", options=QueryOptions(entailment=Regime.RDFS)))
    assert not there.is_as(QueryRequest(TEXT, "q", options=QueryOptions(entailment=Regime.NONE)))
    assert not there.is_as(QueryRequest(TEXT, "q", options=QueryOptions(t0=1)))


def test_names_in_other_scripts(client: httpx.Client, run: Run) -> None:
    name = "\u65e5\u672c_gr\u00f6\u00dfe"
    made = client.put(f"/queries/{name}", content=TEXT, headers=SPARQL)
    assert made.status_code == 201, made.text
    assert unquote(made.headers["location"]) == f"/queries/{name}"
    run.feed(10)
    until(lambda: (last_report(client, name) or 0) > 7000)
    found = client.get(f"/queries/{name}/results?after=0&limit=1")
    assert client.get(found.links["next"]["url"]).status_code == 200
    stream = client.put(f"/streams/http://e/{name}")
    assert stream.status_code == 201, stream.text
    assert client.get(stream.headers["location"]).json()["name"] == f"http://e/{name}"


def test_names_that_are_none(client: httpx.Client) -> None:
    for name in ("a%20b", "a%0d%0ab", "%E2%80%AEa", "a%00", "x" * 300, ".a", "late"):
        found = client.put(f"/queries/{name}", content=TEXT, headers=SPARQL)
        assert found.status_code in (400, 404), name
        assert found.headers["content-type"] == "application/problem+json"
    for name in ("a%20b", "http://e/a%0d%0ab", "1", "", "x" * 600, "../../x"):
        found = client.put(f"/streams/{name}")
        assert found.status_code in (400, 404), name
        assert found.headers["content-type"] == "application/problem+json"
