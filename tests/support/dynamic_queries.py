"""Queries that come and go while streams are read, in each mode of sharing, beside what the naive
reference says of each alone.

A run has phases: before each, queries come and go; in it a part of every stream is read. ``modes``
has the mode of each phase and of the end, when the streams end; where it is another than before,
the engine is stopped and another goes on from the checkpoint. What is shared is counted, so that a
test of nothing fails.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from levada import Engine
from levada.core.event_time import MAX
from levada.engine.suspended_queries import read_suspended
from levada.plan.execution.steps import Join, Pick
from levada.plan.sharing.join_orders.running_subjoins import Forced
from levada.plan.sharing.sharing_modes import Sharing
from levada.testing.compare import same
from levada.testing.memory_sink import MemorySink
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, Graphs, Report, Row, Streams, Value
from levada.testing.stream_builders import lines, write_csv, write_graph, write_lines
from support.generators.case import CaseQuery
from support.stepped_runs import register

PHASES = 3
REGIONS = (None, "east", "west", "east+west", "west+any")
MODES = ("off", "exact", Sharing.CONTAINMENT, "relax")


@dataclass(frozen=True)
class Coming:
    """A query that comes before a phase, and goes before a later one, or not at all. ``life`` (ms):
    how long it lives, where its streams have said something before it, else its last instant.
    ``region``: where its results go, and with whom it shares.
    """

    query: CaseQuery
    comes: int = 0
    goes: int = PHASES
    life: int | None = None
    region: str | None = None

    def there(self, phase: int) -> bool:
        """Whether it is there in a phase; ``PHASES`` is the end."""
        return self.comes <= phase < self.goes or phase == self.goes == PHASES


class Answers(NamedTuple):
    """The reports of each query; which are suspended at the end."""

    reports: dict[str, list[Report]]
    suspended: frozenset[str]


@dataclass(frozen=True)
class World:
    """The streams, each with its places where phases end; static graphs; the columns of tuples."""

    streams: Streams
    cuts: Mapping[str, Sequence[int]]
    lateness: int = 0
    static: Graphs = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def part(self, phase: int) -> dict[str, Sequence[Element | Row]]:
        """What is read in a phase; before the first one nothing is."""
        found = {}
        for name, elements in self.streams.items():
            ends = [0, *self.cuts[name], len(elements)]
            found[name] = elements[ends[phase] : ends[phase + 1]] if phase >= 0 else ()
        return found

    def words(self, one: Coming) -> dict[str, int | str]:
        """When a query ends, and its region, by the words of its options."""
        found: dict[str, int | str] = {} if one.region is None else {"region": one.region}
        if one.life is not None:
            seen = self.seen(one.query, one.comes)
            found["until" if seen is None else "lifetime"] = one.life
        return found

    def end(self, one: Coming) -> int:
        """The last instant at which a query reports."""
        if one.life is None:
            return MAX
        seen = self.seen(one.query, one.comes)
        return one.life if seen is None else seen + 1 + one.life

    def seen(self, query: CaseQuery, phases: int) -> int | None:
        """The largest time of what a query's streams have had in so many phases."""
        own = {stream for stream, _ in query.reference.windows.values()}
        every = (e.ts for i in range(phases) for name in own for e in self.part(i)[name])
        return max(every, default=None)


@st.composite
def comings(draw: st.DrawFn, sets: st.SearchStrategy[list[CaseQuery]]) -> list[Coming]:
    """When the queries of a set come and go: most from the beginning to the end. One set in four
    has regions.
    """
    found = []
    regions = draw(st.sampled_from(((None,), (None,), (None,), REGIONS)))
    for query in draw(sets):
        comes = draw(st.sampled_from((0, 0, *range(1, PHASES))))
        goes = draw(st.sampled_from((PHASES, PHASES, *range(comes + 1, PHASES))))
        life = draw(st.sampled_from((None, None, None, 1500, 3000, 4001, 6000)))
        found.append(Coming(query, comes, goes, life, draw(st.sampled_from(regions))))
    return found


def counters() -> dict[str, Counter[str]]:
    """What is shared, by mode."""
    return {mode: Counter() for mode in MODES}


def run(
    coming: Sequence[Coming],
    world: World,
    modes: Sequence[str],
    shared: Counter[str] | None = None,
    orders: Forced | None = None,
    looks: int = 0,
    prepare: Callable[[Engine], None] = lambda _: None,
    **options: Any,
) -> Answers:
    """What the queries report; ``modes``: of each phase and of the end; ``orders``: who says the
    orders of joins; ``looks``: so many epochs pass from one look for better ones to the
    next; each engine is prepared before it starts; ``options`` are the engine's.
    """
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # queries that are suspended
        folder = Path(name)
        _create(folder, world)

        def start(phase: int, mode: str) -> Engine:
            """An engine on the checkpoint, with the queries of a phase."""
            engine = Engine(
                spark=False, checkpoint=folder / "c", partitions=2, sink=sink, epoch="1ms",
                sharing=mode, regions="east,west", **options,
            )  # fmt: skip
            planning = engine._registry.planning
            engine._registry.planning = planning._replace(orders=orders, looks=looks)
            prepare(engine)
            _declare(engine, folder, world)
            register(engine, [ending(one, world) for one in coming if one.there(phase)])
            engine.start(once=phase == PHASES)
            return engine

        running = start(-1, modes[0])
        for phase, (before, mode) in enumerate(pairwise((modes[0], *modes))):
            if mode != before or phase == PHASES:
                running.close()
                running = start(phase, mode)
            elif phase < PHASES:
                _change(running, coming, phase, world)
            if phase < PHASES:
                _feed(running, folder, world, phase)
                if shared is not None:
                    _count(running, shared)
        running.await_end()
        running.close()
        suspended = frozenset(read_suspended(folder / "c"))
    return Answers({o.query.name: sink.reports.get(o.query.name, []) for o in coming}, suspended)


