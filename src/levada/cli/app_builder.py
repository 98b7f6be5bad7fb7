"""The application that a command runs: the app file first, then what the arguments add or
override.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from levada.cli.app.app_file import App, QuerySource, load_app, read_query
from levada.cli.argument_parsing import (
    parse_output,
    parse_static,
    parse_stream,
    parse_table,
    parse_target,
)
from levada.cli.cql_scripts import statements
from levada.core.event_time import parse_duration, parse_time
from levada.core.frozen import frozen
from levada.core.names import check_query_name
from levada.core.query_limits import check_limits, check_memory
from levada.errors import UsageError, near
from levada.plan.logical.query_options import lifetime_of, region_of, until_of


@frozen
class CommandArguments:
    """The arguments that all commands over queries share, as typed.

    ``options`` has the fields of ``levada.cli.app.app_file.Options`` and the words of
    ``levada.plan.logical.query_options.WORDS``; None means that the option is absent.
    """

    queries: tuple[str, ...] = ()
    app: Path | None = None
    streams: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    dialect: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    to: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


def assemble(arguments: CommandArguments) -> App:
    """Returns the application that the arguments describe. Raises ``UsageError``."""
    base = App() if arguments.app is None else load_app(arguments.app)
    options = {
        name: _read(name, value) for name, value in arguments.options.items() if value is not None
    }
    added = App(
        streams=tuple(map(parse_stream, arguments.streams)),
        static=tuple(map(parse_static, arguments.static)),
        tables=tuple(map(parse_table, arguments.tables)),
        queries=tuple(_query(Path(path), arguments.dialect) for path in arguments.queries),
    )
    named = {stream.name for stream in added.streams}
    kept = replace(
        base, streams=tuple(stream for stream in base.streams if stream.name not in named)
    )
    both = kept.merge(added)
    alone = App(queries=tuple(query for source in both.queries for query in statements(source)))
    # an absent flag does not reset the flag of the app file
    chosen = {name: value for name, value in options.items() if value is not False}
    whole = replace(both, queries=()).merge(alone)
    return replace(_with_outputs(whole, arguments.to), options=base.options.merge(chosen))


def _with_outputs(whole: App, texts: Sequence[str]) -> App:
    """Returns the application with the outputs of ``--to`` added to its queries. Raises
    ``UsageError``.
    """
    outputs = [parse_output(text) for text in texts]
    names = [query.name for query in whole.queries]
    for name, _ in outputs:
        if name not in names:
            raise UsageError(f"--to names no query of this run: {name}.", hint=near(name, names))
    queries = tuple(
        replace(query, to=(*query.to, *(to for name, to in outputs if name == query.name)))
        for query in whole.queries
    )
    return replace(whole, queries=queries)


def choose_queries(arguments: CommandArguments) -> tuple[App, tuple[str, ...]]:
    """Returns the application and the names of the queries that the arguments select.

    Each word of QUERY is a file, or with ``--app`` the name of a query of the app file. Without a
    word all queries are selected. Raises ``UsageError``.
    """
    named = [q for q in arguments.queries if arguments.app is not None and not Path(q).exists()]
    files = tuple(q for q in arguments.queries if q not in named)
    whole = assemble(replace(arguments, queries=files))
    if not whole.queries:
        raise UsageError("There is no query.", hint="Give query files, or an app file with --app.")
    before = {query.name for query in assemble(replace(arguments, queries=())).queries}
    added = [query.name for query in whole.queries if query.name not in before]
    return whole, (*named, *added) or tuple(query.name for query in whole.queries)


def _read(name: str, value: Any) -> Any:
    """Parses the text of an option that has a syntax of its own. Raises ``UsageError``."""
    readers: dict[str, Callable[[Any], Any]] = {
        "epoch": parse_duration,
        "delay": parse_duration,
        "max_future": parse_duration,
        "roll": parse_duration,
        "letters_to": parse_target,
        "t0": parse_time,
        "until": until_of,
        "lifetime": lifetime_of,
        "region": region_of,
        "balance": _balance,
        "limits": check_limits,
        "memory": check_memory,
    }
    if name not in readers:
        return value
    try:
        return readers[name](value)
    except UsageError as error:
        raise UsageError(f"--{name}: {error.message}", hint=error.hint) from error


def _balance(value: Any) -> Any:
    # imported here: only a run with balance needs the runtime
    from levada.runtime.rebalancing.rebalancing_options import balance_of

    return balance_of(value) or False  # off, also where the default is on


def document_of(arguments: CommandArguments) -> Path | None:
    """Returns the topology file that the arguments name, or None if they name queries. Raises
    ``UsageError`` if more is named beside a topology.
    """
    paths = [path for query in arguments.queries if _is_topology(path := Path(query))]
    if not paths:
        return None
    if len(arguments.queries) > 1:
        raise UsageError(f"{paths[0]} is a topology, and is explained alone.")
    return paths[0]


def _is_topology(path: Path) -> bool:
    if path.suffix != ".json":
        return False
    from levada.plan.topology.topology_document import (
        is_document,  # imported here: other files are no documents of topologies
    )

    return is_document(path)


def _query(path: Path, dialect: str | None) -> QuerySource:
    if _is_topology(path):
        raise UsageError(
            f"{path} is a topology, which can be shown and placed, and not run: it does not say "
            "what its operators compute.",
            hint="Give the queries that it was made of.",
        )
    query = read_query(path, dialect)
    check_query_name(query.name)
    return query
