"""The workloads of ``operators``: for each operator a query in which it does most of the work, and
the number of its results.

A case is a function of a folder and a size. It writes its streams and says what to ask and how many
results are right, counted by NumPy from the generator's columns. Windows of what is evaluated anew
at each report tumble, so that each row is in one report; those of what follows changes have a step
that stays as it is when the window grows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Events, groups_at_closes, pairs_within
from bench.operator_data import Longs, Size, per_window, rows, within, write_triples, write_tuples

STEP = 10_000
SILENCE = 5_000


@dataclass(frozen=True, slots=True)
class Workload:
    """What a case asks, of which streams, and how many results are right."""

    streams: Mapping[str, Mapping[str, Any]]
    text: str
    expected: int
    dialect: str = "rspql"
    options: Mapping[str, Any] = field(default_factory=dict)
    static: tuple[str, ...] = ()


Case = Callable[[Path, Size], Workload]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    """Puts a case into the table under the operator's name."""

    def put(made: Case) -> Case:
        CASES[name] = made
        return made

    return put


def _window(size: Size, step: int) -> str:
    return f"[RANGE PT{size.window / 1000}S STEP PT{step / 1000}S]"


def _step(size: Size) -> int:
    """10 s, or the whole window where that is shorter."""
    return min(STEP, size.window)


def _asked(
    size: Size, head: str, body: str, tail: str = "", window: str = "", output: str = "RSTREAM"
) -> str:
    """A query over one window of triples, which tumbles unless it is given."""
    clause = window or _window(size, size.window)
    return (
        f"PREFIX : <http://e/> REGISTER {output} :out AS {head} "
        f"FROM NAMED WINDOW :w ON :s {clause} WHERE {{ {body} }} {tail}"
    )


def _triples(
    folder: Path, stream: Events, properties: str = "p", objects: Longs | None = None, to: str = ""
) -> Any:
    path = write_triples(folder / "s.nt", stream, properties, objects, to)
    return {"http://e/s": {"source": str(path), "unique": True}}


def _tuples(folder: Path, size: Size, stream: Events) -> Any:
    return {"S": {"source": str(write_tuples(folder / "s", stream, size.epoch))}}


