"""``levada check``: parses and plans all queries of an application and prints a verdict for
each.
"""

from __future__ import annotations

from levada.cli.app.app_file import App
from levada.cli.app.prepare_queries import known_to, prepare_app
from levada.cli.errors import report, warn
from levada.engine.name_resolution import order_by_makers
from levada.engine.query_pipeline import Prepared
from levada.errors import QueryError, UsageError
from levada.language.warnings.warning import show_warnings


def check(app: App, *, debug: bool) -> int:
    """Prints ``NAME: ok`` for each valid query, and errors and warnings on standard error. Returns
    the exit code.
    """
    if not app.queries:
        raise UsageError("There is no query.", hint="Give query files, or an app file with --app.")
    known = known_to(app)
    worst = 0
    for query in prepare_app(app, known):
        try:
            print(_verdict(query))
            for sentence in show_warnings(query.warnings, query.asked.text):
                warn(f"{query.asked.name}: {sentence}", UserWarning)
        except (QueryError, UsageError) as error:
            worst = max(worst, report(error, debug=debug))
    if not worst:
        order_by_makers(known.queries, known)  # raises for queries that read each other in a circle
    return worst


def _verdict(query: Prepared) -> str:
    """Plans a query and describes it in a sentence. Raises ``QueryError`` or ``UsageError`` if it
    cannot be planned.
    """
    _ = query.physical
    algebra = query.algebra
    windows = ", ".join(f"{on.stream} {on.window.describe()}" for on in algebra.windows)
    over = windows or "static data, once"
    return f"{query.asked.name}: ok, {algebra.form} {algebra.output} over {over}"
