"""Turns leaf operators into shapes and members: patterns, columns and constants by slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from levada.core.event_time import Window, WindowKind
from levada.core.expressions import Var
from levada.core.frozen import frozen
from levada.core.query_model import StreamWindow
from levada.core.rdf_terms import Term
from levada.plan.binding.slot_resolution import slots_of
from levada.plan.execution import steps as s
from levada.plan.execution.joins import RangedChanges
from levada.plan.execution.shapes import Member
from levada.plan.logical.nodes import Alternative, Query, Reporting
from levada.plan.physical import operators as p
from levada.plan.sharing.count_window_sharing import numbers_of
from levada.plan.sharing.per_leaf_times import window_of

Graphs = tuple[str | None, ...]
Leaf = p.Match | p.Entailed | p.Star | p.Scan | p.Constant


def is_static(spec: p.Spec) -> bool:
    """Whether this is a pattern over static graphs, whose rows are compared by all columns."""
    return isinstance(spec, (p.Match, p.Entailed)) and spec.stream is None


def leaf(
    spec: Leaf,
    variables: tuple[str, ...],
    names: tuple[str, ...],
    since: int,
    reread_graphs: Graphs,
) -> tuple[s.Step, Member]:
    """Returns the step and the member of a leaf that binds ``variables`` and outputs ``names``.

    ``since``: the plan version that reads static data and constants. ``reread_graphs``: the graphs
    at whose replacement they are read again.
    """
    kept = slots_of(names, variables)
    match spec:
        case p.Match(pattern, stream, graphs, lifted):
            places, terms = positions(pattern.positions, variables, names)
            return s.Match(places, kept, stream is None, lifted), _source_member(
                stream, graphs, terms, since, reread_graphs
            )
        case p.Entailed():
            return _entailed_step(spec, variables, kept, since, reread_graphs)
        case p.Star(patterns, stream):
            legs = [positions(t.positions, variables, names) for t in patterns]
            constants = tuple(t for _, terms in legs for t in terms)
            return s.Star(tuple(slots for slots, _ in legs), kept), Member(
                streams=(stream,), constants=constants
            )
        case p.Scan(stream, columns, types, sign):
            step = s.Scan(tuple(columns[k] for k in kept), tuple(types[k] for k in kept), sign)
            return step, Member(streams=(stream,))
        case p.Constant(rows):
            chosen = tuple(tuple(r[k] for k in kept) for r in rows)
            return s.Constant(len(kept)), Member(
                rows=chosen, since=since, reread_graphs=reread_graphs
            )


def _source_member(
    stream: str | None,
    graphs: Graphs,
    terms: tuple[Term | None, ...],
    since: int,
    reread_graphs: Graphs,
    *,
    ways: tuple[s.EntailmentAlternative, ...] = (),
) -> Member:
    """Returns a pattern's member; a pattern over static graphs belongs to its plan version."""
    streams = () if stream is None else (stream,)
    if stream is not None:
        since, reread_graphs = 0, ()
    return Member(
        streams=streams,
        constants=terms,
        graphs=graphs,
        since=since,
        ways=ways,
        reread_graphs=reread_graphs,
    )


def _entailed_step(
    spec: p.Entailed, variables: tuple[str, ...], kept: tuple[int, ...], since: int, reread_graphs:
    Graphs
) -> tuple[s.Step, Member]:  # fmt: skip
    """Returns the step with the forms of the alternatives, and the member with each alternative."""
    slots, terms = positions(spec.pattern.positions, variables, ())
    alternatives = [_way(alternative, variables) for alternative in spec.alternatives]
    forms = {form: i for i, form in enumerate(dict.fromkeys(form for form, _, _ in alternatives))}
    ways = sorted(
        (
            s.EntailmentAlternative(forms[form], constants, way_slots)
            for form, constants, way_slots in alternatives
        ),
        key=lambda way: way.form,
    )
    ends = (spec.pattern.subject, spec.pattern.object)
    spread = tuple(i for i, k in enumerate(kept) if spec.alike and Var(variables[k]) in ends)
    step = s.Entailed(slots, tuple(forms), kept, spec.stream is None, spread, spec.alike)
    return step, _source_member(
        spec.stream, spec.graphs, terms, since, reread_graphs, ways=tuple(ways)
    )


def _way(
    alternative: Alternative, variables: tuple[str, ...]
) -> tuple[s.Form, tuple[Term | None, Term | None, Term | None], tuple[Term, ...]]:  # fmt: skip
    """Returns the form of one alternative, the terms of its pattern, and the terms of its row."""
    places = alternative.pattern.positions
    binds = dict(alternative.binds)
    values = [binds.get(v, Var(v)) for v in variables]
    sources = tuple(places.index(value) if isinstance(value, Var) else -1 for value in values)
    terms = tuple(value for value in values if not isinstance(value, Var))
    a, b, c = (x if isinstance(x, Var) else None for x in places)
    repeats = (
        (a is not None and a == c) * 1
        + (a is not None and a == b) * 2
        + (b is not None and b == c) * 4
    )
    constants = tuple(None if isinstance(x, Var) else x for x in places)
    return (
        s.Form(sources, repeats, alternative.resource),
        (constants[0], constants[1], constants[2]),
        terms,
    )


def positions(
    places: Sequence[Var | Term], variables: tuple[str, ...], names: tuple[str, ...]
) -> tuple[tuple[int, int, int], tuple[Term | None, ...]]:  # fmt: skip
    """Returns the slot of each pattern position (-1: a term) and its term (None: a variable)."""
    slots = tuple(variables.index(x.name) if isinstance(x, Var) else -1 for x in places)
    constants = tuple(None if isinstance(x, Var) else x for x in places)
    return (slots[0], slots[1], slots[2]), constants


