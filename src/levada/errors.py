"""Every error that Levada raises on purpose, as one tree.

    LevadaError
    ├── UsageError            a wrong option, app file, name or call                     exit 2
    ├── QueryError            a query text that cannot be registered, with its position  exit 2
    │   ├── QuerySyntaxError        the text does not parse
    │   ├── UnsupportedError        valid, but not supported yet: names the feature
    │   ├── UnknownNameError        an unknown prefix, stream, graph, function, column
    │   └── QueryFailureError       code of Levada fails on the text
    ├── SourceError           a stream or static file that cannot be read                exit 1
    │   ├── MissingError            the path of a stream names nothing               exit 2
    │   ├── FileFault               one file of a stream: a dead letter, and the run continues
    │   ├── AwayError               a broker that does not answer: the engine waits
    │   └── LostError               offsets that were deleted before they were read
    ├── PromiseError          a stream breaks a promise: its queries are suspended
    ├── SinkError             results that cannot be written                             exit 1
    │   ├── TargetAwayError         a target that does not answer: the engine waits
    │   │   └── RefusedValueError       it refuses a value: tried again, as a limit may be raised
    │   ├── TargetTakenError        another engine writes to the target
    │   └── UnfitResultError        the target cannot hold them: their query is suspended
    ├── CheckpointError       a foreign, locked, damaged or ended checkpoint             exit 1
    │   ├── DamagedError            a file of it is missing, cut short or altered
    │   └── OvertakenError          another engine has taken it over                     exit 4
    ├── UnmatchedError        a column or pattern matched nothing, with --strict         exit 6
    ├── JavaError             no usable Java                                             exit 1
    └── EngineError           the engine stopped because of a failure                    exit 1
         ├── LostTaskError        tasks, or their sent rows, are lost: the epoch runs again
         ├── ExcessError          an operator makes too much: its query is suspended
         ├── EvaluationError      code of Levada fails on a query: it is suspended
         │   └── UserFunctionError       a function of the user fails, or is not declared
         ├── ManyReportsError     too many reports for one epoch: it ends earlier
         └── OverMemoryError      a task would hold too much: its epoch becomes smaller

A user's mistake is one of these; a programmer's mistake is an ``assert`` with a sentence.

Messages quote texts of users and clients. So their length has a bound (``MAX_MESSAGE``), they have
no control characters but line ends and tabs, and of a long line of a query's text they quote only
the surroundings of the place (``MAX_QUOTED``).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

MAX_MESSAGE = 2000  # characters of a message, and of a hint
MAX_QUOTED = 80  # characters of a long line of a text, and of a name that is compared
MAX_LINE = 200  # characters of a line that is shown whole

SHARED = "Every host must see it under this path: put it on storage that all of them share."
"""The remedy if an executor does not see a path of the driver."""


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a query text: line and column count from 1."""

    line: int
    column: int


class LevadaError(Exception):
    """The root of the errors. ``message`` is one sentence for people; ``hint`` says what to do, or
    is empty.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message, self.hint = shorten(message), shorten(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        """Returns the sentence that IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(LevadaError):
    """A wrong option, name, app file or call."""

    exit_code = 2


