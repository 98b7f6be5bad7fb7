"""``levada explain``: a query at one of its stages, as the stage's stable text or as JSON.

ast        the syntax tree                             syntax.show, cql_ast.show
algebra    the translation, before any rule            algebra.show
optimized  after entailment and the optimizer's rules  algebra.show
topology   the operators, their stages and exchanges, an operator a line with its inputs below it
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_args

from levada.algebra import show as algebra_text
from levada.app.app_file import App, QuerySource
from levada.cli.queries import Catalog, makers_of, naming, optimized, plan_query, translate_query
from levada.errors import UsageError, near
from levada.model import expression as expressions
from levada.model.term import Term
from levada.plan.lowering.merge import PLACES
from levada.plan.physical.operators import Applied, Op
from levada.syntax import parse
from levada.syntax import show as show_tree
from levada.syntax.cql.ast import show_script
from levada.syntax.cql.parser import parse_script

_TERMS = get_args(Term)
_EXPRESSIONS = get_args(expressions.Expression)


def explain(app: App, name: str, stage: str, *, as_json: bool) -> str:
    """The query ``name`` of an application at a stage. Raises ``UsageError`` and ``QueryError``."""
    source = next((query for query in app.queries if query.name == name), None)
    if source is None:
        raise UsageError(
            f"There is no query {name}.", hint=near(name, (query.name for query in app.queries))
        )
    value, text = _ast(source) if stage == "ast" else _later(app, source, stage)
    if not as_json:
        return text
    return json.dumps(
        {"query": name, "stage": stage, "tree": tree(value)}, indent=2, ensure_ascii=False
    )


def _ast(source: QuerySource) -> tuple[Any, str]:
    with naming(source.name):
        if source.spoken == "cql":
            script = parse_script(source.text)
            return script, show_script(script)
        unit = parse(source.text, source.dialect)
        return unit, show_tree(unit)


def _later(app: App, source: QuerySource, stage: str) -> tuple[Any, str]:
    catalog = Catalog.of(app)
    query = translate_query(app, source, catalog)
    if stage == "algebra":
        return query, algebra_text.show(query)
    query = optimized(app, source, catalog, query)
    if stage == "optimized":
        return query, algebra_text.show(query)
    root = plan_query(query, source, catalog, makers_of(app, catalog)).root
    return root, "\n".join(operator_lines(root))


def operator_lines(op: Op, depth: int = 0) -> Iterator[str]:
    """An operator and its inputs, indented; an exchange stands before the input that it moves."""
    if isinstance(op.spec, Applied):
        yield from _applied(op, op.spec.terms, depth)
        return
    details = [_detail(part.name, getattr(op.spec, part.name)) for part in fields(op.spec)]
    head = " ".join([type(op.spec).__name__.lower(), *(detail for detail in details if detail)])
    yield f"{'  ' * depth}({head}) -> {_word(tuple(expressions.Var(name) for name in op.variables))} stage {op.stage}"
    for i, child in enumerate(op.inputs):
        by = op.exchange[i] if i < len(op.exchange) else None
        if by is not None:
            keys = " ".join(f"?{name}" for name in by if name) or "operator"
            yield f"{'  ' * (depth + 1)}exchange by {keys}"
        yield from operator_lines(child, depth + 1)


def _applied(op: Op, terms: tuple[Term, ...], depth: int) -> Iterator[str]:
    """A tree of operators with the names and terms to which it is applied."""
    (tree,) = op.inputs
    called = {f"<{place.value}>": str(term) for place, term in zip(PLACES, terms, strict=False)}
    called |= dict(zip(tree.variables, op.variables, strict=True))
    for line in operator_lines(tree, depth):
        yield _PLACE.sub(lambda m: called[m.group()], line)


_PLACE = re.compile(r"<\.\.\d>|(?<=[?( ])\.\d(?=[ )]|$)")  # of a term, of a variable
_MANY = ("alternatives", "alike")


def _detail(name: str, value: Any) -> str:
    """A field of an operator; of what there may be thousands, how many: the stage ``optimized``
    shows them.
    """
    return (f"{len(value)} {name}" if value else "") if name in _MANY else _word(value)


def _word(value: Any) -> str:
    """A field of an operator as text; what is not there is empty."""
    if value is None or value is False or value == ():
        return ""
    if isinstance(value, _EXPRESSIONS):
        return expressions.show(value)
    if isinstance(value, _TERMS):
        return str(value)
    if isinstance(value, (tuple, frozenset)):
        return "(" + " ".join(_word(item) or "-" for item in value) + ")"
    if isinstance(value, Enum):
        return str(value.value)
    if is_dataclass(value):
        return (
            "("
            + " ".join(filter(None, (_word(getattr(value, part.name)) for part in fields(value))))
            + ")"
        )
    return str(value)


def tree(value: Any) -> Any:
    """A tree of dataclasses as JSON-able values: each an object with its class under "type".

    >>> from levada.algebra.nodes import InWindow
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
    if isinstance(value, (tuple, list)):
        return [tree(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(item) for item in value)
    return value
