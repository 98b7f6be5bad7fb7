"""What a shell knows: the streams and data that were declared, how answers are shown, and the last
query with its answer. A value that commands change; it asks nothing and prints nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from levada.cli.app.app_file import App, QuerySource
from levada.cli.app.prepare_queries import with_columns
from levada.cli.argument_parsing import parse_static, parse_stream
from levada.cli.tables.answer_table import Answer
from levada.cli.tables.table_cells import Times, prefixes_of
from levada.connectors.config.input_formats import STDIN
from levada.connectors.config.stream_config import StreamConfig
from levada.errors import UsageError

TABLE = "table"


@dataclass
class Session:
    """``app``: streams, static data, options and the queries that have names. ``form``: table, or a
    format of lines. ``last``: the query that was asked last; ``answer``: what it answered, None if
    that was not kept.
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
        """A stream, as of ``--stream``; it takes the place of one of its name. Gives the name."""
        config = _with_unique_names(parse_stream(text))
        kept = tuple(s for s in self.app.streams if s.name != config.name)
        self.app = replace(self.app, streams=(*kept, config))
        return config.name

    def add_static(self, text: str) -> str:
        """A static file, as of ``--static``. Gives its path."""
        source = parse_static(text)
        self.app = replace(self.app, static=(*self.app.static, source))
        return source.path

    def add_query(self, text: str) -> QuerySource:
        """A query that was typed, under a name that no other has."""
        taken = {query.name for query in self.app.queries}
        while (name := f"q{self.asked + 1}") in taken:
            self.asked += 1
        self.asked += 1
        self.prefixes |= prefixes_of(text)
        return QuerySource(name, text, self.dialect)

    def the_last(self) -> QuerySource:
        """The last query. Raises ``UsageError`` if there is none."""
        if self.last is None:
            raise UsageError("No query has been asked yet.", hint="Type one; \\? tells how.")
        return self.last

    def with_query(self, source: QuerySource) -> App:
        """The application with this query, too."""
        others = tuple(query for query in self.app.queries if query.name != source.name)
        return replace(self.app, queries=(*others, source))


def _with_unique_names(config: StreamConfig) -> StreamConfig:
    """A stream with its columns. Raises ``UsageError`` for standard input, which the shell reads
    itself.
    """
    if config.path == STDIN:
        raise UsageError(f"The stream {config.name} cannot be what is typed.", hint="Say a file.")
    return with_columns(config)
