"""Reads a topology from a document that ``levada explain --stage topology --json`` writes.

    {"stage": "topology", "queries": ["hot"],
     "nodes": [{"stage": 1, "name": "Join", "inputs": ["Match by 0"], "streams": [], ..}, ..],
     "edges": [{"producer": "Match", "consumer": "Join", "grouping": "field(0)", "reason": ".."},
                ..],
     "tasks": {"http://e/s": null, "stage 1": 2, "output": 1}}

A document written by hand needs only names, stages, streams, edges and tasks. It may state the
``rows`` that an edge carries or a node sends to the output. It has no constants and forms of
operators, so it can be shown and placed, but not run. Invariant: an edge goes from a stage to the
same or a later one, and each stage and stream of a node has its tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from levada.core.frozen import frozen
from levada.errors import UsageError, near
from levada.plan.topology.print_topology import SharedEdge, SharedMember, SharedNode

_STAGE = re.compile(r'"stage"\s*:\s*"topology"')
_GROUPING = re.compile(r"local|home|all|field\(\d+(,\d+)*\)")
MAX_EXACT_INTEGER = 1 << 53


@frozen
class Document:
    """A topology with its load, as a JSON document describes it.

    ``tasks``: the number of tasks of each stream, stage and the output (None: one for each source
    partition). ``streams``: the streams that each node reads itself. ``rows``: the rows that each
    edge carries. ``output_rows``: the rows that each node sends to the output. None: the document
    does not state the number of rows.
    """

    queries: tuple[str, ...]
    nodes: tuple[SharedNode, ...]
    edges: tuple[SharedEdge, ...]
    tasks: Mapping[str, int | None]
    streams: tuple[tuple[str, ...], ...]
    rows: tuple[int | None, ...]
    output_rows: tuple[int | None, ...]
    source: Any


def is_document(path: Path) -> bool:
    """Whether a file is JSON of a topology, by its extension and its content."""
    if path.suffix != ".json":
        return False
    try:
        return _STAGE.search(path.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False


def read_document(path: Path) -> Document:
    """Reads a document. Raises ``UsageError`` with the file and the place of a fault."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}.") from error
    return _Reader(str(path)).document(whole)


@frozen
class _Reader:
    path: str

    def document(self, whole: Any) -> Document:
        nodes = self._list(whole, "nodes", self.path)
        edges = self._list(whole, "edges", self.path)
        places = [f"{self.path}, node {i}" for i in range(len(nodes))]
        shared_nodes = tuple(self._node(n, at) for n, at in zip(nodes, places, strict=True))
        names = [node.name for node in shared_nodes]
        for name, at in zip(names, places, strict=True):
            if names.count(name) > 1:
                raise UsageError(f"{at}: the node {name} is there twice.")
        tasks = self._tasks(whole.get("tasks"))
        stages = {node.name: node.stage for node in shared_nodes}
        streams = tuple(self._texts(n, "streams", at) for n, at in zip(nodes, places, strict=True))
        for node, node_streams, at in zip(shared_nodes, streams, places, strict=True):
            for name in [*node_streams, *([f"stage {node.stage}"] if node.stage else [])]:
                if name not in tasks:
                    hint = near(name, tasks)
                    raise UsageError(f"{at}: tasks does not say how many {name} has.", hint=hint)
        ends = [f"{self.path}, edge {i}" for i in range(len(edges))]
        return Document(
            self._texts(whole, "queries", self.path),
            shared_nodes,
            tuple(self._edge(e, stages, at) for e, at in zip(edges, ends, strict=True)),
            tasks,
            streams,
            tuple(self._count(e, at) for e, at in zip(edges, ends, strict=True)),
            tuple(self._count(n, at) for n, at in zip(nodes, places, strict=True)),
            whole,
        )

    def _node(self, node: Any, at: str) -> SharedNode:
        stage = node.get("stage") if isinstance(node, dict) else None
        if isinstance(stage, bool) or not isinstance(stage, int) or stage < 0:
            raise UsageError(f"{at}: its stage is {stage!r}.", hint="Give a whole number from 0.")
        members = tuple(self._member(m, at) for m in self._list(node, "members", at, due=False))
        flags, inputs = self._texts(node, "flags", at), self._texts(node, "inputs", at)
        layout = self._text(node, "layout", at, due=False)
        return SharedNode(stage, self._text(node, "name", at), flags, layout, inputs, members)

    def _member(self, member: Any, at: str) -> SharedMember:
        number = member.get("number", 0) if isinstance(member, dict) else None
        if not isinstance(number, int):
            raise UsageError(f"{at}: a member has the number {number!r}.")
        detail = self._text(member, "detail", at, due=False)
        return SharedMember(number, detail, self._texts(member, "queries", at))

    def _edge(self, edge: Any, stages: Mapping[str, int], at: str) -> SharedEdge:
        producer, consumer = (self._text(edge, key, at) for key in ("producer", "consumer"))
        for name in (producer, consumer):
            if name not in stages:
                raise UsageError(f"{at}: {name} is not among the nodes.", hint=near(name, stages))
        if producer == consumer:
            raise UsageError(f"{at}: it goes from {producer} to itself.")
        if stages[producer] > stages[consumer]:
            raise UsageError(
                f"{at}: it goes back, from stage {stages[producer]} to {stages[consumer]}."
            )
        grouping = self._text(edge, "grouping", at)
        if not _GROUPING.fullmatch(grouping):
            hint = "Say local, home, all or field(0,1)."
            raise UsageError(f"{at}: there is no grouping {grouping}.", hint=hint)
        return SharedEdge(producer, consumer, grouping, self._text(edge, "reason", at, due=False))

    def _tasks(self, tasks: Any) -> dict[str, int | None]:
        if not isinstance(tasks, dict):
            hint = 'Give such as {"http://e/s": null, "stage 1": 2, "output": 1}.'
            raise UsageError(f"{self.path} does not say which tasks there are.", hint=hint)
        for name, many in tasks.items():
            whole = isinstance(many, int) and not isinstance(many, bool) and 1 <= many <= 65536
            if many is not None and not whole:
                hint = "Give a whole number from 1 to 65536, the number of groups."
                raise UsageError(f"{self.path}: tasks has {many!r} for {name}.", hint=hint)
        return tasks

    def _count(self, entry: dict[str, Any], at: str) -> int | None:
        rows = entry.get("rows")
        whole = (
            isinstance(rows, int) and not isinstance(rows, bool) and 0 <= rows < MAX_EXACT_INTEGER
        )
        if rows is not None and not whole:
            hint = "Give a whole number from 0 on, below 2^53."
            raise UsageError(f"{at}: rows is {rows!r}.", hint=hint)
        return rows

    def _list(self, entry: Any, key: str, at: str, *, due: bool = True) -> list[Any]:
        items = entry.get(key, None if due else []) if isinstance(entry, dict) else None
        if not isinstance(items, list):
            raise UsageError(f"{at} has no list of {key}, as a topology's document has.")
        return items

    def _text(self, entry: Any, key: str, at: str, *, due: bool = True) -> str:
        text = entry.get(key, None if due else "") if isinstance(entry, dict) else None
        if not isinstance(text, str):
            raise UsageError(f"{at}: its {key} is {text!r}.", hint="Give a text.")
        return text

    def _texts(self, entry: Any, key: str, at: str) -> tuple[str, ...]:
        for name in (texts := self._list(entry, key, at, due=False)):
            if not isinstance(name, str):
                raise UsageError(f"{at}: {key} has {name!r}.", hint="Give texts.")
        return tuple(texts)
