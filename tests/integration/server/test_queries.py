"""Queries over HTTP: put once, replaced knowingly, refused with a place; texts looked at."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from levada.server.settings import Limits
from support.http_server import TEXT, Run, last_report
from support.polling import until

SPARQL = {"Content-Type": "application/sparql-query"}
WARM = TEXT.replace("PT2S", "PT4S")


def test_a_query_is_put_once(client: httpx.Client, run: Run) -> None:
    made = client.put("/queries/warm", content=WARM, headers=SPARQL)
    assert made.status_code == 201
    assert made.headers["location"] == "/queries/warm"
    assert made.json()["messages"][0].startswith("warm: added, from ")
    again = client.put("/queries/warm", content=WARM, headers=SPARQL)
    assert (again.status_code, again.headers["etag"]) == (200, made.headers["etag"])
    run.feed(10)
    until(lambda: last_report(client, "warm"))
    other = client.put("/queries/warm", content=TEXT, headers=SPARQL)
    assert other.status_code == 409
    assert made.headers["etag"] in other.json()["hint"]
    wrong = client.put("/queries/warm", content=TEXT, headers={**SPARQL, "If-Match": '"x"'})
    assert wrong.status_code == 412
    replaced = client.put(
        "/queries/warm", content=TEXT, headers={**SPARQL, "If-Match": made.headers["etag"]}
    )
    assert replaced.status_code == 200
    assert client.get("/queries/warm").json()["text"] == TEXT
    assert client.delete("/queries/warm").status_code == 200
    until(lambda: client.get("/queries/warm").status_code == 404)
    assert client.delete("/queries/warm").status_code == 404


def test_put_query_answers_with_warnings_of_the_text(client: httpx.Client) -> None:
    where, end = WARM.rindex("WHERE"), "GROUP BY ?s HAVING (?n > 1)"
    windows = WARM[WARM.index("FROM") : where]
    head = WARM[: WARM.index("SELECT")] + "SELECT ?s (COUNT(*) AS ?n) " + windows
    text = head + "WHERE { WINDOW :w { ?s ?p ?o } } " + end
    made = client.put("/queries/many", content=text, headers=SPARQL)
    assert made.status_code == 201, made.text
    assert made.json()["more_warnings"] == 0
    (warning,) = made.json()["warnings"]
    assert warning["message"] == "?n stands in HAVING, and nothing binds it there."
    assert warning["hint"].startswith("SELECT computes ?n after HAVING")
    assert client.put("/queries/warm", content=WARM, headers=SPARQL).json()["warnings"] == []


def test_a_text_that_is_looked_at_takes_no_word(client: httpx.Client) -> None:
    """Nor does a query that has been dropped: ``:s`` is the stream of whoever says so first."""
    other = TEXT.replace(":s", "<http://other/s>")
    assert client.delete("/queries/hot").status_code == 200
    for path in ("/check", "/explain"):
        assert client.post(path, content=other, headers=SPARQL).status_code == 200
    for text, name in ((WARM, "warm"), (other, "other"), (TEXT, "hot")):
        put = client.put(f"/queries/{name}", content=text, headers=SPARQL)
        assert put.status_code == 201, put.text
        assert client.delete(f"/queries/{name}").status_code == 200


def test_a_replacement_that_is_refused_leaves_the_query(client: httpx.Client) -> None:
    before = client.get("/queries/hot").headers["etag"]
    wrong = TEXT.replace(":s", ":t")
    found = client.put("/queries/hot", content=wrong, headers={**SPARQL, "If-Match": "*"})
    assert found.status_code == 400
    assert found.json()["detail"] == "There is no stream http://e/t."
    assert client.get("/queries/hot").headers["etag"] == before


def test_refusals_have_a_place(client: httpx.Client) -> None:
    text = TEXT.replace("WHERE", "WERE")
    for found in (
        client.put("/queries/bad", content=text, headers=SPARQL).json(),
        client.post("/check", content=text, headers=SPARQL).json()["errors"][0],
    ):
        assert (found["line"], found["column"]) == (3, 1)
        assert found["hint"] == "Did you mean WHERE?"
        assert "WHERE" in found["expected"]
    bytes_ = client.put("/queries/bad", content=b"SELECT\n \xff", headers=SPARQL).json()
    assert (bytes_["detail"], bytes_["line"], bytes_["column"]) == ("The text is not UTF-8.", 2, 2)
    for name, content, headers, status in (
        ("bad", b"", SPARQL, 400),
        ("bad", TEXT, {"Content-Type": "image/png"}, 415),
        ("bad?dialect=latin", TEXT, SPARQL, 400),
        ("bad?report=noon", TEXT, SPARQL, 400),
        ("bad?empty_reports=yes", TEXT, SPARQL, 400),
        ("bad?out=/tmp/x", TEXT, SPARQL, 400),
        ("late", TEXT, SPARQL, 400),
        ("bad", TEXT + "#" * (1 << 20), SPARQL, 413),
    ):
        assert client.put(f"/queries/{name}", content=content, headers=headers).status_code == (
            status
        )


def test_what_would_open_something_is_refused(client: httpx.Client) -> None:
    inner = "{ ?a :p ?n } SERVICE <http://127.0.0.1:9/> { ?a :p ?n }"
    found = client.put("/queries/bad", content=TEXT.replace("{ ?a :p ?n }", inner), headers=SPARQL)
    assert (found.status_code, "SERVICE" in found.json()["detail"]) == (400, True)
    text = TEXT.replace("FROM NAMED", "FROM <file:///etc/passwd> FROM NAMED")
    assert client.put("/queries/bad", content=text, headers=SPARQL).status_code == 400


def test_a_text_is_looked_at(client: httpx.Client) -> None:
    found = client.post("/check", content=TEXT, headers=SPARQL).json()
    assert (found["ok"], found["form"], found["errors"]) == (True, "SELECT", [])
    assert found["windows"] == ["http://e/s [RANGE PT2S STEP PT1S close [)]"]
    slip = TEXT.replace("?a ?n", "?a ?m")
    (warned,) = client.post("/check", content=slip, headers=SPARQL).json()["warnings"]
    assert (warned["line"], "?m" in warned["message"]) == (2, True)
    physical = client.post("/explain", content=TEXT, headers=SPARQL).text
    algebra = client.post("/explain?stage=algebra", content=TEXT, headers=SPARQL).text
    assert "match" in physical.lower()
    assert algebra.startswith("SELECT (?a ?n)")
    assert client.post("/explain?stage=x", content=TEXT, headers=SPARQL).status_code == 400


def test_a_text_with_many_patterns_is_not_planned(
    run: Run, serve: Callable[..., httpx.Client]
) -> None:
    """Some thousand of them would keep the server, and the engine's epochs, for minutes."""
    client = serve(Limits(patterns=3))
    until(lambda: last_report(client) == 4000)
    for n, name in ((3, "few"), (4, "many")):
        text = TEXT.replace("?a :p ?n", " . ".join(f"?a :p{i} ?n{i}" for i in range(n)))
        put = client.put(f"/queries/{name}", content=text, headers=SPARQL)
        checked = client.post("/check", content=text, headers=SPARQL).json()
        explained = client.post("/explain", content=text, headers=SPARQL)
        found = (put.status_code, checked["ok"], explained.status_code)
        assert found == ((201, True, 200) if n == 3 else (400, False, 400))
    said = "The text has 4 patterns, and the server takes at most 3."
    assert put.json()["detail"] == checked["errors"][0]["message"] == said
    for path in (":p1|:p2|:p3|:p4", ":p1/^:p2/:p3/:p4", "(:p1|:p2)/(:p3|:p4)"):
        text = TEXT.replace("?a :p ?n", f"?a {path} ?n")
        found = client.post("/check", content=text, headers=SPARQL).json()
        assert found["errors"][0]["message"] == said
    terms = ", ".join(map(str, range(12)))
    for more in (f"FILTER(?n NOT IN ({terms}))", f"FILTER(COALESCE({terms}, 12))"):
        text = TEXT.replace("?a :p ?n", f"?a :p ?n {more}")
        found = client.post("/check", content=text, headers=SPARQL).json()
        assert found["errors"][0]["message"] == (
            "The text has 13 operands in expressions, and the server takes at most 12."
        )
    tables = "Select a.k From t [Range 5 s] as a, t [Range 5 s] as b, t as c, t as d"
    found = client.post("/check?dialect=cql", content=tables, headers=SPARQL).json()
    assert found["errors"][0]["message"] == said


