"""What one query asks of all: one with more rows than there may be, by a join or in a report, or
with more bytes in a report, is suspended and told why; an expression that engines of regular
expressions do not come back from, and a thousand reports a second, are just queries. Nine others go
on, exactly.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import httpx
import pytest

from levada import Engine
from levada.server.settings import Settings
from support.http_server import last_report, served
from support.polling import PATIENCE, until

PREFIX = "PREFIX : <http://e/> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w "
NINE = {
    f"q{k}": f"{PREFIX}SELECT ?a ?n {WINDOW}{{ ?a :p ?n }} FILTER(?n != {k}) }} ORDER BY ?n"
    for k in range(9)
}
PAIRS = f"{PREFIX}SELECT ?a ?b {WINDOW}{{ ?a :p ?x . ?b :p ?y }} }}"
WIDE = f"{PREFIX}SELECT ?a {WINDOW}{{ {' UNION '.join(['{ ?a :p ?x }'] * 30)} }} }}"
BACKTRACK = f'{PREFIX}SELECT ?a {WINDOW}{{ ?a :t ?t }} FILTER(REGEX(?t, "(a+)+$")) }}'
OFTEN = f"{PREFIX}SELECT (COUNT(*) AS ?n) {WINDOW}{{ ?a :p ?x }} }}".replace("PT1S]", "PT0.001S]")
LARGE = f"{PREFIX}SELECT ?t ?n {WINDOW}{{ ?b :t ?t . ?a :p ?n }} }}"
ASKED = {"pairs": PAIRS, "wide": WIDE, "large": LARGE, "hard": BACKTRACK, "often": OFTEN}
SUSPENDED = {
    "pairs": "1,000 rows",
    "wide": "1,200 solutions; the limit is 1,000",
    "large": "bytes; the limit is 100,000",
}
SPARQL = {"Content-Type": "application/sparql-query"}
UNTIL = 12_000
LAST = UNTIL + 950  # ms, of the elements
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def elements(first: int) -> str:
    """Twenty a second, from a second on; each has a number, and now and then a text that engines of
    regular expressions that try one way after the other do not come back from.
    """
    lines = [
        f'<http://e/a{i}> <http://e/p> "{i}"^^<{INTEGER}> {50 * i} .\n'
        for i in range(20 * first, UNTIL // 50 + 20)
    ]
    hard = f'<http://e/t> <http://e/t> "{"a" * 5000}b" {1000 * first + 500} .\n'
    return "".join([*lines[:10], hard, *lines[10:]])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*suspended")
def test_four_that_ask_for_much_and_nine_that_do_not(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with Engine(
        spark=False, checkpoint=tmp_path / "ck", keep_results=False, keep="1h", max_rows=1000,
        partitions=1, limits="bytes=100KB,reports=50000",
    ) as engine:  # fmt: skip
        engine.stream("http://e/s", tmp_path / "s")
        for name, text in NINE.items():
            engine.register(text, name=name)
        engine.start()
        with (
            served(Settings(tmp_path / "ck", port=0)) as url,
            httpx.Client(base_url=url, timeout=PATIENCE) as client,
        ):
            until(lambda: client.get("/status").status_code == 200)
            for name, text in ASKED.items():
                put = client.put(f"/queries/{name}", content=text, headers=SPARQL)
                assert put.status_code == 201, put.text
            (tmp_path / ".new").write_text(elements(0))
            (tmp_path / ".new").rename(tmp_path / "s" / "0.nt")
            until(lambda: all(last_report(client, name) == UNTIL for name in NINE))
            found = {name: reports(client, name) for name in NINE}
            for name, said in SUSPENDED.items():
                until(partial(is_suspended, client, name))
                why = client.get(f"/queries/{name}").json()["reason"]
                assert said in why
                refused = client.get(f"/queries/{name}/results")
                assert (refused.status_code, refused.json()["hint"]) == (409, why)
            hard = client.get("/queries/hard").json()
            assert (hard["state"], hard["patterns"][0]["matched_triples"]) == ("running", 1)
            until(lambda: client.get("/queries/often").json()["last_report"] == LAST)
            assert client.get("/queries/often").json()["state"] == "running"
    for k, name in enumerate(NINE):
        assert found[name] == reference(k), name


def is_suspended(client: httpx.Client, name: str) -> bool:
    return bool(client.get(f"/queries/{name}").json()["state"] == "suspended")


def reports(client: httpx.Client, name: str) -> dict[int, list[int]]:
    text = client.get(f"/queries/{name}/results?after=0").text
    return {
        line["report"]: [int(row["n"]["value"]) for row in line["results"]["bindings"]]
        for line in map(json.loads, text.splitlines())
    }


def reference(k: int) -> dict[int, list[int]]:
    """What is in [report - 2 s, report), without one number."""
    return {
        report: [i for i in range(UNTIL) if report - 2000 <= 50 * i < report and i != k]
        for report in range(1000, UNTIL + 1, 1000)
    }
