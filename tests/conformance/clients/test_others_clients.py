"""What others have written to speak with such a server speaks with this one: clients of server-sent
events, of SPARQL, of WebSockets; Prometheus' own tool.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import connect_sse
from rdflib import Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore

from levada.core.cache_folder import cache_folder
from support.http_server import EVENTS, GRAPHS, Run, events, last_report
from support.npm_packages import packages, said, started
from support.polling import PATIENCE, until

PROMETHEUS = Path(__file__).parents[3] / "deploy/prometheus"
EVENTSOURCE = """
const { EventSource } = require("eventsource");
const source = new EventSource(process.argv[1]);
const seen = [];
source.addEventListener("report", (event) => {
  const told = JSON.parse(event.data.split("\\n")[0]);
  console.log(JSON.stringify([event.lastEventId, told.report, told.results.bindings.length]));
  seen.push(event);
  if (seen.length === Number(process.argv[2])) source.close();
});
source.addEventListener("open", () => console.error("open"));
"""
COMUNICA = """
const { QueryEngine } = require("@comunica/query-sparql");
const source = { type: "sparql", value: process.argv[1] };
(async () => {
  const engine = new QueryEngine();
  const found = await engine.queryBindings(process.argv[2], { sources: [source] });
  for await (const row of found) console.log([...row].map(([, term]) => term.value).join(" "));
  console.log(await engine.queryBoolean("ASK { GRAPH ?g { ?s ?p ?o } }", { sources: [source] }));
  const quads = await engine.queryQuads(process.argv[3], { sources: [source] });
  console.log((await quads.toArray()).length);
})();
"""
RSP_JS = """
const { RSPEngine } = require("rsp-js");
const N3 = require("n3"), { WebSocket } = require("ws");
console.debug = () => {};
const engine = new RSPEngine(`PREFIX : <http://e/>
  REGISTER RStream <out> AS
  SELECT (COUNT(*) AS ?n)
  FROM NAMED WINDOW :w ON STREAM :made [RANGE 10000 STEP 10000]
  WHERE {
    WINDOW :w { ?s ?p ?o }
  }`);
