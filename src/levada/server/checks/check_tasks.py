"""The tasks of a checking process: check or explain a text, plan a query before it is added, or
check a query for ``/sparql``. Tasks and answers are JSON.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import Prepared, prepare
from levada.engine.query_request import QueryRequest
from levada.engine.syntax_tree_transfer import SMALL_TEXTS, encode_tree
from levada.errors import QueryError, QueryFailureError, Span, UnsupportedError, UsageError
from levada.language import parse
from levada.language import show as show_tree
from levada.language.cql import ast as cql
from levada.language.cql.ast import Script, Table, show_script
from levada.language.dialects.detect import is_cql
from levada.language.sparql import ast
from levada.language.sparql.ast import (
    BuiltIn,
    FunctionCall,
    Operation,
    PathAlternative,
    PathNegated,
    PathSequence,
    Triple,
)
from levada.language.translate.sparql.windows import iri
from levada.language.warnings.warning import MAX_SHOWN
from levada.plan.logical.print_logical import show as show_algebra
from levada.plan.logical.query_options import options_of
from levada.plan.lowering.print_physical import show_operators
from levada.server.problem_json import place_of

# Bounds on the planning cost of a text. The order of joins makes planning at least quadratic in
# the patterns, and each epoch evaluates the expressions. So both are counted before the text is
# planned.


OPERANDS = 4
"""Operands of expressions that a text may have for each allowed pattern."""


def check_weight(query: Prepared, most: int) -> None:
    """Raises ``UsageError`` for a text with more than ``most`` triple patterns or tables, or with
    too many operands. Raises ``QueryError`` for an invalid query. Each choice and step of a path
    counts as a pattern. Each operand, and each name that a path forbids, counts as an operand.
    """
    patterns = operands = 0
    for node in nodes(query.ast):
        patterns += _count_patterns(node)
        operands += _count_operands(node)
    for count, limit, word in (
        (patterns, most, "patterns"),
        (operands, OPERANDS * most, "operands in expressions"),
    ):
        if count > limit:
            raise UsageError(
                f"The text has {count:,} {word}, and the server takes at most {limit:,}.",
                hint="Who may write to the checkpoint may add it: levada add CHECKPOINT QUERY.",
            )


def _count_patterns(node: object) -> int:
    match node:
        case Triple() | Table():
            return 1
        case PathAlternative(parts) | PathSequence(parts):
            return len(parts) - 1
        case _:
            return 0


def _count_operands(node: object) -> int:
    match node:
        case Operation(_, operands) | cql.Operation(_, operands):
            return len(operands)
        case cql.Call():
            return len(node.arguments or ())
        case BuiltIn(_, args) | FunctionCall(_, args) | PathNegated(args):
            return len(args)
        case _:
            return 0


def nodes(tree: object) -> Iterator[object]:
    """Yields a tree's nodes, without recursion."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, tuple):
            rest.extend(node)
        elif is_dataclass(node):
            yield node
            rest.extend(getattr(node, field.name) for field in fields(node))


MAX_TREE = 8 << 20  # bytes


class Task(msgspec.Struct, frozen=True):
    """A text and the kind of its check: ``check``, ``plan``, a stage of ``STAGES``, or ``sparql``.
    ``words``: its options as the request has them. ``patterns``: how many patterns it may have.
    """

    kind: str
    text: str
    name: str = "query"
    dialect: str | None = None
    words: dict[str, Any] = {}
    patterns: int = 500

    @property
    def query_request(self) -> QueryRequest:
        """Returns the text as a query. Raises ``UsageError``."""
        return QueryRequest(self.text, self.name, self.dialect, options_of(self.words))


def answer(task: Task, known: Callable[[], NameScope]) -> Any:
    """Returns the answer to a task, as JSON values. Raises ``LevadaError``.

    >>> answer(Task("check", "SELEC ?s {}"), NameScope)["ok"]
    False
    >>> answer(Task("sparql", "ASK { ?s ?p ?o }"), NameScope)
    {'form': 'Ask', 'graphs': []}
    """
    if task.kind == "sparql":
        return _sparql(task.text)
    if task.kind == "check":
        return _verdict(task, known())
    query = _prepare(task, known())
    if task.kind == "plan":
        _ = query.physical
        return {"tree": b64encode(_encode_tree(query)).decode(), **_warning_fields(query)}
    return STAGES[task.kind](query)


def _warning_fields(query: Prepared) -> dict[str, Any]:
    """Returns the first warnings of a query, and how many more there are."""
    try:
        query_warnings = query.warnings
    except QueryFailureError:  # only the warnings fail: the query may work
        query_warnings = ()
    warned = [
        {"message": w.message, "line": span.line, "column": span.column, "hint": w.hint}
        for w in query_warnings[:MAX_SHOWN]
        for span in (w.span or Span(1, 1),)
    ]
    return {"warnings": warned, "more_warnings": len(query_warnings) - len(warned)}


def _encode_tree(query: Prepared) -> bytes:
    """Returns the syntax tree of a long text; b"" for short texts, which parse quickly."""
    if len(query.asked.text) <= SMALL_TEXTS or is_cql(query.asked.spoken):
        return b""
    tree = encode_tree(query.ast)
    return tree if len(tree) <= MAX_TREE else b""


def _prepare(task: Task, known: NameScope) -> Prepared:
    """Prepares a query that may be planned. Raises ``QueryError``, ``UsageError``."""
    query = prepare(task.query_request, known)
    check_weight(query, task.patterns)
    return query


def _verdict(task: Task, known: NameScope) -> dict[str, Any]:
    """Returns the errors of a text (at most the first one) and its first warnings."""
    try:
        query = _prepare(task, known)
        _ = query.physical
        algebra = query.algebra
        windows = [f"{on.stream} {on.window.describe()}" for on in algebra.windows]
        said = {"form": algebra.form.name, "output": str(algebra.output), "windows": windows}
        return {
            "ok": True,
            "dialect": query.asked.spoken,
            **said,
            "errors": [],
            **_warning_fields(query),
        }
    except QueryError as error:
        if isinstance(error.__cause__, MemoryError):
            raise
        wrong = {"message": error.message, **place_of(error)}
    except UsageError as error:
        wrong = {"message": error.message, "hint": error.hint}
    return {"ok": False, "errors": [wrong], "warnings": []}


def _sparql(text: str) -> dict[str, Any]:
    """Returns the form and the graphs of a text that may run at ``/sparql``. Raises
    ``QueryError``.
    """
    unit = parse(text, "rspql")
    if unit.windows or unit.register is not None:
        raise UnsupportedError(
            "Windows are for queries that go on: here a text is answered once.",
            span=(unit.register or unit.windows[0]).span,
            hint="PUT /queries/NAME registers it.",
        )
    for node in nodes(unit):
        if isinstance(node, ast.Service):
            raise UnsupportedError("SERVICE is not there: nothing is fetched.", span=node.span)
        if isinstance(node, ast.Window):
            raise UnsupportedError("There are no windows here.", span=node.span)
    graphs = [iri(each.graph) for each in unit.datasets]
    return {"form": type(unit.form).__name__, "graphs": graphs}


def _tree(query: Prepared) -> str:
    unit = query.ast
    return show_script(unit) if isinstance(unit, Script) else show_tree(unit)


STAGES: Mapping[str, Callable[[Prepared], str]] = {
    "ast": _tree,
    "algebra": lambda query: show_algebra(query.algebra),
    "optimized": lambda query: show_algebra(query.optimized_query),
    "physical": lambda query: show_operators(query.physical.root),
}