def test_cql_over_http(client: httpx.Client) -> None:
    found = client.post("/check?dialect=cql", content="Select k From A [Range 5 s", headers=SPARQL)
    assert found.json()["errors"][0]["line"] == 1


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_read_only_changes_nothing(serve: Callable[..., httpx.Client], method: str) -> None:
    client = serve(read_only=True)
    until(lambda: client.get("/queries/hot").status_code == 200)
    found = client.request(
        method, "/queries/hot", content=WARM, headers={**SPARQL, "If-Match": "*"}
    )
    assert (found.status_code, found.json()["detail"]) == (403, "This server is read-only.")


def test_no_engine_is_said(client: httpx.Client, run: Run) -> None:
    run.engine.stop()
    run.engine._close()
    found = client.put("/queries/warm", content=WARM, headers=SPARQL)
    assert found.status_code == 409
    assert found.json()["detail"].startswith("No engine runs on the checkpoint")
    assert client.get("/health").status_code == 503
    assert client.get("/queries/hot/results").status_code == 200


def test_what_nothing_looks_at_is_told(client: httpx.Client) -> None:
    found = client.get("/queries/hot/results", params={"limt": "5"})
    assert found.status_code == 400
    assert found.json()["detail"] == "GET /queries/{query}/results has no parameter limt."
    assert found.json()["hint"] == "Did you mean limit?"
    assert client.get("/sparql", params={"query": "ASK {}", "output": "json"}).status_code == 200
