"""Runs a case on an engine, stepped in this process, and reads what is published."""

from __future__ import annotations

import json
import re
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from levada import Engine, QueryOptions, QueryRequest
from levada.checkpoint.key_group_tables import Dealing
from levada.core.key_groups import group_of
from levada.engine.suspended_queries import read_suspended
from levada.errors import EngineError
from levada.plan.logical.query_options import options_of
from levada.testing.memory_sink import MemorySink
from oracle.case import PHASES, Case, Coming, Right, Running, triple_text
from oracle.cql import SCHEMAS, Relation, relation_text
from oracle.kinds import befallen, of_case, of_plan
from oracle.queries import Query, Row
from oracle.reports import Report, bag
from oracle.solve import frozen
from oracle.terms import normal, rank, string
from oracle.texts import text
from support.heavy_key_cases import Lots
from support.polling import PATIENCE
from support.random_join_orders import Lots as Orders
from support.random_key_groups import by_lot

TRIPLE = re.compile(r"^(\S+) (\S+) (.+) \.$")


class DeathError(Exception):
    """What ends an engine in the middle of an epoch."""


class Run:
    """One case, its folder, and the engine that there is at the moment."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.sink, self.lines = MemorySink(), list[str]()
        self.engine: Engine | None = None
        self.suspended = set[str]()
        self.kinds = set[str]()
        self.fed = 0
        for i, stream in enumerate(case.streams):
            head = ",".join([*SCHEMAS[stream], "ts\n"]) if stream in SCHEMAS else ""
            self._file(i, stream).write_text(head)

    def all(self) -> None:
        """All phases and the end."""
        for phase, how in enumerate(self.case.running):
            if phase < PHASES:
                if self._live(how):
                    self._change(phase, how)
                    self._feed(phase)
                    self._await_read()
                else:
                    self._close()
                    self._feed(phase)
                    self._stopped(phase, how)
            else:
                self._close()
                self._open(phase, how)
                self.engine.start(once=True)
                assert self.engine.await_end(PATIENCE)
        self._close()

    def _live(self, how: Running) -> bool:
        return how.live

    def _change(self, phase: int, how: Running) -> None:
        """Queries go and come, static data are replaced; by a new engine if there is none."""
        self._note()
        if self.engine is None or how.again:
            self._close()
            self._open(phase, how)
            self.engine.start()
            return
        for one in reversed(self.case.coming):
            if one.goes == phase and one.query.name in self.engine.queries():
                self.engine.unregister(one.query.name)
        before, now = self.case.graphs[phase - 1], self.case.graphs[phase]
        for graph, triples in now.items():
            if triples != before[graph]:
                self.engine.static([" ".join(t) for t in triples], graph or None)
        self._register([one for one in self.case.coming if one.comes == phase], how)

    def _register(self, new: Sequence[Coming], how: Running) -> None:
        """Queries together or, if none reads what another makes, one by one."""
        self._register_rows(new)
        new = [one for one in new if _row(one) is None]
        asked = [_asked(one) for one in new]
        alone = all(s in self.case.streams for one in new for s in one.query.streams)
        batches = [[one] for one in asked] if alone and not how.together else [asked]
        for batch in batches:
            if batch:
                self.engine.register_all(batch)

    def _register_rows(self, new: Sequence[Coming]) -> None:
        """Those that are rows of a table, table by table."""
        tables: dict[str, list[Coming]] = {}
        for one in new:
            if (row := _row(one)) is not None:
                tables.setdefault(row.table, []).append(one)
        for same in tables.values():
            table = [
                {"name": one.query.name, **dict(row.terms)}
                for one in same
                if (row := _row(one)) is not None
            ]
            of, options = _row(same[0]), _options(same[0].query)
            assert of is not None, "a row is of a table"
            self.engine.register_each(text(of.of), table, name="{{name}}", options=options)

    def _open(self, phase: int, how: Running) -> None:
        """A new engine on the checkpoint, with the queries of a phase."""
        self.engine = engine = Engine(
            spark=False, checkpoint=self.folder / "c", partitions=how.partitions, seed=7,
            epoch="1ms", epoch_rows=self.case.epoch_rows, sharing=how.mode, sink=self.sink,
            **self.case.options,  # type: ignore[arg-type]
        )  # fmt: skip
        if self.case.lot is not None:
            engine._open().tables.dealing = _dealing(self.case, self.case.lot)
        if self.case.orders is not None:
            seed, looks = self.case.orders
            planning = engine._registry.planning
            engine._registry.planning = planning._replace(orders=Orders(seed), looks=looks)
        for i, stream in enumerate(self.case.streams):
            given: dict[str, Any] = {"lateness": self.case.lateness}
            if stream in SCHEMAS:
                given["schema"] = dict(SCHEMAS[stream])
            engine.stream(stream, self._file(i, stream), **given)
        for i, (graph, triples) in enumerate(self.case.graphs[min(phase, PHASES - 1)].items()):
            path = self.folder / f"g{i}-{phase}.nt"
            path.write_text("".join(f"{' '.join(t)} .\n" for t in triples))
            engine.static(path, graph or None, replaceable=len(set(map(str, self.case.graphs))) > 1)
        self._register([one for one in self.case.coming if one.there(phase)], how)

    def _stopped(self, phase: int, how: Running) -> None:
        """A phase by engines that stop and die."""
        dies = dict(how.dies)
        for _ in range(50):
            self._open(phase, how)
            checkpoint = self.engine._open()
            checkpoint.commit = partial(_die, checkpoint.commit, dies)
            told = [0]

            def tell(manifest: object, told: list[int] = told) -> None:
                told[0] += 1
                if told[0] == how.stops and self.engine._driver is not None:
                    self.engine._driver.loop.request_stop()

            self.engine._on_epoch(tell)
            try:
                self.engine.start(once=True, keep_open=True)
                assert self.engine.await_end(PATIENCE)
            except EngineError as error:
                if not isinstance(error.__cause__, DeathError):
                    raise
                self._close(dead=True)
                continue
            last = self.engine._records()
            ended = self._read() >= self.fed and told[0] < how.stops
            self._close()
            if ended:
                return
        raise AssertionError(f"it comes to its end {self.fed} {last}")

    def _feed(self, phase: int) -> None:
        for i, (stream, parts) in enumerate(self.case.streams.items()):
            lines = [_line(stream, ts, said) for ts, said in parts[phase]]
            with self._file(i, stream).open("a") as file:
                file.write("".join(lines))
            self.fed += len(lines)

    def _read(self) -> int:
        records = self.engine._records()
        return sum(r.elements + r.late for n, r in records.items() if n in self.case.streams)

    def _await_read(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._read() < self.fed or self.engine._registry.changed:
            assert time.monotonic() < deadline, (
                f"what is there is read {self.fed} {self.engine._records()}"
            )
            self.engine.await_end(0.002)

    def _file(self, i: int, stream: str) -> Path:
        return self.folder / (f"{i}.csv" if stream in SCHEMAS else f"{i}.nt")

    def _note(self) -> None:
        """Before any goes: then it is forgotten that it was suspended, and what it needed."""
        self.suspended |= read_suspended(self.folder / "c").keys()
        driver = None if self.engine is None else self.engine._driver
        if driver is not None and (topology := driver._catalog._topology) is not None:
            self.kinds |= of_plan(topology, topology.sharing.mode)

    def _close(self, dead: bool = False) -> None:
        self._note()
        if self.engine is not None:
            try:
                self.engine.close()
            except EngineError:
                if not dead:
                    raise
            self.engine = None


class Ran(NamedTuple):
    """What each query reports, which were suspended, and which ways of the engine were taken."""

    reports: Mapping[str, Mapping[int, Report]]
    suspended: frozenset[str]
    kinds: frozenset[str]


def run(case: Case) -> Ran:
    """A case on engines of its own."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        one = Run(case, Path(name))
        try:
            with befallen(one.kinds):
                one.all()
        finally:
            one._close(dead=True)
    found = {c.query.name: _reports(c, one.sink.lines) for c in case.coming}
    return Ran(found, frozenset(one.suspended), frozenset(one.kinds | of_case(case)))


