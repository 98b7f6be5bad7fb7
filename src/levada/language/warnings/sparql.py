"""Warns about probable slips in a SPARQL query with windows.

They are declared windows that are not read, windows and graphs that do not exist, unbound
variables, windows with gaps, numbers that look like milliseconds, invalid regular expressions, and
clauses that have no effect.
Cost: linear in the query's tree; no data are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from levada.core.event_time import UNITS, shown_duration
from levada.core.rdf_terms import Literal
from levada.errors import Span, near
from levada.language.sparql import ast
from levada.language.sparql.scope import operands
from levada.language.sparql.source_text import place_of
from levada.language.translate.sparql.windows import READ_BY, iri, stream_hint
from levada.language.warnings.unbound_variables import groups_of, unbound_variable_warnings
from levada.language.warnings.unused_clauses import unused_clause_warnings
from levada.language.warnings.warning import QueryWarning, sort_by_place

# Collects the sources of a query's patterns: windows, graphs, and the default graph, through all
# groups, sub-queries and EXISTS. Cost: linear in the tree.


@dataclass(slots=True)
class Readings:
    """The windows and graphs by name, graphs with their first place.

    ``all_windows``: a variable ranges over them. ``all_graphs``: a variable ranges over the graphs.
    ``default``: the place of the first pattern over the default graph. ``matchers``: the calls of
    REGEX and REPLACE.
    """

    windows: set[str] = field(default_factory=set)
    all_windows: bool = False
    all_graphs: bool = False
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
        else:
            sources.all_graphs = True
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


MAX_PATTERN = 1000
"""The maximum length of a regular expression that is checked for warnings."""
_BARE = re.compile(r"\b(?:RANGE|SESSION)\s+(\d+)\s*(?:STEP|SLIDE|TUMBLING|\])", re.IGNORECASE)
MINUTES = re.compile(r"\b(?i:RANGE|STEP|SLIDE|SESSION)\s+(\d+)\s*M\b")
"""A capital M after a number: minutes in all dialects, but months in ISO 8601."""


def warnings_of(
    unit: ast.QueryUnit,
    text: str,
    streams: Collection[str] = (),
    graphs: Collection[str | None] | None = None,
) -> tuple[QueryWarning, ...]:
    """Returns the warnings about a query, in the order of their places.

    ``streams``: the existing streams. ``graphs``: the static graphs, with None for the default
    graph; None instead of the collection if they are not known.

    >>> from levada.language import parse
    >>> text = "ASK FROM NAMED WINDOW <w> ON <s> [RANGE PT1S STEP PT5S] { WINDOW <w> { ?s ?p ?o } }"
    >>> warnings_of(parse(text), text)[0].message
    'PT4S of each PT5S are in no window: STEP is longer than RANGE.'
    """
    read = readings(unit)
    warnings = [
        *_unread_windows(unit, read),
        *unbound_variable_warnings(unit),
        *(w for clause in unit.windows for w in _gaps(clause)),
        *_bare_numbers(unit, text),
        *_patterns_without_window(unit, read, streams, graphs),
        *_no_graphs(unit, read, streams, graphs),
        *_invalid_patterns(read),
        *_unread_graphs(unit, read),
        *unused_clause_warnings(unit),
    ]
    return sort_by_place(warnings)


def _unread_windows(unit: ast.QueryUnit, read: Readings) -> Iterator[QueryWarning]:
    if read.all_windows:
        return
    for clause in unit.windows:
        if clause.merged or isinstance(clause.stream, ast.Var) or iri(clause.name) in read.windows:
            continue
        name = iri(clause.name)
        word = "GRAPH" if name == iri(clause.stream) else "WINDOW"
        yield QueryWarning(
            f"The window <{name}> is declared, and nothing reads it: it only makes reports.",
            clause.span,
            f"Read it by {word} <{name}> {{ .. }}, or leave it out.",
        )


def _unread_graphs(unit: ast.QueryUnit, read: Readings) -> Iterator[QueryWarning]:
    """Yields warnings for FROM and FROM NAMED of graphs that no pattern reads. DESCRIBE reads the
    default graph. A clause that is alone also takes all other graphs away.
    """
    if read.all_graphs or isinstance(unit.form, ast.Describe):
        return
    for clause in unit.datasets:
        name = iri(clause.graph)
        takes_away = len(unit.datasets) == 1 and bool(read.graphs)
        if clause.named and name not in read.graphs:
            if takes_away or (len(unit.datasets) == 1 and read.default is not None):
                continue
            yield QueryWarning(
                f"FROM NAMED <{name}> has no effect: no GRAPH reads it.",
                clause.span,
                f"Read it by GRAPH <{name}> {{ .. }}, or leave it out.",
            )
        elif not clause.named and read.default is None and not takes_away:
            yield QueryWarning(
                f"FROM <{name}> has no effect: all patterns are in a window or a named graph.",
                clause.span,
                "Put a pattern beside them, or leave it out.",
            )


def _invalid_patterns(read: Readings) -> Iterator[QueryWarning]:
    """Yields warnings for REGEX and REPLACE whose constants make them an error in each row."""
    if not read.matchers:
        return
    # Imported late: few queries have a pattern.
    from levada.core.xpath_patterns import PatternError, translate

    for call in read.matchers:
        flags = call.args[2 if call.name == "REGEX" else 3 :]
        texts = [
            part.term.lexical
            for part in (call.args[1], *flags)
            if isinstance(part, ast.Constant) and isinstance(part.term, Literal)
        ]
        if len(texts) == 1 + len(flags) and len(texts[0]) <= MAX_PATTERN:
            try:
                translate(texts[0], "".join(texts[1:]))
            except PatternError as error:
                yield QueryWarning(
                    f"{call.name} has no value, whatever the data are: it has {error}.",
                    call.span,
                    "Patterns and flags are those of XPath functions 3.1, 5.6.",
                )


def _gaps(clause: ast.WindowClause) -> Iterator[QueryWarning]:
    match clause.spec:
        case ast.Range(length, int(step), to) if step > length - to:
            gap, each = shown_duration(step - length + to), shown_duration(step)
            yield QueryWarning(
                f"{gap} of each {each} are in no window: STEP is longer than RANGE.", clause.span
            )
        case ast.LastTriples(count, step) if step > count:
            yield QueryWarning(
                f"{step - count} of each {step} triples are in no window: STEP is more than the "
                "window holds.",
                clause.span,
            )
        case _:
            return


def _bare_numbers(unit: ast.QueryUnit, text: str) -> Iterator[QueryWarning]:
    specs = [clause.spec for clause in unit.windows]
    lengths = {spec.range for spec in specs if isinstance(spec, ast.Range)}
    lengths |= {spec.gap for spec in specs if isinstance(spec, ast.Session)}
    for match in _BARE.finditer(text):
        if int(match[1]) * 1000 in lengths:
            yield from bare_number(match[1], place_of(text, match.start(1)))
    lengths |= {spec.step for spec in specs if isinstance(spec, ast.Range) and spec.step}
    yield from capital_minutes(text, lengths)


def capital_minutes(text: str, lengths: Collection[int]) -> Iterator[QueryWarning]:
    """Yields warnings for ``5M`` where such a duration is one of these lengths."""
    for match in MINUTES.finditer(text):
        if int(match[1]) * UNITS["m"] in lengths:
            number, span = match[1], place_of(text, match.start(1))
            yield QueryWarning(
                f"{number}M is minutes here; in ISO 8601 an M without T is months, of which "
                "no length is fixed.",
                span,
                f"Write {number}m or PT{number}M; a month is as many days as are meant, such as "
                f"P{30 * int(number)}D.",
            )


def bare_number(digits: str, span: Span) -> Iterator[QueryWarning]:
    """Yields a warning for a number without a unit that exceeds a day of seconds."""
    if int(digits) * 1000 > UNITS["d"]:
        seconds, ms = shown_duration(int(digits) * 1000), shown_duration(int(digits))
        yield QueryWarning(
            f"A number alone counts seconds: {digits} is {seconds}.",
            span,
            f"Write {ms} if milliseconds are meant, else {seconds}.",
        )


def _patterns_without_window(
    unit: ast.QueryUnit,
    read: Readings,
    streams: Collection[str],
    graphs: Collection[str | None] | None,
) -> Iterator[QueryWarning]:
    """Yields a warning for a pattern over an empty default graph, if there are streams."""
    static = any(not clause.named for clause in unit.datasets) if unit.datasets else None
    if read.default is None or graphs is None or not streams:
        return
    if static or (static is None and None in graphs) or any(c.merged for c in unit.windows):
        return
    names = sorted(streams)
    if unit.windows:
        windows = " or ".join(f"WINDOW <{iri(c.name)}>" for c in unit.windows)
        hint = f"Put it into {windows} {{ .. }}, or name static data by --static FILE."
        message = "This pattern is in no window, and there are no static data that it could read."
    else:
        hint = f"There is the stream {names[0]}. " if len(names) == 1 else ""
        hint = hint or f"There are the streams {', '.join(names)}. "
        hint += READ_BY
        message = "The query has no window, and there are no static data that it could read."
    yield QueryWarning(message, read.default, hint, of_data=True)


def _no_graphs(
    unit: ast.QueryUnit,
    read: Readings,
    streams: Collection[str],
    graphs: Collection[str | None] | None,
) -> Iterator[QueryWarning]:
    """Yields warnings for FROM and GRAPH of names that are not static graphs."""
    named = {iri(clause.graph): clause.graph.span for clause in unit.datasets}
    windows = {iri(clause.name) for clause in unit.windows}
    for name, span in {**read.graphs, **named}.items():
        if name in windows or name in (graphs or ()):
            continue
        if hint := stream_hint(name, streams):
            yield QueryWarning(f"<{name}> is a stream, and no static graph.", span, hint)
        elif graphs is not None:
            known = near(name, (graph for graph in graphs if graph is not None))
            message = f"There is no static graph <{name}>."
            yield QueryWarning(message, span, known, of_data=True)
