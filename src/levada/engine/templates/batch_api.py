"""The engine's methods for many queries at once: a query for each row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from levada.engine.query import Query
from levada.engine.query_request import QueryRequest
from levada.engine.registry import Registry
from levada.engine.templates.parameter_tables import Rows
from levada.engine.templates.query_per_row import RowQueryTemplate, name_failing_row
from levada.plan.logical.query_options import QueryOptions, QueryWords, options_of


class BatchRegistrationApi:
    """The registration of tables of queries."""

    _registry: Registry

    if TYPE_CHECKING:

        def register_all(self, batch: Sequence[QueryRequest]) -> list[Query]:
            """Registers all queries of a batch, or none."""

    def register_each(
        self,
        text: str,
        table: Rows,
        *,
        name: str = "",
        dialect: str | None = None,
        options: QueryOptions | None = None,
        **said: Unpack[QueryWords],
    ) -> list[Query]:
        """Registers a query for each row of a table, all of them or none. Returns them in order. In
        ``text`` the row's values replace its columns, which it names as ``{{column}}``.

        In an IRI (``<http://e/{{sensor}}>``) and in a string a value is inserted as it is. Alone it
        is a number, a truth value, an instant (UTC offset and all), or the term in a text.
        ``table``: a frame of pandas or polars, a table of Arrow, a list of mappings, or a path.
        Paths name a CSV (all cells texts), TSV or Parquet file. ``name``: the name of each query,
        with columns in it; "" for automatic names. ``options`` and ``said`` are those of
        ``register``. The results of each query are those of its text.

        A row costs some tens of µs if its values are in patterns and comparisons, else as much as a
        separate query. Raises ``UsageError`` or ``QueryError``, with the row.

        >>> import levada
        >>> text = '''SELECT ?v FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT1M STEP PT1M]
        ... WHERE { WINDOW <e:w> { <e:{{sensor}}> <e:temp> ?v FILTER(?v > {{most}}) } }'''
        >>> with levada.Engine(spark=False) as engine:
        ...     engine.stream("e:s")
        ...     table = [{"sensor": "a", "most": 30}, {"sensor": "b", "most": 25}]
        ...     [query.name for query in engine.register_each(text, table, name="hot-{{sensor}}")]
        ['hot-a', 'hot-b']
        """
        asked = RowQueryTemplate(text, name, dialect)
        with self._registry.lock:
            batch = asked.make_requests(
                table, options or options_of(said), self._registry.free_name
            )
            with name_failing_row(batch):
                return self.register_all(batch)
