"""``levada check``: parses and plans queries; all of them are looked at, each with its verdict."""

from __future__ import annotations

from levada.cli.app.app_file import App
from levada.cli.app.prepare_queries import known_to, prepare_app
from levada.cli.errors import report, warn
from levada.engine.query_dependencies import order_by_makers
from levada.engine.query_pipeline import Prepared
from levada.errors import QueryError, UsageError
from levada.language.warnings.warning import show_warnings


def check(app: App, *, debug: bool) -> int:
    """Prints ``NAME: ok`` for each good query, the error of each other, and warnings on standard
    error; returns the exit code.
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
        order_by_makers(known.queries, known)  # queries cannot read each other in a circle
    return worst


def _verdict(query: Prepared) -> str:
    """What a query is, once it has been planned. Raises what speaks against it."""
    _ = query.physical
    algebra = query.algebra
    windows = ", ".join(f"{on.stream} {on.window.describe()}" for on in algebra.windows)
    over = windows or "static data, once"
    return f"{query.asked.name}: ok, {algebra.form} {algebra.output} over {over}"
