"""Runs a random case on the engine, stepped in this process, and reads its reports as the reference
writes them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from levada.checkpoint.key_group_tables import Dealing
from levada.checkpoint.manifest import Manifest
from levada.engine.engine import Engine
from levada.errors import EngineError
from levada.plan.execution.joins import JoinForm
from levada.plan.sharing.sharing_modes import DEFAULT
from levada.testing.memory_sink import MemorySink
from levada.testing.reference_model import Element, Graphs, Report
from levada.testing.stepped_engine import name_graphs, name_streams
from levada.testing.stream_builders import lines, write_graph
from support.generators import Case, CaseQuery
from support.polling import PATIENCE


def run_case(
    case: Case, *, epoch_rows: int = 1000, partitions: int = 2, spark: object = False,
    sharing: str = DEFAULT
) -> dict[str, list[Report]]:  # fmt: skip
    """The engine's reports of every query of a case."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        size = epoch_rows, partitions
        with _engine(case, root, sink, size, spark, sharing=sharing) as engine:
            name_sources(engine, case, root)
            register(engine, case.queries)
            engine.start(once=True)
            engine.await_end()
    return reports_of(case, sink)


def run_texts(
    texts: Mapping[str, str], streams: Mapping[str, Sequence[Element]], *, partitions: int = 2,
    epoch_rows: int = 1000
) -> dict[str, dict[int, list[tuple[str, ...]]]]:  # fmt: skip
    """The rows of each query's reports as they come: the values of its columns as text, "" where
    unbound.
    """
    found: dict[str, dict[int, list[tuple[str, ...]]]] = {name: {} for name in texts}
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(
            spark=False, checkpoint=Path(folder) / "c", epoch_rows=epoch_rows, partitions=partitions
        ) as engine,
    ):
        for i, (name, elements) in enumerate(streams.items()):
            path = Path(folder) / f"{i}.nt"
            path.write_text(
                "".join(line + "\n" for element in elements for line in lines([element]))
            )
            engine.stream(name, path)
        queries = {name: engine.register(text, name=name) for name, text in texts.items()}
        engine.start(once=True)
        for name, query in queries.items():
            for result in query.results():
                assert result.time is not None
                found[name].setdefault(result.time, []).extend(
                    tuple(v or "" for v in row) for row in result.rows.rows()
                )
    return found


def run_in_two(
    case: Case, cut: Mapping[str, int], late: Collection[str], *, epoch_rows: int = 1000,
    partitions: int = 2, gone: bool = False
) -> dict[str, list[Report]]:  # fmt: skip
    """The reports of two runs on one checkpoint: over the first ``cut[name]`` elements of each
    stream, which stay open, without the queries ``late``; then over all, with them. ``gone``: each
    query has been there in the first run alone, too, by another name.
    """
    others = [replace(q, name=f"gone-{q.name}") for q in case.queries] if gone else []
    first = replace(
        case, streams={name: elements[: cut[name]] for name, elements in case.streams.items()}
    )
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part, keep_open in ((first, True), (case, False)):
            with _engine(case, root, sink, (epoch_rows, partitions)) as engine:
                name_sources(engine, part, root)
                staying = [q for q in case.queries if not keep_open or q.name not in late]
                register(engine, [*others, *staying] if keep_open else staying)
                engine.start(once=True, keep_open=keep_open)
                engine.await_end()
    return reports_of(case, sink)


def run_stopped(
    case: Case, every: int, *, epoch_rows: int = 1000, partitions: int = 2
) -> dict[str, list[Report]]:
    """The reports of a case whose engine is stopped after every so many epochs, and started again
    on the checkpoint.
    """
    sink, ended = MemorySink(), False
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        while not ended:
            with _engine(case, root, sink, (epoch_rows, partitions)) as engine:
                name_sources(engine, case, root)
                register(engine, case.queries)
                told = _stop_after(engine, every)
                engine.start(once=True)
                assert engine.await_end(PATIENCE), "an engine that is told to stop stops"
                ended = told[-1].has_ended
    return reports_of(case, sink)


