"""One SPARQL query over some graphs, in a process of its own: a script without Levada, so that it
starts in some 50 ms. It may be ended at any instant, which frees the processor and the memory.

    standard input    a line of JSON (``ask``), and behind it the N-Triples of each part
    standard output   a line of JSON: {} and behind it the answer; or what is wrong

Before the query runs it gives up what it could harm with: it can open nothing any more, no file and
no connection (so that SERVICE would reach nobody, if a text came here that has one), and the
system ends it when its time or its memory is over, whatever becomes of who started it.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import sys
from typing import Any

import pyoxigraph as ox

RESULTS = {
    "json": ox.QueryResultsFormat.JSON,
    "xml": ox.QueryResultsFormat.XML,
    "csv": ox.QueryResultsFormat.CSV,
    "tsv": ox.QueryResultsFormat.TSV,
}
GRAPHS = {
    "ttl": ox.RdfFormat.TURTLE,
    "nt": ox.RdfFormat.N_TRIPLES,
    "rdf": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}

_NO_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
"""Characters that XML has not, which pyoxigraph writes: U+FFFD is there for them."""


def main() -> None:
    """Loads, asks, answers."""
    asked = json.loads(sys.stdin.buffer.readline())
    end_with(asked["server"])
    resource.setrlimit(resource.RLIMIT_CPU, (asked["seconds"], asked["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (asked["memory"], asked["memory"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    store = ox.Store()
    for graph, size in asked["parts"]:
        data = sys.stdin.buffer.read(size)
        store.load(data, ox.RdfFormat.N_TRIPLES, to_graph=_graph(graph))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    try:
        answer, wrong = _answer(store, asked), None
    except SyntaxError as error:
        answer, wrong = b"", {"told": str(error.msg), "line": error.lineno, "column": error.offset}
    except (OSError, RuntimeError, ValueError) as error:
        answer, wrong = b"", {"told": str(error)}
    out = sys.stdout.buffer
    out.write(json.dumps(wrong or {}).encode() + b"\n" + answer)
    out.flush()


def end_with(parent: int) -> None:
    """Has the system end this process when its parent ends, however that ends (on Linux; elsewhere
    its seconds of CPU end it).
    """
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it has ended before
            sys.exit(1)


def _answer(store: ox.Store, asked: dict[str, Any]) -> bytes:
    said: dict[str, Any] = {"base_iri": asked["base"]}
    if asked["default"] is not None:
        said["default_graph"] = [ox.NamedNode(graph) for graph in asked["default"]]
        said["named_graphs"] = [ox.NamedNode(graph) for graph in asked["named"]]
    results = store.query(asked["query"], **said)
    form = asked["form"]
    if isinstance(results, ox.QueryTriples):
        answer = results.serialize(format=GRAPHS[form]) or b""
    else:
        answer = results.serialize(format=RESULTS[form]) or b""
    return _NO_XML.sub(b"\xef\xbf\xbd", answer) if form in ("xml", "rdf") else answer


def _graph(name: str | None) -> ox.NamedNode | ox.DefaultGraph:
    return ox.DefaultGraph() if name is None else ox.NamedNode(name)


if __name__ == "__main__":
    main()