# Turns a query's windows, streams and start into the times of its members: when rows count, and
# when the query reports.
#
# A member's windows are those of its rows, or those of all reports of its level. The window
# ``static`` follows the windows of a query, for static graphs that may be replaced. Rows carry its
# times; reports do not use it (docs/architecture.md#a-triples-way). If queries share a count
# window, its rows also have a window of their numbers. If queries share a join over one window with
# others over several, its rows have times of the window for each pattern (``per_leaf_times``).


GRIDDED = (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED)
STATIC = StreamWindow("", "", Window(WindowKind.STATIC))


def by_range(
    kinds: tuple[WindowKind, ...], rows: tuple[int, ...] | None, member: Member
) -> RangedChanges | None:
    """Returns the step of an IStream that can be shared with IStreams over other ranges.

    None: its rows do not begin in all of their windows at once, or their end depends on more than
    the range.
    """
    if rows is None or len(kinds) != 1 or len(member.windows) != 1 or member.nonempty:
        return None
    (window,) = member.windows
    if member.show_empty or window.to or window.t0_given:
        return None
    if window.kind is WindowKind.RANGE:
        return RangedChanges(kinds, rows)
    if window.kind not in GRIDDED:
        return None
    return RangedChanges(kinds, rows, window.step, (window.t0 + window.range) % window.step)


@frozen
class Timing:
    """The times of one query: its ``start``, ``show_empty`` (it writes empty reports), and the
    ``reread_graphs`` of its members.
    """

    query: Query
    start: int
    show_empty: bool
    reread_graphs: tuple[str | None, ...] = ()

    def without_windows(self, reread_graphs: tuple[str | None, ...]) -> Timing:
        """Returns the times of a part that reads no window; it is answered as a query without
        windows.
        """
        return Timing(
            replace(self.query, windows=(), reports=Reporting()), self.start, True, reread_graphs
        )

    def kinds(self, level: tuple[int, ...]) -> tuple[WindowKind, ...]:
        """Returns the kinds of the windows that decide the reports of a level, with its clock."""
        return tuple(w.kind for w in (*(self.query.windows[w].window for w in level), *self._clock))

    @property
    def _clock(self) -> tuple[Window, ...]:
        """The clock that decides the reports in place of the windows; it has no stream."""
        return () if self.query.reports.clock is None else (self.query.reports.clock,)

    @property
    def _static(self) -> int:
        return len(self.query.windows)

    def places(self, level: tuple[int, ...], carried: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the positions of the windows of rows in ``member_of_reports``."""
        behind = len(self._windows_over(level)) + len(self._clock)
        windows = map(window_of, carried)
        return tuple(behind if w == self._static else level.index(w) for w in windows)

    def member_of_rows(self, windows: tuple[int, ...]) -> Member:
        """Returns the member with the windows whose times rows carry."""
        return self._member(self._windows_over(tuple(map(window_of, windows))))

    def member_of_reports(self, level: tuple[int, ...], carried: tuple[int, ...] = ()) -> Member:
        """Returns the member that decides the reports of a level: its windows, its clock, and
        ``static``.

        ``static`` is added if the rows of the level have its times.
        """
        member = self._member(self._windows_over(level))
        behind = (*self._clock, *([STATIC.window] if self._static in carried else []))
        return member._replace(
            windows=member.windows + behind,
            streams=member.streams + ("",) * len(behind),
            show_empty=self.show_empty,
            nonempty=self.query.reports.nonempty,
            reread_graphs=self.reread_graphs,
        )

    def snapshot_kinds(self, level: tuple[int, ...], reports: Reporting) -> tuple[WindowKind, ...]:
        """Returns the kinds of a level's windows, followed by its clock."""
        return tuple(w.kind for w in self._reporting_windows(level, reports))

    def member_of_snapshot(
        self, level: tuple[int, ...], reports: Reporting, *, show_empty: bool
    ) -> Member:
        """Returns the member that decides the reports of a level kept by changes.

        It has the level's windows, its clock, and the windows below them, which only delay reports.
        """
        on = self._windows_over(level)
        beneath = on[len(level) :]
        clock = [
            StreamWindow("", "", w) for w in self._reporting_windows(level, reports)[len(level) :]
        ]
        return self._member([*on[: len(level)], *clock, *beneath])._replace(show_empty=show_empty)

    def _reporting_windows(self, level: tuple[int, ...], reports: Reporting) -> list[Window]:
        return [self.query.windows[w].window for w in level] + [
            w for w in (reports.clock,) if w is not None
        ]

    def _windows_over(self, windows: tuple[int, ...]) -> list[StreamWindow]:
        """Returns windows with their streams, followed by the windows below them, which delay
        these.
        """
        on = [self._window_on(w, windows) for w in windows]
        beneath = sorted({w for o in on for w in o.beneath} - set(windows))
        return on + [self.query.windows[w] for w in beneath]

    def _window_on(self, w: int, windows: tuple[int, ...]) -> StreamWindow:
        """Returns a window, ``static``, or the window of numbers of a count window
        (``numbers_of``).

        Without the latter among ``windows``, the count window keeps its count.
        """
        if w == self._static:
            return STATIC
        on = self.query.windows[max(w, numbers_of(w))]
        if w >= 0 and numbers_of(w) not in windows:
            return on
        window = replace(on.window, count=0)
        if w < 0:
            window = replace(window, kind=WindowKind.NUMBERS, range=on.window.count)
        return replace(on, window=window)

    def _member(self, on: list[StreamWindow]) -> Member:
        return Member(
            windows=tuple(w.window for w in on),
            streams=tuple(w.stream for w in on),
            start=self.start,
        )
