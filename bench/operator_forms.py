"""More workloads of ``operators``: what a language builds of operators, or evaluates at the intake.

Merges of windows and static data (C-SPARQL's default graph), stars of closed elements, entailed
patterns, the times of triples, EXISTS as a value, unions, a path of any length from one end. The
cases join the table of ``operator_cases``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Events
from bench.operator_cases import CASES as CASES
from bench.operator_cases import Workload, case
from bench.operator_data import Longs, Size, rows, write_triples, write_tuples

_CSPARQL = (
    "REGISTER QUERY q AS PREFIX : <http://e/> PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#> "
)
SUB_PROPERTY = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"


def _tumbling(size: Size, head: str, body: str) -> str:
    """RSP-QL over one window as long as its step."""
    window = f"[RANGE PT{size.window / 1000}S STEP PT{size.window / 1000}S]"
    return (
        f"PREFIX : <http://e/> {head} FROM NAMED WINDOW :w ON :s {window} "
        f"WHERE {{ WINDOW :w {{ {body} }} }}"
    )


def _merged(size: Size, head: str, body: str, streams: str = "s") -> str:
    """C-SPARQL over windows as long as their step."""
    window = f"[RANGE {size.window}ms TUMBLING]"
    return (
        _CSPARQL
        + head
        + "".join(f" FROM STREAM <http://e/{s}> {window}" for s in streams)
        + f" WHERE {{ {body} }}"
    )


def _write(
    folder: Path,
    stream: Events,
    objects: Longs | None = None,
    properties: str = "p",
    name: str = "s",
) -> Any:
    path = write_triples(folder / f"{name}.nt", stream, properties, objects)
    return {f"http://e/{name}": {"source": str(path), "unique": objects is None}}


def _different(size: Size, *columns: Longs) -> int:
    """Distinct rows of these columns, by tumbling window."""
    return len(np.unique(np.stack(columns), axis=1)[0])


@case("Union")
def union(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _tumbling(size, "SELECT ?s ?v", "{ ?s :p ?v } UNION { ?s :q ?v }")
    return Workload(_write(folder, s, properties="pq"), text, s.n)


@case("Merge, with static data")
def merge(folder: Path, size: Size) -> Workload:
    """Each window's triples beside static ones, of which a tenth come in the stream, too."""
    s = rows(size)
    objects = s.v.astype(np.int64) % 10
    static = tuple(
        f'<http://e/k{k}> <http://e/p> "0"^^<http://www.w3.org/2001/XMLSchema#integer>'
        for k in range(100)
    )
    window = s.ts // size.window
    shown = _different(size, s.k, objects, window) + 100 * len(np.unique(window))
    both = _different(size, *(c[(s.k < 100) & (objects == 0)] for c in (s.k, objects, window)))
    return Workload(
        _write(folder, s, objects),
        _merged(size, "SELECT ?s ?v", "?s :p ?v"),
        shown - both,
        "csparql",
        static=static,
    )


@case("Merge, of two windows")
def merge_windows(folder: Path, size: Size) -> Workload:
    """Two streams with many triples in common."""
    s = rows(size)
    objects = s.v.astype(np.int64) % 4
    streams = {}
    for i, name in enumerate("st"):
        half = Events(s.k[i::2], s.v[i::2], s.ts[i::2])
        streams |= _write(folder, half, objects[i::2] // 2, name=name)
    expected = _different(size, s.k, objects // 2, s.ts // size.window)
    return Workload(streams, _merged(size, "SELECT ?s ?v", "?s :p ?v", "st"), expected, "csparql")


@case("f:timestamp")
def came(folder: Path, size: Size) -> Workload:
    """The latest coming of triples that repeat."""
    s = rows(size)
    objects = s.v.astype(np.int64) % 4
    text = _merged(size, "SELECT ?s ?v (f:timestamp(?s, :p, ?v) AS ?t)", "?s :p ?v")
    return Workload(
        _write(folder, s, objects),
        text,
        _different(size, s.k, objects, s.ts // size.window),
        "csparql",
    )


@case("ReportJoin, EXISTS as a value")
def mark(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _tumbling(size, "SELECT ?s ?v ?e", "?s :p ?v BIND(EXISTS { ?s :q ?x } AS ?e)")
    return Workload(_write(folder, s, properties="pq"), text, -(-s.n // 2))


@case("Star")
def star(folder: Path, size: Size) -> Workload:
    """Elements of two triples, whose subjects do not come again."""
    s = rows(size)
    at = np.arange(s.n) // 2
    streams = _write(folder, Events(at, s.v, s.ts[at * 2]), properties="pq")
    streams["http://e/s"] |= {"element": "subject", "closed": "element"}
    return Workload(streams, _tumbling(size, "SELECT ?v ?x", "?s :p ?v ; :q ?x"), s.n // 2)


@case("Entailed")
def entailed(folder: Path, size: Size) -> Workload:
    """A property with ten sub-properties, two of which the stream has."""
    s = rows(size)
    static = tuple(f"<http://e/{p}> {SUB_PROPERTY} <http://e/top>" for p in "pqabcdefgh")
    text = _tumbling(size, "SELECT ?s ?v", "?s :top ?v")
    return Workload(
        _write(folder, s, properties="pq"), text, s.n, options={"entailment": "rdfs"}, static=static
    )


@case("RExcept")
def except_on_close(folder: Path, size: Size) -> Workload:
    """Whole relations at each close: the rows of half of the keys are left."""
    s = rows(size)
    window = f"[Range {size.window} ms Slide {size.window} ms]"
    text = (
        f"Rstream(Select k, v From S {window} Except "
        f"Select k, v From S {window} Where k < {size.groups // 2})"
    )
    streams = {"S": {"source": str(write_tuples(folder / "s", s, size.epoch))}}
    return Workload(streams, text, int((s.k >= size.groups // 2).sum()), "cql")
