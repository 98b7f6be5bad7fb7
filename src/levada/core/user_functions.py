"""Functions in Python that the user of the engine adds to SPARQL and CQL, by their IRIs.

A declaration belongs to this process: it is made when the module that has it is imported. Texts of
queries, checkpoints and clients name a function by its IRI or its CQL name alone, so they can only
call what the program or the app file has declared. Executors import the same modules, by the names
that the driver sends with each job. A function sees whole columns, never a single row, and its
result must follow from its arguments alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from levada.core.code_loading import load_function
from levada.core.frozen import frozen
from levada.core.names import is_iri
from levada.errors import UsageError, UserFunctionError, near


class ValueType(StrEnum):
    """The types of arguments and results. ``TERM`` is the N-Triples text of any value."""

    INTEGER = "integer"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    IRI = "iri"
    TERM = "term"


NUMBERS = (ValueType.INTEGER, ValueType.DOUBLE, ValueType.BOOLEAN)
"""The types of states and of the results of aggregates: those of fixed size."""
_RESULTS = (*NUMBERS, ValueType.STRING, ValueType.IRI)
_CQL = (*NUMBERS, ValueType.STRING)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FOR_CQL = "Take and return integer, double, boolean or string, or leave name= out."


@frozen
class UserFunction:
    """A scalar function. ``apply`` receives a Polars series for each argument, without nulls, and
    returns as many values; null is an error of the row. ``place``: ``module:name``.

    >>> @function(iri="http://e/half", arguments=("double",), returns="double")
    ... def half(a):
    ...     return a / 2
    >>> half(3.0), half.iri, half.returns.value
    (1.5, 'http://e/half', 'double')
    """

    iri: str
    name: str
    arguments: tuple[ValueType, ...]
    returns: ValueType
    place: str
    apply: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function of Python."""
        return self.apply(*arguments)


@frozen
class UserAggregate:
    """An aggregate over one argument, whose partial results can be merged.

    ``state``: the columns of a partial result. ``fold`` receives a frame with ``group`` (a number)
    and ``value``, and returns a frame with a row for each group: ``group`` and the state. ``merge``
    receives a frame of partial results, several for a group, and returns one for each. ``finish``
    receives partial results and returns a series with their values.
    """

    iri: str
    name: str
    arguments: tuple[ValueType, ...]
    returns: ValueType
    place: str
    state: Mapping[str, ValueType]
    fold: Callable[..., Any]
    merge: Callable[..., Any]
    finish: Callable[..., Any]