def _die(commit: Any, left: dict[int, bool], manifest: Any) -> None:
    """Commits an epoch, unless the engine is to die before; it may die behind."""
    after = left.pop(manifest.epoch, None)
    if after is not False:
        commit(manifest)
    if after is not None:
        raise DeathError


def _dealing(case: Case, lot: int) -> Dealing:
    """Groups move; in half of the cases those of the case's terms are divided, too."""
    if lot % 2:
        return by_lot(lot)
    terms = {t for graphs in case.graphs for triples in graphs.values() for x in triples for t in x}
    for said in (what for parts in case.streams.values() for part in parts for _, what in part):
        assert isinstance(said, tuple), "a triple, or the columns of a row"
        values = [v[1] if isinstance(v, tuple) else v for v in said]
        terms.update(v for v in values if v not in (None, ""))
    return Lots(lot, tuple(sorted({_group(t) for t in terms}))).deal


def _group(term: str | float) -> int:
    quoted = isinstance(term, str) and term[0] not in '<"'
    return group_of(f'"{term}"' if quoted else term)


def _row(one: Coming) -> Row | None:
    return one.query.row if isinstance(one.query, Query) else None


def _asked(one: Coming) -> QueryRequest:
    query = one.query
    if isinstance(query, Relation):
        return QueryRequest(relation_text(query), query.name, "cql", _options(query))
    return QueryRequest(text(query), query.name, query.dialect, _options(query))