const stream = engine.getStream("http://e/made");
const windows = [], log = console.log;
console.log = () => {};
engine.register().on("RStream", (row) => {
  windows.push(Number(row.bindings.get("n").value));
  if (windows.length < 2) return;
  log(JSON.stringify({ windows, sent: Object.values(sent).map((own) => own.size) }));
  process.exit(0);
});
const sent = {}, socket = new WebSocket(process.argv[1]);
socket.onmessage = ({ data }) => {
  for (const { report, graph } of JSON.parse(data).data) {
    const quads = new N3.Parser().parse(graph);
    const window = Math.floor(report / 10000);
    const own = (sent[window] ||= new Set());  // a window is a set
    for (const quad of quads) {
      own.add([quad.subject, quad.predicate, quad.object].map((term) => term.value).join(" "));
      stream.add(quad, report);
    }
  }
};
"""


def test_curl(client: httpx.Client, run: Run) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is NOT tested: it is not there.")
    url = f"{client.base_url}/queries/hot/results?after=1000"
    command = ["curl", "-sN", url, "-H", "Accept: text/event-stream"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = (line.rstrip("\n") for line in process.stdout)
        found = events(lines, 3)
        run.feed(2)
        found += events(lines, 1)
        process.kill()
    assert [event["id"] for event in found] == ["2000", "3000", "4000", "5000"]


def test_httpx_sse(client: httpx.Client, run: Run) -> None:
    run.feed(4)
    url, headers = "/queries/hot/results", {**EVENTS, "Last-Event-ID": "2000"}
    with connect_sse(client, "GET", url, headers=headers) as source:
        told = (event for event in source.iter_sse() if event.event == "report")
        found = [(e.id, e.json()["report"]) for e in itertools.islice(told, 4)]
    assert found == [(str(t), t) for t in (3000, 4000, 5000, 6000)]


def test_eventsource_goes_on_at_another_server(
    client: httpx.Client, run: Run, serve: Callable[..., httpx.Client]
) -> None:
    folder = packages("eventsource@3.0.7")
    url = f"{client.base_url}/queries/hot/results?after=1000"
    process = started(folder, EVENTSOURCE, url, "5")
    assert process.stdout is not None
    first = [json.loads(process.stdout.readline()) for _ in range(3)]
    run.feed(4)
    out, wrong = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, wrong
    found = first + [json.loads(line) for line in out.splitlines()]
    assert [(int(id_), report) for id_, report, _ in found] == [
        (t, t) for t in range(2000, 7000, 1000)
    ]
    assert {rows for _, _, rows in found} == {4}


def made(client: httpx.Client, run: Run, elements: int) -> None:
    """A query with CONSTRUCT that has reported so many elements."""
    run.engine.register(GRAPHS, name="made")
    run.feed(elements)
    until(lambda: (last_report(client, "made") or 0) >= 500 * (elements + 9) // 1000 * 1000)


@pytest.mark.long
def test_comunica(client: httpx.Client, run: Run) -> None:
    folder = packages("@comunica/query-sparql@4.5.0")
    made(client, run, 8)
    text = "SELECT ?n { GRAPH <urn:levada:made> { ?a <http://e/q> ?n } } ORDER BY ?n"
    graph = "CONSTRUCT { ?a <http://e/r> ?n } WHERE { GRAPH ?g { ?a <http://e/q> ?n } }"
    found = said(folder, COMUNICA, f"{client.base_url}/sparql", text, graph).split()
    last = last_report(client, "made")
    assert last is not None
    assert found[:-2] == sorted(str(n) for n in range(last // 500 - 4, last // 500))
    assert found[-2:] == ["true", "4"]


def test_sparql_store_of_rdflib(client: httpx.Client, run: Run) -> None:
    made(client, run, 8)
    for method in ("GET", "POST", "POST_FORM"):
        store = SPARQLStore(f"{client.base_url}/sparql", method=method)
        text = "SELECT ?a ?n { GRAPH <urn:levada:made> { ?a <http://e/q> ?n } } ORDER BY ?n"
        rows: list[Any] = [*store.query(text)]
        assert len(rows) == 4, method
        assert rows[0][0] == URIRef("http://e/a")
        assert isinstance(rows[0][1], Literal)
        assert store.query("ASK { GRAPH <urn:levada:made> { ?s ?p ?o } }").askAnswer is True
        graph = store.query("CONSTRUCT WHERE { ?s ?p ?o }").graph
        assert graph is not None and len(graph) == 0, "the default graph is empty"


def test_rsp_js_counts_what_the_socket_sends(client: httpx.Client, run: Run) -> None:
    folder = packages("rsp-js@1.3.5", "ws@8.18.0")
    run.engine.register(GRAPHS, name="made")
    until(lambda: client.get("/queries/made").status_code == 200)
    url = f"ws://{client.base_url.netloc.decode()}/queries/made/results?after=0"
    process = started(folder, RSP_JS, url)
    run.feed(80)
    out, wrong = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, wrong[-2000:]
    found = json.loads(out.splitlines()[-1])
    assert sorted(found["windows"]) == sorted(found["sent"][:2])
    assert sum(found["windows"]) > 20


@pytest.fixture
def promtool() -> str:
    tool = shutil.which("promtool") or shutil.which(cache_folder() / "promtool")
    if tool is None:
        pytest.skip("promtool is NOT tested: it is not there (make parts, or Debian: prometheus).")
    return tool


def test_promtool(client: httpx.Client, promtool: str) -> None:
    text = client.get("/metrics").text
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    names = set(re.findall(r"levada_\w+", (PROMETHEUS / "levada.rules.yml").read_text()))
    missing = [name for name in names if name.removesuffix("_bucket") not in text]
    assert not missing, "alert rules use metrics of the server"


def test_rules_for_prometheus(promtool: str) -> None:
    for command in (
        ["check", "config", "prometheus.yml"],
        ["check", "rules", "--lint-fatal", "levada.rules.yml"],
        ["test", "rules", "levada.test.yml"],
    ):
        done = subprocess.run([promtool, *command], cwd=PROMETHEUS, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
