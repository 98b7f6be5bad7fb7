"""The state of a shell: the declared streams and data, the form of answers, and the last query with
its answer. Commands change it; it runs no query and prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from levada.cli.app.app_file import App, QuerySource
from levada.cli.app.prepare_queries import with_columns
from levada.cli.argument_parsing import parse_static, parse_stream, parse_table
from levada.cli.tables.answer_table import Answer
from levada.cli.tables.table_cells import Times, prefixes_of
from levada.connectors.config.input_formats import STDIN
from levada.connectors.config.stream_config import StreamConfig
from levada.errors import UsageError

TABLE = "table"


@dataclass
class Session:
    """``app``: streams, static data, options and the named queries. ``form``: table, or a format of
    lines. ``last``: the last query. ``answer``: its answer, None if it was not stored.
    """

    app: App = field(default_factory=App)
    dialect: str | None = None
    form: str = TABLE
    times: Times = "iso"
    last: QuerySource | None = None
    answer: Answer | None = None
    asked: int = 0
    prefixes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.app = replace(self.app, streams=tuple(map(_with_unique_names, self.app.streams)))
        for query in self.app.queries:
            self.prefixes |= prefixes_of(query.text)

    def add_stream(self, text: str) -> str:
        """Adds a stream, with the syntax of ``--stream``, in place of one of the same name. Returns
        the name. Raises ``UsageError``.
        """
        config = _with_unique_names(parse_stream(text))
        kept = tuple(s for s in self.app.streams if s.name != config.name)
        self.app = replace(self.app, streams=(*kept, config))
        return config.name

    def add_static(self, text: str) -> str:
        """Adds a static file, with the syntax of ``--static``. Returns its path. Raises
        ``UsageError``.
        """
        source = parse_static(text)
        self.app = replace(self.app, static=(*self.app.static, source))
        return source.path

    def add_table(self, text: str) -> str:
        """Adds a static table, with the syntax of ``--table``, in place of one of the same name.
        Returns its name. Raises ``UsageError``.
        """
        table = parse_table(text)
        others = tuple(one for one in self.app.tables if one.name != table.name)
        self.app = replace(self.app, tables=(*others, table))
        return table.name

    def add_query(self, text: str) -> QuerySource:
        """Returns the typed query under a new name."""
        taken = {query.name for query in self.app.queries}
        while (name := f"q{self.asked + 1}") in taken:
            self.asked += 1
        self.asked += 1
        self.prefixes |= prefixes_of(text)
        return QuerySource(name, text, self.dialect)

    def the_last(self) -> QuerySource:
        """Returns the last query. Raises ``UsageError`` without one."""
        if self.last is None:
            raise UsageError("No query has been asked yet.", hint="Type one; \\? tells how.")
        return self.last

    def with_query(self, source: QuerySource) -> App:
        """Returns the application with this query added."""
        others = tuple(query for query in self.app.queries if query.name != source.name)
        return replace(self.app, queries=(*others, source))


def _with_unique_names(config: StreamConfig) -> StreamConfig:
    """Returns a stream with its columns. Raises ``UsageError`` for standard input, which the shell
    reads itself.
    """
    if config.path == STDIN:
        raise UsageError(f"The stream {config.name} cannot be what is typed.", hint="Say a file.")
    return with_columns(config)