class QueryError(LevadaError):
    """A query text that cannot be registered.

    ``span`` is the place (or None), ``expected`` the tokens that could be there, ``text`` the whole
    query text.
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        span: Span | None = None,
        text: str = "",
        expected: Iterable[str] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.span = span
        self.text = text
        self.expected = tuple(expected)

    def __str__(self) -> str:
        where = f"line {self.span.line}, column {self.span.column}: " if self.span else ""
        lines = [where + self.message]
        if self.span and self.text:
            lines += point_at(self.text, self.span)
        if self.expected:
            lines.append("expected: " + ", ".join(self.expected))
        if self.hint:
            lines.append(self.hint)
        return "\n".join(lines)


class QuerySyntaxError(QueryError):
    """A text that does not parse."""


class UnsupportedError(QueryError):
    """A feature that Levada does not support yet; the message names it."""


class UnknownNameError(QueryError):
    """An unknown prefix, stream, graph, function or column; the hint lists the existing names."""


class QueryFailureError(QueryError):
    """A text on which code of Levada failed: a fault of Levada, which refuses the query."""

    @classmethod
    def from_error(cls, error: Exception, text: str) -> QueryFailureError:
        """Returns the refusal of a text on which ``error`` was raised.

        >>> print(QueryFailureError.from_error(KeyError("x"), "SELECT * {}"))
        Levada failed on this query with KeyError: 'x'.
        This is a fault of Levada: please report it with the text.
        """
        said = " ".join(str(error).split())[:300]
        message = f"Levada failed on this query with {type(error).__name__}: {said}."
        hint = "This is a fault of Levada: please report it with the text."
        return cls(message, text=text, hint=hint)


class SourceError(LevadaError):
    """A stream or static file that cannot be read. ``stream``: the one stream that cannot."""

    stream = ""


class MissingError(SourceError):
    """A path of a stream, or of a file to inspect, without a file or folder there: a wrong use."""

    exit_code = 2


# not an error in a folder of files: there the file becomes a dead letter
class FileFault(SourceError):  # noqa: N818
    """A file of a stream that does not match its name or the stream's columns. ``other``: the file
    is gone, or differs from the one that the driver listed.
    """

    other = False


class AwayError(SourceError):
    """A source of a stream that does not answer: the engine waits for it."""


class LostError(SourceError):
    """Input of a stream that was deleted before it was read. Its message can name the epoch
    (``with_epoch``).
    """

    def with_epoch(self, epoch: int) -> LostError:
        """Returns the error with the epoch that was to read the input."""
        return LostError(f"Epoch {epoch}: {self.message}", hint=self.hint)


class PromiseError(LevadaError):
    """A stream that breaks a promise (``closed=element``): its queries are suspended."""

    def __init__(self, message: str, *, stream: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.stream = stream


class SinkError(LevadaError):
    """Results that cannot be written."""


class TargetAwayError(SinkError):
    """A target of results that does not answer: the engine waits for it."""


class RefusedValueError(TargetAwayError):
    """A target that refuses a value: it is tried again, since a limit may be raised."""


class TargetTakenError(SinkError):
    """A target of results to which another engine writes, which has shut this one out."""


class UnfitResultError(SinkError):
    """Results that their target cannot hold: the query is suspended."""


class CheckpointError(LevadaError):
    """A foreign, locked, damaged or ended checkpoint."""


class DamagedError(CheckpointError):
    """A file of a checkpoint that is missing, cut short or altered."""


class OvertakenError(CheckpointError):
    """A checkpoint that another engine has taken over: this engine commits and publishes no
    more.
    """

    exit_code = 4


class UnmatchedError(LevadaError):
    """A column or a pattern that has matched nothing in a run with ``--strict``."""

    exit_code = 6


class JavaError(LevadaError):
    """A missing or unusable Java."""


class EngineError(LevadaError):
    """A failure that stopped the engine."""


class LostTaskError(EngineError):
    """A task of Spark that ended without an error, or whose sent rows are lost. Its input may have
    killed it, or its executor is gone. The epoch is run again.
    """


class ExcessError(EngineError):
    """An operator that makes more than a query may have.

    ``node`` and ``member`` are its place in the plan, from which the driver derives the query.
    ``limit``: the exceeded limit (``levada.core.query_limits.QueryLimits``).
    """

    def __init__(
        self, message: str, *, node: int = -1, member: int = -1, limit: str = "rows"
    ) -> None:
        super().__init__(message)
        self.node, self.member, self.limit = node, member, limit


class EvaluationError(EngineError):
    """Code of Levada that failed on a query: the engine suspends the query and continues.

    ``node`` is the operator in the plan (-1: unknown), ``place`` the file and line of Levada.
    """

    def __init__(self, message: str, *, node: int = -1, place: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.node, self.place = node, place


class UserFunctionError(EvaluationError):
    """A function that the user of the engine declared, and that failed or is missing: the engine
    suspends the query. ``place`` is the file and line of the function.
    """


class ManyReportsError(EngineError):
    """An epoch with more reports than may be made at once.

    ``until``: the new end of the epoch (ms). ``width``: the time that it then covers. ``end``: the
    end of the counted reports.
    """

    def __init__(self, message: str, *, until: int = 0, width: int = 1, end: int = 0) -> None:
        super().__init__(message)
        self.until, self.width, self.end = until, width, end


class OverMemoryError(EngineError):
    """A task that would hold more than ``--memory`` allows: its epoch becomes smaller.

    ``held``: bytes of rows. ``middle``: an instant between the present and the planned completeness
    of the streams (ms; None without one). ``width``: the time that an epoch up to there covers.
    ``end``: the planned completeness.
    """

    def __init__(
        self,
        message: str,
        *,
        held: int = 0,
        middle: int | None = None,
        width: int = 1,
        end: int = 0,
    ) -> None:
        super().__init__(message)
        self.held, self.middle, self.width, self.end = held, middle, width, end


def point_at(text: str, span: Span) -> list[str]:
    r"""Returns the line of a text with a place, and below it a caret at the place. A long line is
    cut to the characters around the place. Unprintable characters become question marks.

    >>> print("\n".join(point_at("SELECT *\n{ ?s }", Span(2, 6))))
      { ?s }
           ^
    >>> point_at(500 * "-" + "?x" + 500 * "-", Span(1, 501))[0] == f"  ..{40 * '-'}?x{38 * '-'}.."
    True
    """
    # str.splitlines would split at other characters, too
    source = text.rstrip("\n").split("\n")
    line = source[min(span.line, len(source)) - 1].rstrip("\r")
    first, last = 0, len(line)
    if len(line) > MAX_LINE:
        first = max(min(span.column - 1 - MAX_QUOTED // 2, len(line) - MAX_QUOTED), 0)
        last = first + MAX_QUOTED
    quoted = line[first:last].replace("\t", " ")
    quoted = "".join(char if char.isprintable() else "?" for char in quoted)
    before, after = ".." if first else "", ".." if last < len(line) else ""
    caret = " " * (len(before) + min(span.column - 1 - first, MAX_LINE)) + "^"
    return [f"  {before}{quoted}{after}", f"  {caret}"]


def errno_of(error: BaseException | None) -> int:
    """Returns the number of the system's error that caused an error; 0 without one.

    >>> errno_of(OSError(28, "No space left on device")), errno_of(UsageError("No."))
    (28, 0)
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return error.errno
        error = error.__cause__
    return 0


