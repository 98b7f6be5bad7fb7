"""Send graphs as GraphML, for programs that draw them: directed, ``rows`` and ``bytes`` of edges,
``cpu`` and ``received`` of nodes.

The reader accepts files with ``rows``, ``value`` or ``weight`` at each edge. It refuses a document
type, whose entities could expand without end.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from levada.core.array_types import Longs
from levada.errors import UsageError
from levada.placement.json_file import build_graph, count
from levada.placement.send_graph import SendGraph

SPACE = "http://graphml.graphdrawing.org/xmlns"
_TAG = f"{{{SPACE}}}"
_ROW_KEYS = ("rows", "value", "weight")
_TYPES = {"rows": "long", "bytes": "long", "received": "long", "cpu": "double"}


def write(graph: SendGraph) -> str:
    """Returns the text of a graph."""
    ET.register_namespace("", SPACE)
    root = ET.Element(f"{_TAG}graphml")
    edges = {"rows": graph.rows, "bytes": graph.bytes}
    nodes = {"cpu": graph.cpu, "received": graph.received}
    for kind, columns in (("node", nodes), ("edge", edges)):
        for name in [name for name, column in columns.items() if column is not None]:
            attributes = {"id": name, "for": kind, "attr.name": name, "attr.type": _TYPES[name]}
            ET.SubElement(root, f"{_TAG}key", attributes)
    body = ET.SubElement(root, f"{_TAG}graph", edgedefault="directed")
    for i, task in enumerate(graph.tasks):
        _put(ET.SubElement(body, f"{_TAG}node", id=task), nodes, i)
    for i in range(len(graph.rows)):
        source, target = graph.tasks[graph.source[i]], graph.tasks[graph.target[i]]
        _put(ET.SubElement(body, f"{_TAG}edge", source=source, target=target), edges, i)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _put(element: ET.Element, columns: dict[str, Any], i: int) -> None:
    for name, column in columns.items():
        if column is not None:
            ET.SubElement(element, f"{_TAG}data", key=name).text = str(column[i].item())


def read(text: str, path: str) -> SendGraph:
    """Parses a graph. Raises ``UsageError`` that names the wrong node or edge."""
    if "<!DOCTYPE" in text:
        raise UsageError(f"{path} has a document type, which is not read.", hint="Delete it.")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise UsageError(f"{path} is no XML: {error}.") from error
    body = root.find(f"{_TAG}graph")
    if body is None:
        raise UsageError(f"{path} is no GraphML: it has no graph.")
    if body.get("edgedefault") != "directed":
        raise UsageError(f"{path}: its graph is not directed.", hint="Say who sends to whom.")
    names = {key.get("id", ""): key.get("attr.name", "") for key in root.iter(f"{_TAG}key")}
    nodes, edges = body.findall(f"{_TAG}node"), body.findall(f"{_TAG}edge")
    place: dict[str, int] = {}
    for i, node in enumerate(nodes):
        task = node.get("id")
        if task is None or task in place:
            raise UsageError(f"{path}, node {i}: task {task} has no name, or is there twice.")
        place[task] = i
    ends = [_ends(edge, place, f"{path}, edge {i}") for i, edge in enumerate(edges)]
    edge_data = [_data(edge, names) for edge in edges]
    of_nodes = [_data(node, names) for node in nodes]
    cpu = _column(of_nodes, ("cpu",), f"{path}, node", whole=False)
    received = _column(of_nodes, ("received",), f"{path}, node")
    rows = _column(edge_data, _ROW_KEYS, f"{path}, edge")
    if rows is None and edge_data:
        raise UsageError(
            f"{path}, edge 0: it has no rows.", hint="Name them rows, value or weight."
        )
    sizes = _column(edge_data, ("bytes",), f"{path}, edge")
    row_counts = [] if rows is None else rows.tolist()
    return build_graph(
        tuple(place), ends, row_counts, path, sizes=sizes, cpu=cpu, received=received
    )


def _ends(edge: ET.Element, place: dict[str, int], where: str) -> tuple[int, int]:
    ends = edge.get("source"), edge.get("target")
    for task in ends:
        if task not in place:
            raise UsageError(f"{where}: task {task} is not among the nodes.")
    return place[str(ends[0])], place[str(ends[1])]


def _data(element: ET.Element, names: dict[str, str]) -> dict[str, str]:
    elements = element.findall(f"{_TAG}data")
    return {names.get(d.get("key", ""), ""): (d.text or "").strip() for d in elements}


def _column(
    entries: list[dict[str, str]], keys: tuple[str, ...], where: str, *, whole: bool = True
) -> Longs | Any:
    key = next((key for key in keys if any(key in entry for entry in entries)), None)
    if key is None:
        return None
    return np.array(
        [_number(e.get(key), f"{where} {i}", key, whole) for i, e in enumerate(entries)]
    )


def _number(text: str | None, where: str, key: str, whole: bool) -> float:
    try:
        value = int(text or "") if whole and (text or "").isdigit() else float(text or "")
    except ValueError:
        raise UsageError(f"{where}: {key} is {text!r}.", hint="Give a number from 0 on.") from None
    if whole:
        return count(value, where, key)
    if not 0 <= value < np.inf:
        raise UsageError(f"{where}: {key} is {text!r}.", hint="Give a number from 0 on.")
    return value
