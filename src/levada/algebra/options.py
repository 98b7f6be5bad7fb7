"""How a query's text becomes a query: the options beside the text that change its meaning.

Each has a default, and each can be set for one query. The translation of every language reads them
from here, and whoever lets a user say them (the API, the command line, the app file) has their
words from ``WORDS``. The meaning of each: docs/cli.md, "Queries".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict, get_args

from levada.algebra.schema import Regime, regime_of
from levada.errors import UsageError, near
from levada.model.durations import parse_duration, parse_time

Bounds = Literal["[)", "(]"]
ReportPolicy = Literal["close", "change"]
_SPELLING = "Say close, change or periodic:1m, each also with +nonempty, or nonempty."


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Options of one query.

    ``bounds``: which end of a closing window belongs to it. ``t0`` (ms since 1970): the first
    window starts there and what is before it is in no window; None aligns windows to 1970.
    ``report``: when a query is evaluated; None is on close where a window has a STEP and on content
    change elsewhere. ``period`` (ms): in place of that at t0 and each so many ms from it.
    ``nonempty``: a report at which all windows are empty does not exist. ``empty_reports``: also
    evaluate where all windows are empty. ``entailment``: which triples a graph entails beside its
    own; None is as the engine has it.

    >>> QueryOptions(report="change").bounds
    '[)'
    """

    bounds: Bounds = "[)"
    t0: int | None = None
    report: ReportPolicy | None = None
    empty_reports: bool = False
    period: int | None = None
    nonempty: bool = False
    entailment: Regime | None = None

    def __post_init__(self) -> None:
        assert self.bounds in get_args(Bounds), "bounds are '[)' or '(]'"
        assert self.report is None or self.report in get_args(ReportPolicy), (
            "a report policy is 'close' or 'change'"
        )
        assert self.period is None or (self.period > 0 and self.report is None), (
            "a period is a policy of its own"
        )
        assert not (self.nonempty and self.empty_reports), (
            "a report is left out, or evaluated, where all is empty"
        )


class QueryWords(TypedDict, total=False):
    """The words by which a user says options: ``engine.register(text, report="change")``. ``t0`` is
    ms or an ISO time, ``report`` what ``report_policy`` reads.
    """

    bounds: Bounds
    t0: int | str
    report: str
    empty_reports: bool
    entailment: Literal["none", "rdfs", "owl"]


def report_policy(text: str) -> dict[str, Any]:
    """The options that a report policy's text stands for; ``UsageError`` for what is none.

    >>> report_policy("periodic:1m+nonempty")
    {'period': 60000, 'nonempty': True}
    >>> report_policy("change")
    {'report': 'change'}
    """
    words = [word.strip() for word in str(text).split("+")]
    found: dict[str, Any] = {}
    policy, rest = ("", words) if words[0] == "nonempty" else (words[0], words[1:])
    if policy.startswith("periodic:"):
        found["period"] = parse_duration(policy.removeprefix("periodic:"))
        if not found["period"]:
            raise UsageError("The period of reports is not positive.", hint=_SPELLING)
    elif policy in get_args(ReportPolicy):
        found["report"] = policy
    elif policy or not rest:
        known = near(policy, ("close", "change", "periodic:", "nonempty"))
        raise UsageError(
            f"There is no report policy {policy}.",
            hint=known if known.startswith("Did") else _SPELLING,
        )
    if rest not in ([], ["nonempty"]):
        raise UsageError(f"{text} is no report policy.", hint=_SPELLING)
    return {**found, "nonempty": True} if rest else found


WORDS = tuple(f.name for f in fields(QueryOptions) if f.name not in ("period", "nonempty"))
"""The words by which a user says options; ``report`` also says ``period`` and ``nonempty``."""


def options_of(words: Mapping[str, Any]) -> QueryOptions:
    """The options that these words say (``t0`` is ISO or ms, ``report`` as ``report_policy`` reads
    it); None is not said. Raises ``UsageError``.

    >>> options_of({"report": "nonempty", "t0": None}).nonempty
    True
    >>> options_of({"t0": "1970-01-01T00:00:01Z", "report": "periodic:5s"}).t0
    1000
    """
    for word in words:
        if word not in WORDS:
            raise UsageError(f"A query has no option {word}.", hint=near(word, WORDS))
    values = {key: value for key, value in words.items() if value is not None}
    if "t0" in values:
        values["t0"] = parse_time(values["t0"])
    if "report" in values:
        policy = report_policy(values.pop("report"))
        values.update(policy)
    if values.get("bounds", "[)") not in get_args(Bounds):
        raise UsageError(f"There are no bounds {values['bounds']}.", hint="Say '[)' or '(]'.")
    if "entailment" in values:
        values["entailment"] = regime_of(values["entailment"])
    if values.get("nonempty") and values.get("empty_reports"):
        raise UsageError(
            "Reports without content are left out (nonempty) or shown (empty_reports), not both."
        )
    return QueryOptions(**values)