class DeathError(Exception):
    """What ends an engine in the middle of an epoch."""


def run_moved(
    case: Case, dealing: Dealing, starts: Sequence[tuple[int, int | None]],
    dies: Mapping[int, bool], *, epoch_rows: int = 1000, sharing: str = DEFAULT,
    joins: Sequence[str] = (JoinForm.BINARY,)
) -> dict[str, list[Report]]:  # fmt: skip
    """The reports of a case whose groups go where ``dealing`` says before each epoch; the rest as
    in ``run_between``.
    """

    def deal(engine: Engine) -> None:
        engine._open().tables.dealing = dealing

    return run_between(
        case, deal, starts, dies, epoch_rows=epoch_rows, sharing=sharing, joins=joins
    )


def run_between(
    case: Case, prepare: Callable[[Engine], None], starts: Sequence[tuple[int, int | None]],
    dies: Mapping[int, bool], *, epoch_rows: int = 1000, sharing: str = DEFAULT,
    joins: Sequence[str] = (JoinForm.BINARY,)
) -> dict[str, list[Report]]:  # fmt: skip
    """The reports of a case whose engines stop, die and go on; each is prepared before it starts.

    ``starts``: after how many epochs each engine stops, and over how many partitions it goes on;
    again and again. ``dies``: epochs at which the engine dies, before or (true) after its commit.
    ``joins``: the form of joins that each engine is told, again and again.
    """
    sink, ended, left = MemorySink(), False, dict(dies)
    with tempfile.TemporaryDirectory() as folder:
        root, number = Path(folder), 0
        while not ended:
            (epochs, partitions), join = starts[number % len(starts)], joins[number % len(joins)]
            number += 1
            assert number < 500, "it comes to its end"
            size = (epoch_rows, partitions)
            with _engine(case, root, sink, size, sharing=sharing, join=join) as engine:
                checkpoint = engine._open()
                prepare(engine)
                checkpoint.commit = partial(_die, checkpoint.commit, left)
                name_sources(engine, case, root)
                register(engine, case.queries)
                _stop_after(engine, epochs)
                try:
                    engine.start(once=True)
                    assert engine.await_end(PATIENCE), "an engine that is told to stop stops"
                except EngineError as error:
                    if not isinstance(error.__cause__, DeathError):
                        raise
                else:
                    ended = checkpoint.last is not None and checkpoint.last.has_ended
    return reports_of(case, sink)


def _die(commit: Callable[[Manifest], None], left: dict[int, bool], manifest: Manifest) -> None:
    """Commits an epoch, unless the engine is to die before; it may die behind."""
    after = left.pop(manifest.epoch, None)
    if after is not False:
        commit(manifest)
    if after is not None:
        raise DeathError


def _stop_after(engine: Engine, epochs: int) -> list[Manifest]:
    """Has the engine stop as soon as it has run so many epochs; what it has run."""
    told: list[Manifest] = []

    def tell(manifest: Manifest) -> None:
        told.append(manifest)
        if len(told) == epochs and engine._driver is not None:
            engine._driver.loop.request_stop()

    engine._on_epoch(tell)
    return told


def _engine(
    case: Case, root: Path, sink: MemorySink, size: tuple[int, int | None], spark: object = False,
    *, sharing: str = DEFAULT, join: str = JoinForm.BINARY,
) -> Engine:  # fmt: skip
    """An engine on the checkpoint of a case; ``size``: elements in an epoch, partitions."""
    epoch_rows, partitions = size
    return Engine(
        spark=spark,
        checkpoint=root / "checkpoint",
        epoch_rows=epoch_rows,
        partitions=partitions,
        sink=sink,
        seed=7,
        ontology=_ontology(case, root),
        sharing=sharing,
        join=join,
    )


