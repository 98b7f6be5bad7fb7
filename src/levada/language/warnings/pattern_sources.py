"""Collects the sources of a query's patterns: windows, graphs, and the default graph, through all
groups, sub-queries and EXISTS. Cost: linear in the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from levada.errors import Span
from levada.language.sparql import ast
from levada.language.sparql.scope import operands
from levada.language.translate.sparql.windows import iri
from levada.language.warnings.unbound_variables import groups_of


@dataclass(slots=True)
class Readings:
    """The windows and graphs by name, graphs with their first place.

    ``all_windows``: a variable ranges over them. ``default``: the place of the first pattern over
    the default graph. ``matchers``: the calls of REGEX and REPLACE.
    """

    windows: set[str] = field(default_factory=set)
    all_windows: bool = False
    graphs: dict[str, Span] = field(default_factory=dict)
    default: Span | None = None
    matchers: list[ast.BuiltIn] = field(default_factory=list)


def readings(unit: ast.QueryUnit) -> Readings:
    """Returns the sources that a query reads. DESCRIBE reads all windows."""
    sources = Readings(all_windows=isinstance(unit.form, ast.Describe))
    if unit.where is not None:
        _group(unit.where, sources, default=True)
    tops = [*unit.modifiers.having, *(key.expression for key in unit.modifiers.order_by)]
    for expression in [*tops, *_select_expressions(unit.form)]:
        _expression(expression, sources, default=True)
    return sources


def _select_expressions(form: ast.Form) -> Iterator[ast.Expression]:
    if isinstance(form, ast.Select):
        yield from (item.expression for item in form.projection or () if item.expression)


def _group(group: ast.Group, sources: Readings, *, default: bool) -> None:
    for element in group.elements:
        match element:
            case ast.Triples(triples):
                if default and sources.default is None:
                    sources.default = triples[0].subject.span
            case ast.Window() | ast.Graph():
                _name(element, sources)
                _group(element.group, sources, default=False)
            case ast.Filter(expression) | ast.Bind(expression):
                _expression(expression, sources, default=default)
            case ast.SubSelect(select, where, modifiers, _):
                _group(where, sources, default=default)
                for inside in (*modifiers.having, *_select_expressions(select)):
                    _expression(inside, sources, default=default)
            case _:
                for inner in groups_of(element):
                    _group(inner, sources, default=default)


def _name(element: ast.Window | ast.Graph, sources: Readings) -> None:
    """Adds the source that WINDOW, STREAM or GRAPH names."""
    name = element.name
    if isinstance(element, ast.Graph):
        sources.windows.update(element.windows)
        if isinstance(name, ast.Constant):
            sources.graphs.setdefault(iri(name), name.span)
    elif isinstance(name, ast.Constant):
        sources.windows.add(iri(name))
    else:
        sources.all_windows = True


def _expression(expression: ast.Expression, sources: Readings, *, default: bool) -> None:
    if isinstance(expression, ast.Exists):
        _group(expression.pattern, sources, default=default)
    else:
        if isinstance(expression, ast.BuiltIn) and expression.name in ("REGEX", "REPLACE"):
            sources.matchers.append(expression)
        for part in operands(expression):
            _expression(part, sources, default=default)
