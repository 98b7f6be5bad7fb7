"""``levada check``: parses and plans queries; all of them are looked at, each with its verdict."""

from __future__ import annotations

from levada.app.app_file import App
from levada.cli.errors import report
from levada.cli.queries import Catalog, makers_of, optimized, plan_query, translate_query
from levada.errors import QueryError, UsageError


def check(app: App, *, debug: bool) -> int:
    """Prints ``NAME: ok`` for each good query, the error of each other; returns the exit code."""
    if not app.queries:
        raise UsageError("There is no query.", hint="Give query files, or an app file with --app.")
    catalog = Catalog.of(app)
    makers = makers_of(app, catalog) if len(app.queries) > 1 else {}
    worst = 0
    for source in app.queries:
        try:
            query = translate_query(app, source, catalog)
            plan_query(optimized(app, source, catalog, query), source, catalog, makers)
        except (QueryError, UsageError) as error:
            worst = max(worst, report(error, debug=debug))
            continue
        windows = ", ".join(
            f"{window.stream} {window.window.describe()}" for window in query.windows
        )
        print(
            f"{source.name}: ok, {query.form} {query.output} over {windows or 'static data, once'}"
        )
    return worst
