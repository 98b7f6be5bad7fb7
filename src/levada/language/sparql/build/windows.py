"""Builds windows: each dialect's clauses on streams and reports, in the one form of the tree
(``window_ast``).

The dialect's flags (``dialects``) define the meaning of a spelling where dialects differ. A window
that the text does not name (FROM STREAM, STREAM {}) has the name of its stream and brackets; two
with the same stream and brackets are one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from lark import Token

from levada.core.event_time import MAX, parse_time
from levada.core.rdf_terms import Iri
from levada.errors import Span, UnsupportedError, UsageError
from levada.language.dialects.cql import UNITS
from levada.language.dialects.dialect import Dialect
from levada.language.sparql import ast
from levada.language.sparql.build.patterns import Patterns
from levada.language.sparql.source_text import Source
from levada.language.sparql.window_ast import call

# Parses durations of windows, exactly, in milliseconds: ISO 8601 (``PT10S``), numbers with units
# (``1h30m``, ``10 minutes``), seconds.
#
# Weeks, days, hours, minutes and seconds have a fixed length. Years and months do not, so they are
# refused. So are lengths that are not positive or finer than a millisecond: event times are whole
# milliseconds. A number alone counts seconds, as in CQL.


_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(
    rf"([-+]?)P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_SPANS = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:[a-z]+|$))+", re.IGNORECASE)
_SPAN = re.compile(_NUMBER + r"\s*([a-z]*)", re.IGNORECASE)
_UNITS: dict[str, int | Fraction] = {
    **UNITS,
    "": 1_000,
    "us": Fraction(1, 1_000),
    "ns": Fraction(1, 1_000_000),
}
_LENGTHS = {4: 604_800_000, 5: 86_400_000, 6: 3_600_000, 7: 60_000, 8: 1_000}


def milliseconds(text: str, least: int = 1) -> int:
    """Returns the length of a duration in ms.

    Raises ``ValueError`` with a sentence for people if a window cannot have the length, or if it is
    below ``least``.

    >>> [milliseconds(text) for text in ("P1DT2H", "PT0.5S", "1h30m", "10 minutes", "3")]
    [93600000, 500, 5400000, 600000, 3000]
    """
    if _SPANS.fullmatch(text) and text[0] not in "Pp":
        parts = [
            (Fraction(number), _UNITS.get(unit.lower())) for number, unit in _SPAN.findall(text)
        ]
        if all(unit is not None for _, unit in parts):
            return _check(
                text,
                sum((number * unit for number, unit in parts if unit is not None), Fraction(0)),
                least,
            )
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.group(i) for i in range(2, 9)):
        raise ValueError(f"{text} is not an ISO 8601 duration such as PT10S or P1DT2H.")
    if match.group(2) or match.group(3):
        minutes = match.group(3) and text.endswith(f"P{match.group(3)}M")
        hint = f"PT{match.group(3)}M would be minutes" if minutes else "use days"
        raise ValueError(f"{text} has years or months, whose length is not fixed; {hint}.")
    length = sum(
        (Fraction(match.group(i)) * ms for i, ms in _LENGTHS.items() if match.group(i)), Fraction(0)
    )
    return _check(text, -length if match.group(1) == "-" else length, least)


def _check(text: str, length: Fraction, least: int) -> int:
    if length < 0 or length == 0 < least:
        raise ValueError(f"{text} is not positive.")
    if length.denominator != 1:
        raise ValueError(f"{text} is finer than a millisecond.")
    if length >= MAX:
        raise ValueError(f"{text} is longer than event times reach; use ALL.")
    return int(length)


_TUMBLES = "tumbles"
_REGIMES = {
    "http://www.w3.org/ns/entailment/Simple": "none",
    "http://www.w3.org/ns/entailment/RDFS": "rdfs",
    "http://www.w3.org/ns/entailment/OWL-RDF-Based": "owl",
    "http://www.w3.org/ns/owl-profile/RL": "owl",
}


class Moment(NamedTuple):
    """A number of milliseconds before now, and its place in the text."""

    before: int
    span: Span


class Windows(Patterns):
    """Builds windows; keeps the windows of patterns, and the output and reports of the text."""

    def __init__(self, source: Source, dialect: Dialect) -> None:
        super().__init__(source)
        self._dialect = dialect
        self._windows: list[ast.WindowClause] = []
        self._seen: set[str] = set()  # the names of unnamed windows
        self._graphs: dict[str, None] = {}  # the streams that GRAPH reads, in order
        self._named = False  # some pattern names its window
        self._output: str = dialect.output
        self._said: str | None = None  # the output as written in the text
        self._entailment = ""
        self._reporting = ast.Reporting(policy=dialect.report)
        self._report_clauses: list[ast.ReportClause] = []

    # --- register

    def register(
        self, token: Token, operator: Token, name: ast.Constant, regime: None = None
    ) -> ast.Register:
        """``REGISTER RSTREAM name AS``."""
        self._say_output(operator)
        return ast.Register(self._output, name, self._span(token))

    def _say_output(self, operator: Token) -> None:
        """Sets the output, which a text has once: in REGISTER, or beside the query's form."""
        if self._said not in (None, operator.upper()):
            raise self._error(f"REGISTER says {self._said}.", self._span(operator))
        self._output = self._said = operator.upper()

    def register_query(
        self, token: Token, kind: Token, name: ast.Constant, every: None = None
    ) -> ast.Register:
        """``REGISTER QUERY name COMPUTED EVERY d AS``, and REGISTER STREAM."""
        return ast.Register(self._output, name, self._span(token))

    def regime(self, token: Token, name: ast.Constant) -> None:
        """``UNDER ENTAILMENT REGIME r``."""
        word = _REGIMES.get(_name(name))
        if word is None:
            hint = f"Say one of {', '.join(f'<{iri}>' for iri in _REGIMES)}."
            raise self._unsupported_error(f"The regime <{_name(name)}>", name.span, hint)
        self._entailment = word

    def computed_every(self, token: Token, length: int) -> None:
        """``COMPUTED EVERY d``."""
        self._note("COMPUTED EVERY", "policy", token)
        self._reporting = replace(self._reporting, every=length)

    def word(self, token: Token) -> ast.Constant:
        """Returns the name of a stream or query that is a word alone."""
        return ast.Constant(Iri(str(token)), self._span(token))

    # --- windows beside FROM, and in patterns

    def from_window(
        self, token: Token, name: ast.Constant, stream: ast.Constant, spec: ast.WindowSpec
    ) -> ast.WindowClause:
        """``FROM NAMED WINDOW name ON stream [...]``."""
        return ast.WindowClause(name, stream, spec, self._span(token))

    def from_merged_window(
        self, token: Token, name: ast.Constant, stream: ast.Constant, spec: ast.WindowSpec
    ) -> ast.WindowClause:
        """``FROM WINDOW name ON stream [...]``: a part of the default graph."""
        return ast.WindowClause(name, stream, spec, self._span(token), True)

    def from_stream(
        self, token: Token, stream: ast.Constant, spec: ast.WindowSpec
    ) -> ast.WindowClause | None:
        """``FROM STREAM s [...]``."""
        if not self._dialect.merged:
            return ast.WindowClause(stream, stream, spec, self._span(token))
        return self._unnamed_window(token, stream, spec, merged=True)

    def from_named_stream(
        self, token: Token, stream: ast.Constant, spec: ast.WindowSpec
    ) -> ast.WindowClause | None:
        """``FROM NAMED STREAM s [...]``: a graph of that name; in SPARQLstream as FROM STREAM."""
        if self._dialect.name == "sparqlstream":
            return self.from_stream(token, stream, spec)
        self._graphs[_name(stream)] = None
        return ast.WindowClause(stream, stream, spec, self._span(token))

    def stream(self, token: Token, stream: ast.Name, *rest: Any) -> ast.Window:
        """``STREAM s [...] {}``, and ``STREAM s {}`` of a window beside FROM."""
        self._named = True
        *specs, group = rest
        every = isinstance(stream, ast.Var)
        if not specs:
            return ast.Window(stream, group, self._span(token), every)
        clause = self._unnamed_window(token, stream, specs[0], merged=False)
        if clause is not None:
            self._windows.append(clause)
        if every:
            return ast.Window(stream, group, self._span(token), every, specs[0])
        return ast.Window(_call(stream, specs[0]), group, self._span(token))

    def window(self, token: Token, name: ast.Name, group: ast.Group) -> ast.Window:
        """WINDOW."""
        self._named = True
        return ast.Window(name, group, self._span(token))

    def graph(self, token: Token, name: ast.Name, group: ast.Group) -> ast.Graph | ast.Window:
        """GRAPH, also of a window that FROM NAMED STREAM makes a graph."""
        if isinstance(name, ast.Var):
            return ast.Graph(name, group, self._span(token), tuple(self._graphs))
        if isinstance(name, ast.Constant) and _name(name) in self._graphs:
            return ast.Window(name, group, self._span(token))
        return super().graph(token, name, group)

    def _unnamed_window(
        self, token: Token, stream: ast.Name, spec: ast.WindowSpec, *, merged: bool
    ) -> ast.WindowClause | None:
        """Returns the window of a stream and brackets; None if there is one already."""
        name = _call(stream, spec)
        if _name(name) in self._seen:
            return None
        self._seen.add(_name(name))
        return ast.WindowClause(name, stream, spec, self._span(token), merged)

    # --- brackets

    def range_spec(self, length: int, step: int | str | None = None) -> ast.Range:
        """``RANGE d STEP d``."""
        if step is None and not self._dialect.tumbling_range:
            return ast.Range(length, None)
        return ast.Range(length, step if isinstance(step, int) else length)

    def tumbling_spec(self, token: Token, length: int) -> ast.Range:
        """``TUMBLING d``."""
        return ast.Range(length, length)

    def past_spec(
        self, start: Moment, end: Moment | None, step: int | str | None = None
    ) -> ast.Range:
        """``FROM NOW-d TO NOW-d STEP d``."""
        to = 0 if end is None else end.before
        if to >= start.before:
            raise self._error(
                "A window in the past ends after it starts: FROM is longer ago than TO.", start.span
            )
        if isinstance(step, str):
            step = start.before - to
        return ast.Range(start.before, step, to)

    def triples_spec(self, count: Token, step: Token | str | None = None) -> ast.LastTriples:
        """``TRIPLES n``, ``RANGE n TRIPLES``."""
        return self.elements_spec(
            count, _TUMBLES if step is None and self._dialect.tumbling_triples else step
        )

    def elements_spec(self, count: Token, step: Token | str | None = None) -> ast.LastTriples:
        """``ELEMENTS n STEP m``."""
        number = self._positive(count, "A window of the last triples holds at least one.")
        if step is None:
            return ast.LastTriples(number)
        if not isinstance(step, Token):
            return ast.LastTriples(number, number)
        return ast.LastTriples(number, self._positive(step, "A step is at least one triple."))

    def session_spec(self, gap: int) -> ast.Session:
        """``SESSION d``."""
        return ast.Session(gap)

    def now_spec(self, token: Token) -> ast.Instant:
        """``NOW``."""
        return ast.Instant.NOW

    def all_spec(self) -> ast.Instant:
        """``ALL``."""
        return ast.Instant.ALL

    def tumbling(self, token: Token) -> str:
        """``TUMBLING``."""
        return _TUMBLES

    def bare_step(self, *nothing: Any) -> str:
        """SPARQLstream's STEP without a length."""
        return _TUMBLES

    def moment(self, token: Token, sign: Token | None = None, length: int = 0) -> Moment:
        """``NOW - d``, ``NOW``."""
        if sign == "+":
            raise self._error(
                "A window does not reach into the future: NOW-PT5M.", self._span(sign)
            )
        return Moment(length, self._span(token))

    def length(self, number: Token, unit: Token | None = None) -> int:
        """A duration in one of its spellings."""
        return self._milliseconds(number, unit, least=1)

    def ago(self, number: Token, unit: Token | None = None) -> int:
        """A duration before now, which may be none: ``TO NOW - 0 s``."""
        return self._milliseconds(number, unit, least=0)

    def _milliseconds(self, number: Token, unit: Token | None, least: int) -> int:
        try:
            return milliseconds(f"{number}{unit or ''}", least)
        except ValueError as error:
            raise self._error(str(error), self._span(number)) from None

    # --- reports

    def t0(self, token: Token, value: Token, datatype: ast.Constant | None = None) -> None:
        """``T0 ms`` and ``T0 "ISO"``."""
        self._note("T0", "t0", token)
        try:
            self._reporting = replace(self._reporting, t0=parse_time(value.strip("\"'")))
        except UsageError as error:
            raise self._error(error.message, self._span(value)) from None

    def _note(self, words: str, kind: Literal["policy", "t0", "tick"], token: Token | None) -> None:
        """Records a clause on reports; token None: at REPORT, which is built after its policies."""
        span = Span(0, 0) if token is None else self._span(token)
        self._report_clauses.append(ast.ReportClause(words, kind, span))

    def report(self, token: Token, *policies: None) -> None:
        """Ends REPORT; its policies have been recorded."""
        self._report_clauses = [
            replace(c, span=self._span(token)) if c.span == Span(0, 0) else c
            for c in self._report_clauses
        ]

    def on_close(self, token: Token) -> None:
        """ON_WINDOW_CLOSE."""
        self._note(str(token), "policy", token)
        self._reporting = replace(self._reporting, policy="close")

    def on_change(self, token: Token) -> None:
        """ON_CONTENT_CHANGE."""
        self._note(str(token), "policy", token)
        self._reporting = replace(self._reporting, policy="change")

    def non_empty(self, token: Token) -> None:
        """NON_EMPTY_CONTENT."""
        self._reporting = replace(self._reporting, nonempty=True)

    def periodic(self, length: int) -> None:
        """PERIODIC d."""
        self._note("PERIODIC", "policy", None)
        self._reporting = replace(self._reporting, every=length)

    def tick(self, token: Token, ticking: Token) -> None:
        """Ignores TICK, since results do not depend on it; refuses a tick for each element."""
        self._note(f"TICK {ticking}", "tick", token)
        if ticking.upper().startswith("TUPLE"):
            hint = "Elements of one instant are seen together: TIME_DRIVEN or BATCH_DRIVEN."
            raise self._unsupported_error("TICK TUPLE_DRIVEN", self._span(token), hint)

    # --- numbers and errors

    def _positive(self, token: Token, message: str) -> int:
        number = self._count(token)
        if number == 0:
            raise self._error(message, self._span(token))
        return number

    def _count(self, token: Token) -> int:
        span: Span = self._span(token)
        if len(token) > len(str(MAX)) or int(token) >= MAX:
            raise self._error(f"The number {token[:30]} is too large here.", span)
        return int(token)

    def _unsupported_error(self, feature: str, span: Span, hint: str) -> UnsupportedError:
        return UnsupportedError(
            f"{feature} is not supported yet.", span=span, text=self._source.text, hint=hint
        )


def _name(constant: ast.Constant) -> str:
    assert isinstance(constant.term, Iri), "streams are named by IRIs"
    return constant.term.value


def _call(stream: ast.Name, spec: ast.WindowSpec) -> ast.Constant:
    """Returns the name of a window that the text does not name."""
    name = "?" if isinstance(stream, ast.Var) else _name(stream)
    return ast.Constant(Iri(call(name, spec)), stream.span)
