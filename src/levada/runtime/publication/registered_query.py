"""Describes a registered query and tracks it in the plans: which results are its own, also if its
name has been registered again.

A query has one Emit member at a time, from the plan version that first has it (``since``) to the
first version without it (``until``). The rows of that member in epochs of these versions are its
results, whatever other queries of the name reported before or after. The lifetime keeps the layout,
which all its Emits share, so that readers need no old plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256

from levada.core.event_time import MAX, MIN, instant
from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.plan.execution.plan import QueryPlan
from levada.plan.execution.row_layout import Layout
from levada.plan.logical import nodes as a
from levada.plan.logical.ontology_schema import Regime
from levada.plan.logical.query_options import QueryOptions
from levada.plan.logical.query_template import TemplateInstance


@dataclass(eq=False, slots=True)
class Lifetime:
    """The lifetime of one registration. The loop begins and ends it between epochs, so readers find
    it final when they see an epoch's results. ``may_be_over``: the query was accepted before, and
    its end may have passed since; then it reports nothing and is removed. For other queries a past
    end is a mistake.
    """

    query: QueryPlan | None = None  # None: in no plan yet
    layout: Layout | None = None
    until: int = MAX
    may_be_over: bool = False

    def begin(self, query: QueryPlan, layout: Layout) -> None:
        """Notes that the query is in the plan."""
        self.layout, self.query = layout, query

    def switch(self, query: QueryPlan) -> None:
        """Notes that the query has another Emit from the next plan on."""
        self.query = query

    def end(self, version: int) -> None:
        """Notes that the query is in no plan from this version on."""
        self.until = min(self.until, version)

    @property
    def is_over(self) -> bool:
        """Whether all epochs that could have results of the query are published."""
        return self.until < MAX

    def has(self, version: int) -> bool:
        """Whether results of this plan version can belong to the query."""
        return self.query is not None and self.query.since <= version < self.until


@frozen
class Registered:
    """A registered query and its lifetime. ``said``: the text as registered, None if it equals the
    text of its meaning.
    """

    name: str
    said: str | None
    dialect: str
    options: QueryOptions
    meaning: a.Query | TemplateInstance
    lifetime: Lifetime = field(default_factory=Lifetime, compare=False)

    @property
    def text(self) -> str:
        """The text of the query."""
        if self.said is None:
            assert isinstance(self.meaning, TemplateInstance), "a row of a template has a text"
            return self.meaning.text
        return self.said

    @property
    def query(self) -> a.Query:
        """The meaning of the query."""
        return _query_of(self.meaning, self.text)

    @property
    def alike(self) -> a.Query:
        """A query with the same windows and form: its meaning, with any terms."""
        return (
            self.meaning.template.query
            if isinstance(self.meaning, TemplateInstance)
            else self.meaning
        )

    @property
    def identity(self) -> str:
        """The identity of the query: equal if it is registered again unchanged."""
        declaration = f"{self.dialect}\n{_identity_options(self.options)}\n{self.text}"
        if self.options.entailment in (None, Regime.NONE):
            return declaration
        # its meaning depends on the ontology
        return f"{declaration}\n{sha256(repr(self.query.pattern).encode()).hexdigest()}"


@dataclass(frozen=True)
class Identities(Mapping[str, str]):
    """Computes the identities of queries on demand: texts with their options, so none is stored."""

    queries: Mapping[str, Registered]

    def __getitem__(self, name: str) -> str:
        return self.queries[name].identity

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)


def _query_of(meaning: a.Query | TemplateInstance, text: str) -> a.Query:
    """Parses the meaning of a query from its text."""
    if isinstance(meaning, TemplateInstance):
        return replace(meaning.template.fill(meaning.terms), text=text)
    return meaning


@lru_cache(maxsize=64)
def _identity_options(options: QueryOptions) -> str:
    """Returns options as identities contain them: those from before regions are unchanged."""
    return str(options).replace(", region=''", "")


# Determines when a query ends: the last instant at which it reports, by its options and its start
# (docs/semantics.md#queries-that-end).
#
# The end is fixed when the query is added, and stored in the plan. So a lifetime continues over a
# restart, and does not begin again.


def end_of(options: QueryOptions, start: int) -> int:
    """Returns the last instant at which a query reports that begins at ``start``; MAX: it has no
    end.

    >>> end_of(QueryOptions(lifetime=3_600_000), 1000)
    3601000
    """
    if options.lifetime is not None:
        return min(_beginning(options, start) + options.lifetime, MAX)
    return MAX if options.until is None else options.until


def check_end(name: str, options: QueryOptions, start: int) -> None:
    """Raises ``UsageError`` if all reports of a query would be in the past, or if its lifetime has
    no beginning.
    """
    if options.lifetime is not None and _beginning(options, start) <= MIN:
        raise UsageError(
            f"The lifetime of the query {name} has no beginning: its streams have not said "
            "anything yet.",
            hint="Say from where on it is counted (t0), or its end itself (until).",
        )
    if options.until is not None and options.until < start:
        raise UsageError(
            f"The query {name} ends at {instant(options.until)} (until), which its streams have "
            f"passed: it would begin at {instant(start)}.",
            hint="Say a later instant, or lifetime=1h: so long from where it begins.",
        )


def _beginning(options: QueryOptions, start: int) -> int:
    """Returns the beginning of a lifetime; MIN: unknown."""
    return start if start > MIN or options.t0 is None else options.t0