def check(
    coming: Sequence[Coming],
    world: World,
    shared: Mapping[str, Counter[str]],
    alone: int = 0,
    mixed: Sequence[str] = (),
    **options: Any,
) -> None:
    """Each query says what the reference says of it alone, in all modes, and in the modes ``mixed``
    one after the other; one what it says in a run of its own. What is suspended has said nothing
    else before. ``shared``: what is counted, by mode.
    """
    got = {m: run(coming, world, [m] * (PHASES + 1), shared[m], **options) for m in shared}
    if mixed:
        got[" ".join(mixed)] = run(coming, world, mixed, **options)
    one = coming[alone % len(coming)]
    solo = run([one], world, ["exact"] * (PHASES + 1), **options)
    for each in coming:
        right = _right(each, world)
        answers = {**got, "alone": solo} if each is one else got
        for how, (reports, suspended) in answers.items():
            own = reports[each.query.name]
            goes = each.goes < PHASES or each.query.name in suspended
            difference = same(right[: len(own)] if goes else right, own)
            assert difference is None, f"{how}: {each.query.text}\n{difference}"
    for mode, counts in shared.items():
        counts["suspended"] += len(got[mode].suspended)


def _right(one: Coming, world: World) -> list[Report]:
    """What the reference says of a query."""
    asked = one.query.reference
    seen = world.seen(one.query, one.comes)
    asked = asked if seen is None else replace(asked, after=seen)
    end = world.end(one)
    return [r for r in evaluate(asked, world.streams, world.static, []) if r.time <= end]


def ending(one: Coming, world: World) -> CaseQuery:
    """The query with its end among its options."""
    return replace(one.query, options={**one.query.options, **world.words(one)})


def _create(folder: Path, world: World) -> None:
    """The files, without an element."""
    for i, name in enumerate(world.streams):
        if name in world.schemas:
            write_csv(folder / f"{i}.csv", (), list(world.schemas[name]))
        else:
            write_lines(folder / f"{i}.nt", ())
    for i, triples in enumerate(world.static.values()):
        write_graph(folder / f"g{i}.nt", triples)


def _declare(engine: Engine, folder: Path, world: World) -> None:
    for i, name in enumerate(world.streams):
        if name in world.schemas:
            schema = dict(world.schemas[name])
            engine.stream(name, folder / f"{i}.csv", schema=schema, lateness=world.lateness)
        else:
            engine.stream(name, folder / f"{i}.nt", lateness=world.lateness)
    for i, graph in enumerate(world.static):
        engine.static(folder / f"g{i}.nt", graph)


def _change(engine: Engine, coming: Sequence[Coming], phase: int, world: World) -> None:
    """Queries go and come, these together; those that had an end may have gone."""
    for one in coming:
        with engine._registry.lock:
            if one.goes == phase and one.query.name in engine._registry.queries:
                engine.unregister(one.query.name)
    with engine._registry.lock:
        register(engine, [ending(one, world) for one in coming if one.comes == phase])


def _feed(engine: Engine, folder: Path, world: World, phase: int) -> None:
    """Appends what a phase reads, and waits until it is read."""
    for i, (name, elements) in enumerate(world.part(phase).items()):
        tuples = name in world.schemas
        with (folder / (f"{i}.csv" if tuples else f"{i}.nt")).open("a") as file:
            file.write("".join(f"{line}\n" for line in _lines(elements)))
    read = sum(1 for i in range(phase + 1) for part in world.part(i).values() for _ in _lines(part))
    deadline = time.monotonic() + 600
    while sum(record.elements for record in engine._records().values()) < read:
        assert time.monotonic() < deadline, "what is there is read"
        engine.await_end(0.002)


def _lines(elements: Sequence[Element | Row]) -> Iterator[str]:
    """The lines of elements, of which each is one for the engine."""
    for element in elements:
        if isinstance(element, Element):
            yield from lines([element])
        else:
            yield ",".join([*map(_cell, element.values), str(element.ts)])


def _cell(value: Value | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _count(engine: Engine, shared: Counter[str]) -> None:
    """Counts the joins that queries need, of these the relaxed ones, and those that there are; the
    picks, and of these those that no index tells.
    """
    while engine._registry.changed:
        assert not engine.await_end(0.002), "a plan follows each change"
    assert engine._driver is not None and engine._driver._catalog._topology is not None
    topology = engine._driver._catalog._topology
    for plan in topology.queries.values():
        waiting, seen = [(plan.node, plan.member)], set[tuple[int, int]]()
        while waiting:
            number, member = waiting.pop()
            if (number, member) in seen:  # its own, and read twice
                continue
            seen.add((number, member))
            node = topology.graph.nodes[number]
            step = node.shape.step
            shared["needed"] += isinstance(step, Join)
            shared["relaxed"] += isinstance(step, Join) and step.relaxed
            waiting += zip(node.inputs, node.members[member].inputs, strict=True)
    for node in topology.graph.nodes.values():
        if isinstance(node.shape.step, Join | Pick):
            kind = "there" if isinstance(node.shape.step, Join) else "picked"
            shared[kind] += len(node.members.index)
        if isinstance(node.shape.step, Pick) and node.shape.step.rest:
            shared["asked"] += len(node.members.index)