def _ontology(case: Case, root: Path) -> list[Path]:
    return [] if case.ontology is None else [write_graph(root / "ontology.nt", case.ontology)]


def run_replaced(
    case: Case, late: Mapping[str, int], *, live: bool, epoch_rows: int = 1000, partitions: int = 2
) -> dict[str, list[Report]]:
    """The reports of a case with replacements: ``live`` ones of one engine that goes on, or by a
    new start on the checkpoint for each.

    ``late`` are queries that come with the n-th replacement.
    """
    sink = MemorySink()
    ends = [read for read, _ in case.replaced]
    graphs = [case.static, *(g for _, g in case.replaced)]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)

        def started(phase: int, **how: bool) -> Engine:
            engine = _engine(case, root, sink, (epoch_rows, partitions))
            read = (
                ends[phase] if phase < len(ends) else {n: len(e) for n, e in case.streams.items()}
            )
            part = replace(
                case,
                streams={n: e[: read[n]] for n, e in case.streams.items()},
                static={g: tuple(t) for g, t in graphs[phase].items()},
            )
            name_sources(engine, part, root, replaceable=True)
            register(engine, [q for q in case.queries if late.get(q.name, 0) <= phase])
            engine.start(**how)
            return engine

        if live:
            _live(case, started(0), root, ends, graphs, late)
        phases = [len(ends)] if live else range(len(ends) + 1)
        for phase in phases:
            with started(phase, once=True, keep_open=phase < len(ends)) as engine:
                engine.await_end()
    return reports_of(case, sink)


def _live(
    case: Case, engine: Engine, root: Path, ends: Sequence[Mapping[str, int]],
    graphs: Sequence[Graphs], late: Mapping[str, int]
) -> None:  # fmt: skip
    """Everything up to the last replacement, of which the next start has its queries."""
    with engine:
        for phase, read in enumerate(ends):
            for i, (name, elements) in enumerate(case.streams.items() if phase else ()):
                new = [
                    e
                    for e in elements[ends[phase - 1][name] : read[name]]
                    if isinstance(e, Element)
                ]
                with (root / f"{i}.nt").open("a") as file:
                    file.writelines(f"{line}\n" for line in lines(new))
            while not engine.progress().epochs or sum(
                r.elements for r in engine._records().values()
            ) < _read(case, read):
                assert not engine.await_end(0.01), (
                    "it answers what has no windows before anything is replaced"
                )
            if phase + 1 < len(ends):
                _replace(engine, graphs[phase], graphs[phase + 1], root, phase)
                register(engine, [q for q in case.queries if late.get(q.name, 0) == phase + 1])


def _read(case: Case, read: Mapping[str, int]) -> int:
    """How many elements the engine says it has read: triples, each by itself."""
    return sum(
        len(e.triples)
        for n, k in read.items()
        for e in case.streams[n][:k]
        if isinstance(e, Element)
    )


def _replace(engine: Engine, before: Graphs, now: Graphs, root: Path, phase: int) -> None:
    for i, (graph, triples) in enumerate(now.items()):
        if triples != before[graph]:
            engine.static(
                triples if i % 2 else write_graph(root / f"r{phase}{i}.nt", triples), graph
            )


def register(engine: Engine, queries: Sequence[CaseQuery]) -> None:
    """Registers queries with their options, one after the other."""
    for query in queries:
        engine.register(query.text, name=query.name, dialect=query.dialect, **query.options)


def reports_of(case: Case, sink: MemorySink) -> dict[str, list[Report]]:
    """What has been published of each query of a case."""
    found = sink.reports
    return {query.name: found.get(query.name, []) for query in case.queries}


def name_sources(engine: Engine, case: Case, root: Path, *, replaceable: bool = False) -> None:
    """Writes a case's streams and static graphs to files, and names them to the engine."""
    name_streams(
        engine, root, case.streams, case.schemas, relations=case.relations, lateness=case.lateness
    )
    name_graphs(engine, root, case.static, replaceable=replaceable)