@frozen
class UserOperator:
    """An operator of CQL over the rows of a stream, with state for each key.

    ``takes``: the columns that it reads. ``returns``: those of its rows. ``state``: those of the
    rows that it keeps for a key. ``apply`` receives two frames: new rows with ``row`` (a number),
    ``key`` (a number), ``ts`` (ms) and the taken columns, in the order of key and time; and the
    state of these keys, ``key`` and its columns. It returns two frames: its rows, with the ``row``
    whose time and key each has, and the whole new state of these keys.
    """

    iri: str
    name: str
    place: str
    takes: Mapping[str, ValueType]
    returns: Mapping[str, ValueType]
    state: Mapping[str, ValueType]
    apply: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function of Python."""
        return self.apply(*arguments)


Declared = UserFunction | UserAggregate | UserOperator
DECLARED: dict[str, Declared] = {}
_importing: list[str] = []  # the places that the driver asks of an executor
_Function = TypeVar("_Function", bound=Callable[..., Any])


def function(
    *, iri: str, arguments: Sequence[str], returns: str, name: str = ""
) -> Callable[[Callable[..., Any]], UserFunction]:
    """Declares the decorated function as a scalar function of SPARQL and CQL.

    Rows with an argument that is unbound or not of its type are errors (NULL in CQL), and are not
    passed. A double accepts every number. Raises ``UsageError``.

    - ``iri``: the name in SPARQL, ``<http://example.org/f>(?a)``.
    - ``arguments``: the type of each: integer (64 bits), double, boolean, string, iri or term.
    - ``returns``: integer, double, boolean, string or iri.
    - ``name``: the name in CQL, ``F(a)``, in any case. "": SPARQL alone has the function.

    >>> import levada, polars as pl
    >>> @levada.function(iri="http://e/hypot", arguments=("double", "double"), returns="double")
    ... def hypot(a: pl.Series, b: pl.Series) -> pl.Series:
    ...     return (a * a + b * b).sqrt()
    >>> hypot(pl.Series([3.0]), pl.Series([4.0])).to_list()
    [5.0]
    """

    def declare(apply: Callable[..., Any]) -> UserFunction:
        types = _types(arguments, "argument", tuple(ValueType))
        result = _type(returns, "result", _RESULTS)
        made = UserFunction(iri, name.lower(), types, result, _place_of(apply), apply)
        _declare(made)
        return made

    return declare


def aggregate(
    *, iri: str, argument: str, state: Mapping[str, str], returns: str, name: str = ""
) -> Callable[[type], UserAggregate]:
    """Declares the decorated class as an aggregate of SPARQL and CQL (``UserAggregate``).

    The class has the static functions ``fold``, ``merge`` and ``finish``. The types of ``state``
    and ``returns`` are integer, double or boolean. Raises ``UsageError``.

    >>> import levada, polars as pl
    >>> @levada.aggregate(
    ...     iri="http://e/product", argument="double", state={"p": "double"}, returns="double"
    ... )
    ... class Product:
    ...     @staticmethod
    ...     def fold(rows):
    ...         return rows.group_by("group").agg(p=pl.col("value").product())
    ...     @staticmethod
    ...     def merge(parts):
    ...         return parts.group_by("group").agg(pl.col("p").product())
    ...     @staticmethod
    ...     def finish(parts):
    ...         return parts["p"]
    >>> rows = pl.DataFrame({"group": [0, 0, 0], "value": [2.0, 3.0, 4.0]})
    >>> Product.finish(Product.merge(Product.fold(rows))).to_list()
    [24.0]
    """

    def declare(made_by: type) -> UserAggregate:
        parts = {part: getattr(made_by, part, None) for part in ("fold", "merge", "finish")}
        if lacking := [part for part, call in parts.items() if not callable(call)]:
            raise UsageError(f"The aggregate {made_by.__name__} has no {' and no '.join(lacking)}.")
        columns = {column: _type(t, f"state {column}", NUMBERS) for column, t in state.items()}
        if not columns or "group" in columns:
            raise UsageError(f"The state of {iri} needs columns, none of them named group.")
        types = (_type(argument, "argument", tuple(ValueType)),)
        result, place = _type(returns, "result", NUMBERS), _place_of(made_by)
        made = UserAggregate(iri, name.lower(), types, result, place, columns, **parts)  # type: ignore[arg-type]
        _declare(made)
        return made

    return declare


def operator(
    *,
    iri: str,
    name: str,
    takes: Mapping[str, str],
    returns: Mapping[str, str],
    state: Mapping[str, str],
) -> Callable[[Callable[..., Any]], UserOperator]:
    """Declares the decorated function as an operator of CQL (``UserOperator``).

    CQL reads its rows with ``Table(Name(Table Stream Partition By k))``. The columns are integer,
    double, boolean or string, those of the state integer, double or boolean. A missing value is
    null. Raises ``UsageError``.

    >>> import levada, polars as pl
    >>> @levada.operator(
    ...     iri="http://e/numbered", name="numbered", takes={}, returns={"n": "integer"},
    ...     state={"n": "integer"},
    ... )
    ... def numbered(rows, state):
    ...     known = rows.join(state, on="key", how="left").with_columns(pl.col("n").fill_null(0))
    ...     known = known.with_columns(n=pl.col("n") + pl.int_range(1, pl.len() + 1).over("key"))
    ...     return known.select("row", "n"), known.group_by("key").agg(pl.col("n").max())
    >>> rows = pl.DataFrame({"row": [0, 1], "key": [0, 0], "ts": [5, 9]})
    >>> out, state = numbered(rows, pl.DataFrame({"key": [0], "n": [3]}))
    >>> out["n"].to_list(), state.rows()
    ([4, 5], [(0, 5)])
    """

    def declare(apply: Callable[..., Any]) -> UserOperator:
        columns = {
            what: {column: _type(t, f"{what} {column}", known) for column, t in named.items()}
            for what, named, known in (
                ("takes", takes, _CQL), ("returns", returns, _CQL), ("state", state, NUMBERS)
            )
        }  # fmt: skip
        taken = [c for named in columns.values() for c in named if c in ("row", "key", "ts")]
        if taken or not returns or not name:
            reason = f"{taken[0]} is a column that Levada adds" if taken else "it returns nothing"
            raise UsageError(f"The operator {iri}: {reason if name else 'it needs a name'}.")
        made = UserOperator(iri, name.lower(), _place_of(apply), **columns, apply=apply)
        _declare(made)
        return made

    return declare


def _types(words: Sequence[str], what: str, known: Sequence[ValueType]) -> tuple[ValueType, ...]:
    if isinstance(words, str):
        raise UsageError("The arguments are a list of types.", hint=f'Write ("{words}",).')
    return tuple(_type(word, what, known) for word in words)


def _type(word: str, what: str, known: Sequence[ValueType]) -> ValueType:
    if word not in known:
        raise UsageError(f"The type {word} is not one of a {what}.", hint=near(str(word), known))
    return ValueType(word)


def _place_of(made: Any) -> str:
    return f"{made.__module__}:{made.__qualname__}"


def _declare(made: Declared) -> None:
    """Adds a declaration. The same place may declare again, as a notebook does."""
    if not is_iri(made.iri):
        raise UsageError(f"{made.iri} is not an absolute IRI.", hint="Write http://host/name.")
    if made.name and not _NAME.fullmatch(made.name):
        raise UsageError(f"{made.name} is not a word, so CQL cannot call it.")
    types = () if isinstance(made, UserOperator) else (*made.arguments, made.returns)
    if made.name and not {*types} <= {*_CQL}:
        raise UsageError(f"CQL has no values of all types of {made.name}.", hint=_FOR_CQL)
    replaced: list[str] = []
    for other in DECLARED.values():
        both = "IRI" if other.iri == made.iri else "name" if other.name == made.name != "" else ""
        if both and other.place != made.place and not _importing:
            raise UsageError(
                f"{made.place} and {other.place} declare functions with the same {both}.",
                hint="Give one of them another.",
            )
        if both and other.iri != made.iri:
            replaced.append(other.iri)
    for iri in replaced:
        del DECLARED[iri]
    DECLARED[made.iri] = made


def find_function(iri: str) -> Declared | None:
    """Returns the function with this IRI; None if this process does not declare it."""
    return DECLARED.get(iri)


def declared_for_cql(name: str) -> Declared | None:
    """Returns the function with this CQL name; None without one."""
    return next((f for f in DECLARED.values() if f.name and f.name == name.lower()), None)


def known_iris() -> list[str]:
    """Returns the IRIs of all declared functions."""
    return sorted(DECLARED)


def require(iri: str) -> Declared:
    """Returns the function with this IRI. Raises ``UserFunctionError``, which suspends a query."""
    if (made := DECLARED.get(iri)) is None:
        raise UserFunctionError(
            f"The function <{iri}> is not declared in this process.", hint=HOW_TO_DECLARE
        )
    return made


def operator_of(iri: str) -> UserOperator:
    """Returns the operator with this IRI. Raises ``UserFunctionError``."""
    if not isinstance(made := require(iri), UserOperator):
        raise UserFunctionError(f"<{iri}> was an operator, and is a function now.")
    return made


HOW_TO_DECLARE = (
    "Declare it with @levada.function in a module, and name it in the app file, as in functions: "
    '["module:name"], or import the module before the engine starts.'
)


def places() -> tuple[list[str], list[str]]:
    """Returns the places of all declarations, and the folders that the imports need: those of the
    modules that lie outside of the installed packages.
    """
    if not DECLARED:
        return [], []
    modules = {made.place.partition(":")[0] for made in DECLARED.values()}
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in modules}
    folders = {
        str(Path(file).absolute().parents[name.count(".") + (Path(file).stem == "__init__")])
        for name, file in files.items()
        if file
    }
    return [made.place for made in DECLARED.values()], sorted(folders)


def check_importable() -> None:
    """Checks that executors can import all declarations. Raises ``UsageError``."""
    for made in DECLARED.values():
        module, _, name = made.place.partition(":")
        if module == "__main__" or "<locals>" in name:
            raise UsageError(
                f"The function <{made.iri}> is declared in {made.place}, which executors of Spark "
                "cannot import.",
                hint='Put it at the top level of a module, or run without Spark: master="none".',
            )


def declare_places(wanted: Iterable[str], folders: Iterable[str] = ()) -> None:
    """Imports the modules of these places if they are not declared here yet. ``folders`` are
    searched after the usual ones. Raises ``UsageError``.

    The caller has the places from the program or the app file, never from a checkpoint, a query or
    a client.
    """
    here = {made.place for made in DECLARED.values()}
    if not (lacking := [place for place in wanted if place not in here]):
        return
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    for place in lacking:
        try:
            made = load_function(place)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(
                f"The function {place} cannot be imported here: {error}.",
                hint="Put its module on the path of Python of the driver and of every executor.",
            ) from error
        if not isinstance(made, Declared):
            raise UsageError(
                f"{place} is not a declared function.",
                hint="Write @levada.function(..) above it.",
            )
        _declare(made)


def declare_as_driver(wanted: Sequence[str], folders: Iterable[str] = ()) -> None:
    """Declares what the driver of a task has declared, as ``declare_places``. A process that has
    worked for another driver forgets functions of the same IRIs.
    """
    if not wanted:
        return
    _importing.extend(wanted)
    try:
        declare_places(wanted, folders)
    finally:
        _importing.clear()
