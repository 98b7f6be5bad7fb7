"""The tables of Tumble, Hop, Cumulate and Session: rows of a stream and the bounds of their window.

A row of Tumble is in one window, which follows from its time. A row of the others is in several.
Its window is the last one that has closed at the report. Cumulate leaves out the rows before the
beginning of its window. All windows exclude their end.
"""

from __future__ import annotations

from levada.core.event_time import Window, WindowKind
from levada.core.expressions import Call, Expression, Function, Var
from levada.language.cql.ast import WindowSpec, WindowWord
from levada.language.translate.cql.functions import number
from levada.plan.logical import nodes

START, END = "window_start", "window_end"
_REPORT = Call(Function.REPORT_TIME, ())


def window_of(spec: WindowSpec, t0: int, has_t0: bool) -> Window:
    """Returns the window of a call."""
    if spec.word is WindowWord.SESSION:
        return Window(WindowKind.ENDED, range=spec.range, t0=t0, t0_given=has_t0)
    return Window(WindowKind.CLOSE_OPEN, range=spec.range, step=spec.slide, t0=t0, t0_given=has_t0)


def columns_of(spec: WindowSpec) -> tuple[str, ...]:
    """Returns the columns that a call adds; a session's start is that of its least time."""
    return (END,) if spec.word is WindowWord.SESSION else (START, END)


def window_rows(
    spec: WindowSpec, window: int, columns: tuple[tuple[str, str], ...], t0: int
) -> nodes.Node:
    """Returns the rows of a call; ``columns``: the used columns with their variables."""
    added = [(name, v) for name, v in columns if name in columns_of(spec)]
    read = tuple((name, v) for name, v in columns if (name, v) not in added)
    by_time = spec.word is WindowWord.TUMBLE
    times = next((v for name, v in read if name == spec.column), f".time{window}")
    needs_time = spec.word is WindowWord.CUMULATE or (by_time and added)
    if needs_time and (spec.column, times) not in read:
        read = (*read, (spec.column, times))
    node: nodes.Node = nodes.Scan(nodes.InWindow(window), read)
    start = _start(spec, Var(times), t0)
    if spec.word is WindowWord.CUMULATE:
        node = nodes.Filter(node, Call(Function.GREATER_EQUAL, (Var(times), start)))
    for name, variable in added:
        end = Call(Function.ADD, (start, number(spec.range))) if by_time else _close(spec, t0)
        node = nodes.Extend(node, variable, start if name == START else end)
    return node


def _start(spec: WindowSpec, time: Expression, t0: int) -> Expression:
    """Returns the beginning of the window of a row."""
    match spec.word:
        case WindowWord.TUMBLE:
            return _beginning(time, spec.range, t0)
        case WindowWord.CUMULATE:
            return _beginning(_minus(_close(spec, t0), number(1)), spec.range, t0)
        case _:
            return _minus(_close(spec, t0), number(spec.range))


def _close(spec: WindowSpec, t0: int) -> Expression:
    """Returns the last close up to the report; other windows of the query report in between."""
    if spec.word is WindowWord.SESSION:
        return _REPORT
    return _beginning(_REPORT, spec.slide, t0 + spec.range)


def _beginning(time: Expression, size: int, t0: int) -> Expression:
    """Returns the greatest ``t0 + k * size`` up to a time."""
    rest = _remainder(_minus(time, number(t0)), size)
    return _minus(time, _remainder(Call(Function.ADD, (rest, number(size))), size))


def _remainder(value: Expression, size: int) -> Expression:
    return Call(Function.REMAINDER, (value, number(size)))


def _minus(a: Expression, b: Expression) -> Expression:
    return Call(Function.SUBTRACT, (a, b))
