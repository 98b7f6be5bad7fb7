"""One SPARQL query over some graphs, in a separate process. The script does not import Levada, so
it starts in some 50 ms. It may end at any instant, which frees CPU and memory.

    standard input    a line of JSON (``ask``), then the N-Triples of each part
    standard output   a line of JSON: {} followed by the answer, or an error

Before the query runs, the process drops the right to open files and connections, so SERVICE could
not connect either. The system ends it at its limit of time or memory, even without its parent.
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

NICENESS = 10

_NO_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
"""Characters that XML forbids and pyoxigraph writes. U+FFFD replaces them."""


def main() -> None:
    """Loads the graphs, runs the query and writes the answer."""
    asked = json.loads(sys.stdin.buffer.readline())
    subordinate_to(asked["server"])
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


def subordinate_to(parent: int) -> None:
    """Lets the engine and the server have the cores first. The process ends with its parent (on
    Linux; elsewhere its limit of CPU seconds ends it).
    """
    os.nice(NICENESS)
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call
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
