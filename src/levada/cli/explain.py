"""``levada explain``: queries at one of their stages, as the stable text of the stage or as JSON.

    ast        the syntax tree                             syntax.show, cql.ast.show_script
    algebra    the translation, before any rule            algebra.show
    optimized  after entailment and the optimizer's rules  algebra.show
    physical   the operators, with stages and exchanges    plan/lowering/show
    topology   shared operators and the queries of each    plan/topology/show

A query is prepared as the engine prepares it (``engine/query_pipeline``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import msgspec

from levada.cli.app.app_file import App
from levada.cli.app.prepare_queries import known_to, prepare_app, queries_of
from levada.core.count_text import count_text
from levada.core.rdf_terms import Term
from levada.core.shorten_outline import SHOWN_NAMES
from levada.engine.name_resolution import NameScope, makers_read, order_by_makers
from levada.engine.placement.planning_options import default_sharing
from levada.engine.query_pipeline import Prepared, prepare, share
from levada.engine.status.join_strategy_status import FormStatus
from levada.errors import UsageError, near
from levada.language import show as show_tree
from levada.language.cql.ast import Script, show_script
from levada.plan.execution.joins import JoinForm
from levada.plan.logical import print_logical as algebra_text
from levada.plan.logical.query_options import describe_end
from levada.plan.lowering.print_physical import show_operators
from levada.plan.physical.multiway_join import describe_either_form, why_binary
from levada.plan.physical.replicated_join import describe_replicated_joins as linked
from levada.plan.sharing.explain_sharing import describe_sharing, show_sharing
from levada.plan.sharing.sharing_modes import Sharing, sharing_of
from levada.plan.statistics.print_strategy import explain_joins_at_home, tables
from levada.plan.topology.print_topology import (
    describe,
    describe_edges,
    parallelism,
    show_parts,
    streams_read,
)
from levada.plan.topology.print_topology import show as show_topology
from levada.plan.topology.topology import Topology
from levada.plan.topology.topology_document import read_document
from levada.runtime.executor import cores

_TERMS = get_args(Term)


def explain(
    app: App, names: Sequence[str], stage: str, *, as_json: bool, whole: bool = True
) -> Iterator[str]:
    """Yields a text for each query at a stage, or one text of the shared topology. Not ``whole``:
    a topology of more than 8 queries has 20 lines. Raises ``UsageError`` and ``QueryError``.
    """
    known_names = [query.name for query in app.queries]
    for name in names:
        if name not in known_names:
            raise UsageError(f"There is no query {name}.", hint=near(name, known_names))
    if stage == "topology":
        yield _topology(app, names, as_json=as_json, whole=whole)
        return
    forms = _forms(app) if stage == "physical" else ()
    for query in _prepare_queries(app, stage):
        if query.asked.name in names:
            value, text = _stage_text(query, stage)
            query_forms = (one for one in forms if query.asked.name in one.queries)
            text = "\n".join([text, *map(_measured_text, query_forms)])
            head = {"query": query.asked.name, "stage": stage}
            yield _json({**head, "tree": tree(value)}) if as_json else text


def explain_document(path: Path, stage: str, *, as_json: bool, whole: bool = True) -> str:
    """Returns the text of a topology that was written as JSON. Not ``whole``: of more than 8
    queries in 20 lines. Raises ``UsageError``.
    """
    if stage not in ("physical", "topology"):  # physical is the default of --stage
        raise UsageError(
            f"{path} is a topology, and has no other stage: not {stage}.",
            hint="Say --stage topology.",
        )
    document = read_document(path)
    if as_json:
        return _json(document.source)
    queries = len(document.queries)
    whole = whole or queries <= SHOWN_NAMES
    return show_parts(document.nodes, document.edges, document.tasks, queries, whole=whole)


def explain_sharing(
    app: App, names: Sequence[str], mode: str, *, as_json: bool, whole: bool = True
) -> str:
    """Returns which operators these queries share in a mode, and why they do not share more. Not
    ``whole``: of more than 8 queries in 20 lines. Raises ``UsageError``.
    """
    queries, topology = _share_queries(app, names, sharing_of(mode))
    roots = {name: query.physical.root for name, query in queries.items()}
    options = {name: query.asked.options for name, query in queries.items()}
    shared = describe_sharing(
        topology, roots, {n: end for n, o in options.items() if (end := describe_end(o))}
    )
    if not as_json:
        return show_sharing(shared, whole=whole or len(queries) <= SHOWN_NAMES)
    return _json({"stage": "sharing", **tree(shared)})


def explain_shared(checkpoint: Path, *, as_json: bool, whole: bool = True) -> str:
    """Returns which operators the queries on a checkpoint share, with measured figures. Not
    ``whole``: of more than 8 queries in 20 lines. Raises ``CheckpointError``.
    """
    # imported here: other stages do not load the data path
    from levada.engine.status.sharing_report import read_sharing_report, show_run

    run = read_sharing_report(checkpoint)
    if not as_json:
        return show_run(run, whole=whole or run.queries <= SHOWN_NAMES)
    return _json({"stage": "shared", **msgspec.to_builtins(run)})


def explain_placement(checkpoint: Path, *, as_json: bool, picture: Path | None = None) -> str:
    """Describes how the epochs of a run were placed, predicted beside measured.

    The text has the executors of tasks, the transport along each edge, the traffic between tasks
    and the bottleneck. ``picture``: an SVG file to draw.
    Raises ``CheckpointError`` and ``UsageError``.
    """
    # imported here: other stages do not load the data path
    from levada.cli.placement import traffic_text
    from levada.cli.status import places
    from levada.engine.placement.edge_transport import edge_rows, read_edges
    from levada.engine.placement.traffic_report import read_flows
    from levada.engine.status import execution_status
    from levada.engine.status.status import read_status

    status = read_status(checkpoint)
    costs = status.epoch_costs
    if costs is None or not costs.last_epoch.epoch:
        raise UsageError(
            f"The run on {checkpoint} has not told what its epochs cost.",
            hint="Run it with this version of Levada.",
        )
    sent, edges = read_flows(checkpoint), read_edges(checkpoint)
    if picture is not None:
        from levada.cli.placement import epoch_plot as pictures

        pictures.write(picture, costs, pictures.read_flow(checkpoint), sent)
    if as_json:
        document = {**msgspec.structs.asdict(costs), "stage": "placement", "edges": edges,
                    "placement": status.placement, "traffic": sent,
                    "transport": status.transport}  # fmt: skip
        return _json(msgspec.to_builtins(document, str_keys=True))
    lines = [*execution_status.sentences(costs), *places(status)]
    for table in execution_status.candidates(costs):
        lines += traffic_text.align(table)
    if costs.work_parts:  # empty until an epoch is measured by parts
        lines += traffic_text.align([execution_status.PART, *execution_status.rows(costs)])
    if edges:
        lines += traffic_text.align(edge_rows(edges), 3)
    return "\n".join([*lines, *traffic_text.lines(sent)])


def _prepare_queries(app: App, stage: str) -> list[Prepared]:
    """Prepares the queries. A syntax tree needs no facts about streams and data."""
    if stage == "ast":
        return [prepare(asked, NameScope()) for asked in queries_of(app)]
    return prepare_app(app, known_to(app))


def _stage_text(query: Prepared, stage: str) -> tuple[Any, str]:
    """Returns the value and the text of a query at a stage."""
    match stage:
        case "ast":
            unit = query.ast
            return unit, show_script(unit) if isinstance(unit, Script) else show_tree(unit)
        case "algebra":
            return query.algebra, algebra_text.show(query.algebra)
        case "optimized":
            return query.optimized_query, algebra_text.show(query.optimized_query)
        case _:
            root = query.physical.root
            reasons = why_binary(root) if query.known.joins is not JoinForm.BINARY else ()
            home = explain_joins_at_home(root) if query.known.joins is JoinForm.AUTO else ()
            return root, "\n".join(
                [
                    show_operators(root), *reasons, *describe_either_form(root), *linked(root),
                    *tables(query.physical.wanted), *home,
                ]
            )  # fmt: skip


def _forms(app: App) -> Sequence[FormStatus]:
    """Returns the measured costs of joins whose form is automatic; () without a local checkpoint of
    an earlier run.
    """
    folder = Path(app.options.checkpoint or "")
    if app.options.join != JoinForm.AUTO or not (folder / "levada.json").exists():
        return ()
    # imported here: other stages do not load the data path
    from levada.engine.status.status import read_status

    return read_status(folder).join_strategies


def _measured_text(one: FormStatus) -> str:
    return (
        f"{one.join} of the run: {one.strategy}; one step costs {one.one_step_cpu_us:,} us of CPU "
        f"an epoch, two at a time {one.two_at_a_time_cpu_us:,}; "
        f"changed {count_text(one.changes, 'time')}."
    )


def _share_queries(
    app: App, names: Sequence[str], mode: Sharing | None = None
) -> tuple[dict[str, Prepared], Topology]:
    """Returns these queries and those that make their streams, in dependency order, and their
    topology; without a mode in that of the application.
    """
    known = known_to(app)
    if mode is None:
        options = app.options
        mode = sharing_of(options.sharing or default_sharing(options.limits))
    queries = {query.asked.name: query for query in prepare_app(app, known)}
    chosen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in chosen:
            chosen.add(name)
            waiting += makers_read(queries[name].algebra, known)
    order = order_by_makers([name for name in queries if name in chosen], known)
    chosen_queries = {name: queries[name] for name in order}
    return chosen_queries, share(chosen_queries.values(), known, mode)


def _topology(app: App, names: Sequence[str], *, as_json: bool, whole: bool) -> str:
    """Returns the topology of these queries and of those that make their streams, as text or
    JSON.
    """
    queries, topology = _share_queries(app, names)
    partitions = cores(app.options.master or "local[*]")
    if not as_json:
        return show_topology(topology, partitions, whole=whole or len(queries) <= SHOWN_NAMES)
    return _json(
        {
            "queries": list(queries),
            "stage": "topology",
            "nodes": [
                {**tree(node), "streams": list(streams)}
                for node, streams in zip(describe(topology), streams_read(topology), strict=True)
            ],
            "edges": tree(describe_edges(topology)),
            "tasks": parallelism(topology, partitions),
        }
    )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def tree(value: Any) -> Any:
    """Converts a tree of dataclasses and structs to JSON-able values. Each is an object with its
    class under "type".

    >>> from levada.plan.logical.nodes import InWindow
    >>> tree((InWindow(0), None))
    [{'type': 'InWindow', 'index': 0}, None]
    """
    if isinstance(value, _TERMS):
        return str(value)
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if is_dataclass(value):
        return {
            "type": type(value).__name__,
            **{part.name: tree(getattr(value, part.name)) for part in fields(value)},
        }
    if isinstance(value, msgspec.Struct):
        return {"type": type(value).__name__, **tree(msgspec.structs.asdict(value))}
    if isinstance(value, (tuple, list)):
        return [tree(item) for item in value]
    if isinstance(value, dict):
        return {str(key): tree(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    return value
