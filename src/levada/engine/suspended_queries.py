"""Suspended queries: they exceed a limit of one query, or Levada fails on them.

A suspended query stays registered and is in no plan, so the others continue as after its removal. A
file of the checkpoint records it before the epoch runs without it. The suspension ends when the
query is removed or its text changes, or when the engine starts with a higher limit. Queries that
read its stream are suspended with it.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from levada.checkpoint.verify import SUSPENDED
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import replace_file
from levada.core.msgspec_warmup import prepare_structs
from levada.core.names import display_name, is_derived
from levada.core.query_limits import Limited, QueryLimits
from levada.errors import (
    EvaluationError,
    ExcessError,
    LevadaError,
    UserFunctionError,
    unreadable,
)

if TYPE_CHECKING:
    from levada.runtime.publication.registered_query import Registered

MAX_SHOWN = 200
"""Characters of a query's text that a suspension shows."""


class Suspension(msgspec.Struct):
    """The reason for which a query is suspended. ``identity``: that of the query. ``limit_value``:
    the value of ``limit`` at the suspension; ``is_query_limit``: it was lower than the general one.
    ``limit`` is "" after a failure. ``is_absent``: the current or last run does not have this
    query.
    """

    identity: str
    cause: str
    limit_value: int = msgspec.field(name="most_rows")
    limit: str = "rows"
    is_query_limit: bool = False
    is_absent: bool = False

    @property
    def reason(self) -> str:
        """Returns the reason of the suspension, and whether the query is part of the run."""
        return f"It is not part of this run. {self.cause}" if self.is_absent else self.cause

    def is_lifted(self, limits: QueryLimits) -> bool:
        """Returns whether the current limit is higher or was removed."""
        if not self.limit:
            return False
        now: int = getattr(limits, self.limit)
        return not now or now > self.limit_value


@dataclass
class Suspended:
    """The suspended queries of a checkpoint, by name. ``limits``: the current ones."""

    path: Path
    limits: Limited
    queries: dict[str, Suspension] = field(default_factory=dict)

    @staticmethod
    def load(root: Path, limits: Limited, queries: Mapping[str, Registered]) -> Suspended:
        """Returns the suspended queries of a checkpoint, except those of ``queries`` that a higher
        limit allows. The ends of these may have passed.
        """
        kept = read_suspended(root)
        left = {n: s for n, s in kept.items() if not s.is_lifted(limits.limits_of_query(n))}
        for name in kept.keys() - left.keys():
            if name in queries and queries[name].identity == kept[name].identity:
                queries[name].lifetime.may_be_over = True
        suspended = Suspended(root / SUSPENDED, limits, left)
        if len(left) < len(kept):
            suspended._write()
        return suspended

    def add(
        self, names: Sequence[str], error: LevadaError, queries: Mapping[str, Registered]
    ) -> None:
        """Suspends queries, durably."""
        for name in names:
            query = queries.get(name)
            identity, text = ("", "") if query is None else (query.identity, query.text)
            self.queries[name] = self._suspension(name, identity, text, error)
        self._write()
        for name in names:
            warnings.warn(describe_suspension(name, self.queries[name]), stacklevel=2)

    def _suspension(self, name: str, identity: str, text: str, error: LevadaError) -> Suspension:
        is_fault = not isinstance(error.__cause__, LevadaError)  # of Levada
        is_fault &= not isinstance(error, UserFunctionError)
        if isinstance(error, EvaluationError) and is_fault:
            return Suspension(identity, _failure_text(error, text), 0, "")
        if not isinstance(error, ExcessError):
            return Suspension(identity, str(error), 0, "")
        word, why = error.limit, error.message
        most: int = getattr(self.limits.limits_of_query(name), word)
        has_own_limit = most != getattr(self.limits.all, word)
        if has_own_limit:
            why += f" That is a limit of its own, of whoever has added it ({word}={most})."
        return Suspension(identity, why, most, word, has_own_limit)

    def forget(self, names: Collection[str]) -> None:
        """Removes the entries of unregistered queries."""
        if not self.queries.keys().isdisjoint(names):
            self.queries = {n: s for n, s in self.queries.items() if n not in names}
            self._write()

    def without_names(self, names: Collection[str]) -> Suspended:
        """Returns the suspended queries without those of these names."""
        return replace(self, queries={n: s for n, s in self.queries.items() if n not in names})

    def without(self, queries: Mapping[str, Registered]) -> dict[str, Registered]:
        """Returns the queries to run: neither the suspended ones nor those that read their
        streams.
        """
        if not self.queries:
            return dict(queries)
        left: dict[str, Registered] = {}
        gone: set[str] = set()
        for name, query in queries.items():  # makers are before readers
            kept = self.queries.get(name)
            made = {display_name(w.stream) for w in query.alike.windows if is_derived(w.stream)}
            if (kept is not None and kept.identity == query.identity) or made & gone:
                gone.add(name)
                if query.lifetime.query is None:
                    query.lifetime.end(0)  # it has no results that a reader could wait for
            else:
                left[name] = query
        return left

    def compare(self, queries: Mapping[str, Registered]) -> None:
        """Records which suspended queries are not part of this run."""
        absent = {name for name, kept in self.queries.items() if kept.is_absent}
        if absent != (now := self.queries.keys() - queries.keys()):
            for name in absent ^ now:
                self.queries[name].is_absent = name in now
            self._write()

    def _write(self) -> None:
        replace_file(self.path, seal(msgspec.json.encode(self.queries)))


def _failure_text(error: EvaluationError, text: str) -> str:
    """Describes a failure: the error, its place in Levada, and the text."""
    place = f" at {error.place}" if error.place else ""
    shown = " ".join(text.split())
    shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}.."
    return f"Levada failed on it{place}: {error.message}. Please report this. Its text: {shown}"


def describe_suspension(name: str, suspension: Suspension) -> str:
    """Returns a sentence about a suspended query, with the remedy.

    >>> describe_suspension("pairs", Suspension("", "It makes too many rows.", 10))[:46]
    'The query pairs is suspended. It makes too man'
    """
    limit = suspension.limit
    if suspension.is_absent:
        return (
            f"The query {name} was suspended in a run before, and is not part of this one. "
            f"{suspension.cause} To forget it: levada drop {name}."
        )
    if not limit:
        return (
            f"The query {name} is suspended, the others go on. {suspension.cause} "
            "To try it once more, take it out and add it again."
        )
    if suspension.is_query_limit:
        remedy = "Take the query out and ask for less."
        return f"The query {name} is suspended. {suspension.cause} {remedy}"
    option = "--max-rows" if limit == "rows" else f"--limits {limit}=N"
    return (
        f"The query {name} is suspended. {suspension.cause} Start again with a higher limit "
        f"({option}), or take the query out and ask for less."
    )


def read_suspended(root: Path) -> dict[str, Suspension]:
    """Reads the suspended queries of a checkpoint. Raises ``CheckpointError``."""
    path = root / SUSPENDED
    if not path.exists():
        return {}
    data = read_sealed(path)
    try:
        return msgspec.json.decode(data, type=dict[str, Suspension])
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


prepare_structs(Suspension)