@case("Match")
def match(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(size, "SELECT ?v", "WINDOW :w { :k0 :p ?v }")
    return Workload(_triples(folder, s), text, int((s.k == 0).sum()))


@case("Filter")
def filter_(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(size, "SELECT ?v", "WINDOW :w { ?s :p ?v FILTER(?v * 2 + 1 < 2000) }")
    return Workload(_triples(folder, s), text, int((s.v * 2 + 1 < 2000).sum()))


@case("Filter, REGEX")
def regex(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(size, "SELECT ?v", 'WINDOW :w { ?s :p ?v FILTER(REGEX(STR(?s), "/k[0-9]*0$")) }')
    return Workload(_triples(folder, s), text, int((s.k % 10 == 0).sum()))


@case("Extend")
def extend(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(
        size, "SELECT ?w", "WINDOW :w { ?s :p ?v } BIND(?v * 2 + 1 AS ?w) FILTER(?w < 2000)"
    )
    return Workload(_triples(folder, s), text, int((s.v * 2 + 1 < 2000).sum()))


@case("Extend, text")
def extend_text(folder: Path, size: Size) -> Workload:
    s = rows(size)
    body = (
        'WINDOW :w { ?s :p ?v } BIND(CONCAT(STR(?s), "-", STR(?v)) AS ?t) '
        'FILTER(STRENDS(?t, "000"))'
    )
    return Workload(
        _triples(folder, s), _asked(size, "SELECT ?t", body), int((s.v % 1000 == 0)[1:].sum())
    )


@case("Occur")
def occur(folder: Path, size: Size) -> Workload:
    """Triples that repeat: each is new where none was in the ten (a hundred) slices before."""
    s = rows(size)
    step, objects = _step(size), (s.v % 4).astype(np.int64)
    streams = _triples(folder, s, objects=objects)
    streams["http://e/s"].pop("unique")
    text = _asked(
        size, "SELECT ?s ?o", "WINDOW :w { ?s :p ?o }", window=_window(size, step), output="ISTREAM"
    )
    again = within(s.k * 4 + objects, s.ts // step, size.window // step)
    return Workload(streams, text, s.n - again)


def _sides(size: Size, keys: int) -> tuple[Events, Events, Events]:
    """The rows with so many keys, and the two halves that come in turn."""
    s = rows(Size(size.epoch, size.window, keys, size.measured))
    return s, Events(s.k[0::2], s.v[0::2], s.ts[0::2]), Events(s.k[1::2], s.v[1::2], s.ts[1::2])


def _many(size: Size) -> int:
    """As many keys as a window has rows, times what the groups have grown: a partner a row."""
    return size.window * size.groups // 1000


@case("Join")
def join(folder: Path, size: Size) -> Workload:
    _, a, b = _sides(size, _many(size))
    streams = {
        "A": write_tuples(folder / "a", a, size.epoch // 2),
        "B": write_tuples(folder / "b", b, size.epoch // 2),
    }
    window = f"[Range {size.window} ms]"
    text = f"Istream(Select A.k, A.v, B.v From A {window}, B {window} Where A.k = B.k)"
    count = pairs_within(a, b, size.window - 1)
    return Workload({name: {"source": str(at)} for name, at in streams.items()}, text, count, "cql")


@case("Join, of triples")
def join_triples(folder: Path, size: Size) -> Workload:
    s, a, b = _sides(size, _many(size))
    window = f"[RANGE PT{size.window / 1000}S]"
    text = _asked(
        size, "SELECT ?s ?v ?x", "WINDOW :w { ?s :p ?v ; :q ?x }", window=window, output="ISTREAM"
    )
    return Workload(_triples(folder, s, "pq"), text, pairs_within(a, b, size.window - 1))


@case("Join, with static data")
def join_static(folder: Path, size: Size) -> Workload:
    s = rows(size)
    static = tuple(f'<http://e/k{k}> <http://e/name> "{k}"' for k in range(size.groups))
    text = _asked(size, "SELECT ?n ?v", "WINDOW :w { ?s :p ?v } ?s :name ?n", output="ISTREAM")
    return Workload(_triples(folder, s), text, s.n, static=static)


@case("CountWindow")
def count_window(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = f"Dstream(Select k, v From S [Rows {size.window}])"
    return Workload(_tuples(folder, size, s), text, max(s.n - size.window, 0), "cql")


@case("CountWindow and Select, of triples")
def count_window_of_triples(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(
        size,
        "SELECT ?s ?v",
        "WINDOW :w { ?s :p ?v }",
        window=f"[TRIPLES {size.window}]",
        output="DSTREAM",
    )
    return Workload(_triples(folder, s), text, max(s.n - size.window, 0))


@case("CountWindow, by key")
def count_window_by_key(folder: Path, size: Size) -> Workload:
    s = rows(size)
    each = max(size.window // size.groups, 1)
    text = f"Dstream(Select k, v From S [Partition By k Rows {each}])"
    left = np.maximum(np.bincount(s.k) - each, 0)
    return Workload(_tuples(folder, size, s), text, int(left.sum()), "cql")


def _sessions(size: Size) -> Events:
    """Sessions of a window's rows each, some silence between; one is longest at the end."""
    s = rows(size)
    number = (np.arange(s.n) - size.until + size.epoch // 2) // size.window
    return Events(s.k, s.v, s.ts + (number - number[0]) * SILENCE)


@case("Session")
def session(folder: Path, size: Size) -> Workload:
    s = _sessions(size)
    text = _asked(
        size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v }", window=f"[SESSION PT{SILENCE / 1000}S]"
    )
    return Workload(_triples(folder, s), text, s.n)


@case("Session, on change")
def session_on_change(folder: Path, size: Size) -> Workload:
    s = _sessions(size)
    window = f"[SESSION PT{SILENCE / 1000}S]"
    text = _asked(size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v }", window=window, output="ISTREAM")
    return Workload(_triples(folder, s), text, s.n, options={"report": "change"})


@case("SubqueryWindow")
def lift(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = (
        "Register Stream V (k Integer, v Float) As Istream(Select k, v From S [Now] Where v >= 0);"
        f"Istream(Select k, v From V [Range {size.window} ms])"
    )
    return Workload(_tuples(folder, size, s), text, s.n, "cql")


@case("Report")
def report(folder: Path, size: Size) -> Workload:
    s = rows(size)
    return Workload(
        _triples(folder, s), _asked(size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v }"), s.n
    )


@case("Panes")
def panes(folder: Path, size: Size) -> Workload:
    s = rows(size)
    step = _step(size)
    text = (
        f"Rstream(Select k, Min(v), Avg(v) From S "
        f"[Range {size.window} ms Slide {step} ms] Group By k)"
    )
    return Workload(_tuples(folder, size, s), text, groups_at_closes(s, size.window, step), "cql")


@case("ReportJoin, inner")
def rjoin(folder: Path, size: Size) -> Workload:
    """Each key's greatest value, met with the rows that have it."""
    s = rows(size)
    inner = "{ SELECT ?s (MAX(?x) AS ?v) WHERE { WINDOW :w { ?s :p ?x } } GROUP BY ?s }"
    text = _asked(size, "SELECT ?s ?v", inner + " WINDOW :w { ?s :p ?v }")
    return Workload(_triples(folder, s), text, per_window(s.k, s.ts, size.window))


def _by_window(size: Size, s: Events) -> tuple[Longs, Longs]:
    """Of each key and tumbling window with rows, how many of either property."""
    _, code = np.unique(s.k + s.ts // size.window * (int(s.k.max()) + 1), return_inverse=True)
    return np.bincount(code[0::2], minlength=code.max() + 1), np.bincount(
        code[1::2], minlength=code.max() + 1
    )


@case("ReportJoin, left")
def rleft(folder: Path, size: Size) -> Workload:
    s, _, _ = _sides(size, _many(size))
    p, q = _by_window(size, s)
    text = _asked(size, "SELECT ?s ?v ?x", "WINDOW :w { ?s :p ?v OPTIONAL { ?s :q ?x } }")
    return Workload(_triples(folder, s, "pq"), text, int((p * np.maximum(q, 1)).sum()))


@case("ReportJoin, MINUS")
def minus(folder: Path, size: Size) -> Workload:
    s, _, _ = _sides(size, _many(size))
    p, q = _by_window(size, s)
    text = _asked(size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v MINUS { ?s :q ?x } }")
    return Workload(_triples(folder, s, "pq"), text, int(p[q == 0].sum()))


@case("ReportJoin, EXISTS")
def exists(folder: Path, size: Size) -> Workload:
    s, _, _ = _sides(size, _many(size))
    text = _asked(
        size,
        "SELECT ?s ?v",
        "WINDOW :w { ?s :p ?v FILTER EXISTS { ?s :q ?x FILTER(?x > ?v - 1) } }",
    )
    return Workload(_triples(folder, s, "pq"), text, _greater(size, s))


def _greater(size: Size, s: Events) -> int:
    """The p rows with a q row of their key and window behind them: a greater one; values grow."""
    code = s.k + s.ts // size.window * (int(s.k.max()) + 1)
    last_q = np.full(int(code.max()) + 1, -1, np.int64)
    np.maximum.at(last_q, code[1::2], np.arange(s.n)[1::2])
    return int((last_q[code[0::2]] > np.arange(s.n)[0::2]).sum())


@case("ReportJoin, of static data")
def minus_static(folder: Path, size: Size) -> Workload:
    s = rows(size)
    static = tuple(f'<http://e/k{k}> <http://e/name> "{k}"' for k in range(size.groups // 2))
    text = _asked(size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v } MINUS { ?s :name ?n }")
    return Workload(_triples(folder, s), text, int((s.k >= size.groups // 2).sum()), static=static)


@case("StaticSubplan")
def once(folder: Path, size: Size) -> Workload:
    s = rows(size)
    static = tuple(f'<http://e/k{k % 1000}> <http://e/name> "{k}"' for k in range(size.groups))
    group = (
        "WINDOW :w { ?s :p ?v } { SELECT ?s (COUNT(?n) AS ?c) WHERE { ?s :name ?n } GROUP BY ?s }"
    )
    return Workload(
        _triples(folder, s),
        _asked(size, "SELECT ?s ?c", group),
        int((s.k < 1000).sum()),
        static=static,
    )


@case("RGroup")
def rgroup(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(
        size, "SELECT ?s (COUNT(DISTINCT ?v) AS ?n)", "WINDOW :w { ?s :p ?v }", "GROUP BY ?s"
    )
    return Workload(_triples(folder, s), text, per_window(s.k, s.ts, size.window))


@case("RGroup, GROUP_CONCAT")
def concat(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(
        size, "SELECT ?s (GROUP_CONCAT(STR(?v)) AS ?c)", "WINDOW :w { ?s :p ?v }", "GROUP BY ?s"
    )
    return Workload(_triples(folder, s), text, per_window(s.k, s.ts, size.window))


@case("RDistinct")
def rdistinct(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(size, "SELECT DISTINCT ?s", "WINDOW :w { ?s :p ?v }")
    return Workload(_triples(folder, s), text, per_window(s.k, s.ts, size.window))


@case("ROrder")
def rorder(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v }", "ORDER BY DESC(?v) LIMIT 10")
    return Workload(
        _triples(folder, s), text, int(np.minimum(np.bincount(s.ts // size.window), 10).sum())
    )


@case("Closure")
def closure(folder: Path, size: Size) -> Workload:
    """Chains of four edges; each lies in one window."""
    s = rows(size)
    at = np.arange(s.n)
    node = at // 4 * 5 + at % 4
    chains, rest = divmod(s.n, 4)
    text = _asked(size, "SELECT ?a ?b", "WINDOW :w { ?a :p+ ?b }")
    streams = _triples(folder, Events(node, s.v, s.ts), objects=node + 1, to="n")
    return Workload(streams, text, chains * 10 + rest * (rest + 1) // 2)


@case("Closure, from a pattern")
def closure_seeded(folder: Path, size: Size) -> Workload:
    """Chains of ten edges, the first of another property; each lies in one window. Nine paths of
    the 45 begin behind the first edge.
    """
    s = rows(size)
    node = np.arange(s.n) // 10 * 11 + np.arange(s.n) % 10
    streams = _triples(folder, Events(node, s.v, s.ts), "q" + "p" * 9, objects=node + 1, to="n")
    text = _asked(size, "SELECT ?a ?b", "WINDOW :w { ?a :q ?x . ?x :p+ ?b }")
    return Workload(streams, text, s.n // 10 * 9 + max(s.n % 10 - 1, 0))


@case("Deltas, Running and Net")
def running(folder: Path, size: Size) -> Workload:
    """A group's row is new where a row of it comes, and where one leaves while others stay and none
    comes.
    """
    s = rows(size)
    text = f"Istream(Select k, Count(*), Sum(v) From S [Range {size.window} ms] Group By k)"
    k, left = s.k[: -size.window], s.k[size.window :]
    # alone, and replaced at once
    both = within(s.k, s.ts, size.window) - within(s.k, s.ts, size.window - 1)
    replaced = int(np.count_nonzero(k == left)) - both
    return Workload(
        _tuples(folder, size, s), text, s.n + within(s.k, s.ts, size.window - 1) - replaced, "cql"
    )


@case("Running, Max")
def running_max(folder: Path, size: Size) -> Workload:
    """The values grow, so each row that comes is its group's greatest."""
    s = rows(size)
    text = f"Istream(Select k, Max(v) From S [Range {size.window} ms] Group By k)"
    return Workload(_tuples(folder, size, s), text, s.n, "cql")


@case("Running, Min")
def running_min(folder: Path, size: Size) -> Workload:
    """The values grow, so the least is the oldest: each row is its group's least once, when those
    before it have left.
    """
    s = rows(size)
    text = f"Istream(Select k, Min(v) From S [Range {size.window} ms] Group By k)"
    return Workload(_tuples(folder, size, s), text, s.n, "cql")


@case("Multiplicity, Distinct")
def tally(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = f"Istream(Select Distinct k From S [Range {size.window} ms])"
    return Workload(_tuples(folder, size, s), text, s.n - within(s.k, s.ts, size.window), "cql")


@case("Multiplicity, Except")
def except_(folder: Path, size: Size) -> Workload:
    """A row is shown as soon as it is none of the last thousand."""
    s = rows(size)
    late = min(1000, size.window // 2)
    text = (
        f"Istream(Select k, v From S [Range {size.window} ms] "
        f"Except Select k, v From S [Rows {late}])"
    )
    return Workload(_tuples(folder, size, s), text, max(s.n - late, 0), "cql")


@case("Changes")
def changes(folder: Path, size: Size) -> Workload:
    s = rows(size)
    window = _window(size, _step(size))
    text = _asked(size, "SELECT ?s ?v", "WINDOW :w { ?s :p ?v }", window=window, output="DSTREAM")
    return Workload(_triples(folder, s), text, s.n)


@case("Changes, of report rows")
def report_changes(folder: Path, size: Size) -> Workload:
    s = rows(size)
    text = _asked(size, "SELECT DISTINCT ?s", "WINDOW :w { ?s :p ?v }", output="ISTREAM")
    slices = np.unique(s.k * (1 << 32) + s.ts // size.window)
    again = np.count_nonzero(np.isin(slices - 1, slices))
    return Workload(_triples(folder, s), text, len(slices) - int(again))