def _options(query: Query | Relation) -> QueryOptions:
    return options_of(_words(query))


def _words(query: Query | Relation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    policy = f"periodic:{query.policy}ms" if isinstance(query.policy, int) else query.policy
    if query.policy != "close" or (isinstance(query, Query) and query.dialect == "cqels"):
        found["report"] = policy
    if query.nonempty:
        found["report"] = found["report"] + "+nonempty" if "report" in found else "nonempty"
    if query.t0 is not None:
        found["t0"] = query.t0
    if query.bounds != "[)":
        found["bounds"] = query.bounds
    if query.empty:
        found["empty_reports"] = True
    if query.until is not None:
        found["until"] = query.until
    return found


def _line(stream: str, ts: int, said: object) -> str:
    if stream in SCHEMAS:
        row: Sequence[tuple[str, object]] = said  # type: ignore[assignment]
        return ",".join([*("" if v is None else str(v) for _, v in row), f"{ts}\n"])
    return f"{triple_text(said)} {ts} .\n"


def _reports(one: Coming, lines: Sequence[bytes]) -> dict[int, Report]:
    """The reports of a query; one that is published twice says the same."""
    found: dict[int, dict[str, Any]] = {}
    for line in lines:
        record = json.loads(line)
        if record["query"] != one.query.name:
            continue
        change = record.get("change", "insert")
        of = found.setdefault(record["report"], {})
        assert of.setdefault(change, record) == record, f"said twice otherwise: {line!r}"
        _look_at_order(one.query, record)
    return {at: r for at, of in found.items() if not (r := _report(of)).empty}


def _report(of: Mapping[str, Mapping[str, Any]]) -> Report:
    first = of.get("insert", {})
    if "boolean" in first:
        return Report(answer=first["boolean"])
    if "graph" in first:
        parts = [TRIPLE.match(line) for line in first["graph"].splitlines()]
        return Report(graph=frozenset(tuple(normal(t) for t in p.groups()) for p in parts))
    return Report(_rows(first), _rows(of.get("delete", {})))


def _rows(record: Mapping[str, Any]) -> frozenset[Any]:
    return bag([frozen(row) for row in _solutions(record)])


def _solutions(record: Mapping[str, Any]) -> list[dict[str, str]]:
    found = record.get("results", {}).get("bindings", ())
    return [{f"?{name}": _term(term) for name, term in row.items()} for row in found]


def _term(of: Mapping[str, str]) -> str:
    if of["type"] == "uri":
        return f"<{of['value']}>"
    if of["type"] == "bnode":
        return f"_:{of['value']}"
    if "xml:lang" in of:
        return f"{string(of['value'])}@{of['xml:lang']}"
    return string(of["value"]) + (f"^^<{of['datatype']}>" if "datatype" in of else "")


def _look_at_order(query: Query | Relation, record: Mapping[str, Any]) -> None:
    """Rows are in the order that is asked for."""

    if isinstance(query, Relation) or not query.select.order:
        return
    rows = _solutions(record)
    due = rows
    for name, down in reversed(query.select.order):
        due = sorted(due, key=lambda row: rank(row.get(name)), reverse=down)
    for name, _ in query.select.order:
        keys = [[rank(row.get(name)) for row in some] for some in (rows, due)]
        assert keys[0] == keys[1], f"not in order of {name}: {record}"


def counted(reports: Mapping[str, Mapping[int, Report]]) -> Counter[str]:
    return Counter({name: len(own) for name, own in reports.items()})


def differences(
    case: Case, right: Mapping[str, Right | None], got: Mapping[str, Mapping[int, Report]],
    suspended: frozenset[str] = frozenset(),
) -> str:  # fmt: skip
    """The first difference in words, or nothing."""
    out = set(suspended)
    for one in case.coming:
        name = one.query.name
        own, wanted = got[name], right[name]
        if any(s.rpartition("/")[2] in out for s in one.query.streams):
            out.add(name)  # what reads what a suspended one makes is left out with it
        if wanted is None:
            continue
        ends = one.goes < PHASES or name in out
        difference = _difference(own, wanted, ends, name in out)
        if difference:
            asked = f"{name}, from {one.comes} to {one.goes}: {_asked(one).text}"
            return f"{asked}\n  {_words(one.query)}\n  {difference}"
    return ""


def _difference(own: Mapping[int, Report], right: Right, ends: bool, suspended: bool) -> str:
    reached = max(own, default=-1) if ends else 1 << 60
    for at in sorted({*own, *right.reports}):
        if at > reached and (suspended or at >= right.least):
            return ""
        mine, its = right.reports.get(at, Report()), own.get(at, Report())
        if replace(mine, made=()) != its:
            return f"report {at}: expected {_show(mine)}, got {_show(its)}"
    return ""


def _show(report: Report) -> str:
    return str({k: v for k, v in vars(report).items() if (v or v is False) and k != "made"})