def escape_controls(text: str) -> str:
    r"""Returns a text with escapes for all characters that are not printable, which a terminal
    might obey, except line ends and tabs.

    >>> print(escape_controls("caf\xe9 \x1b[2J"))
    café \x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def shorten(text: str, most: int = MAX_MESSAGE) -> str:
    """Returns a text of at most ``most`` characters: of a longer one the beginning and the end.
    Control characters are escaped.

    >>> shorten("It is short."), shorten(100 * "a" + 100 * "b", 26)
    ('It is short.', 'aaaaaaaaaaa .. bbbbbbbbbbb')
    """
    text = escape_controls(text)
    if len(text) <= most:
        return text
    half = (most - 4) // 2
    return f"{text[:half]} .. {text[len(text) - half :]}"


def unreadable(path: object, reason: str, *, way: str = "") -> CheckpointError:
    """Returns the error for a damaged file of a checkpoint. ``way``: another remedy, if going back
    to the previous manifest does not help.

    >>> print(unreadable("ck/levada.json", "it is altered"))
    The checkpoint's file ck/levada.json cannot be read: it is altered. Go on from a copy of the \
checkpoint, or start anew in an empty folder.
    """
    kind = CheckpointError if way else DamagedError
    return kind(
        f"The checkpoint's file {path} cannot be read: {reason}.",
        hint=f"Go on from a copy of the checkpoint, or {way or 'start anew in an empty folder'}.",
    )


def near(name: str, known: Iterable[str]) -> str:
    """Returns a sentence with the near misses of ``name`` among ``known``, or with all of
    ``known``.

    >>> near("formt", ["format", "path"])
    'Did you mean format?'
    """
    names, text = sorted(set(known)), str(name)  # a program may pass None
    close: list[str] = []
    if len(text) <= MAX_QUOTED:  # two texts are compared by the product of their lengths
        close = difflib.get_close_matches(text, [n for n in names if len(n) <= MAX_QUOTED], n=3)
    if close:
        return "Did you mean " + " or ".join(close) + "?"
    return "Known: " + ", ".join(names) + "." if names else "None is known."
