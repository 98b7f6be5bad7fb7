"""The options beside a query's text that change its meaning.

Each option has a default and can be set for one query. The translation of every language reads
them. The API, the command line and the app file take their words from ``WORDS``. The options are
described in docs/cli/run.md, "Queries".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, TypedDict, get_args

from levada.core.event_time import instant, parse_duration, parse_time, shown_duration
from levada.core.frozen import frozen
from levada.errors import UsageError, near
from levada.plan.logical.ontology_schema import Regime, regime_of

Bounds = Literal["[)", "(]"]
ReportPolicy = Literal["close", "change"]
_SPELLING = "Say close, change or periodic:1m, each also with +nonempty, or nonempty."


@frozen
class QueryOptions:
    """Options of one query.

    ``bounds``: the end of a closing window that belongs to it. ``t0`` (ms since 1970): the first
    window starts there, and earlier elements are in no window; None aligns windows to 1970.
    ``report``: the instants at which a query is evaluated; None is on close for windows with a
    STEP, and on content change for others. ``period`` (ms): evaluate at t0 and each ``period`` from
    it instead. ``nonempty``: a report at which all windows are empty does not exist.
    ``empty_reports``: also evaluate if all windows are empty. ``until`` (ms since 1970): the last
    instant at which the query reports; ``lifetime`` (ms) is the same from the start of the query.
    The query is removed then. ``region``: the region of its results, and the regions with which it
    shares operators ("": any, all). ``entailment``: the entailment regime; None: as the engine.

    >>> QueryOptions(report="change").bounds
    '[)'
    """

    bounds: Bounds = "[)"
    t0: int | None = None
    report: ReportPolicy | None = None
    empty_reports: bool = False
    period: int | None = None
    nonempty: bool = False
    until: int | None = None
    lifetime: int | None = None
    entailment: Regime | None = None
    region: str = ""

    @property
    def has_end(self) -> bool:
        """Whether the options define an end of the query."""
        return self.until is not None or self.lifetime is not None

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
        assert self.until is None or self.lifetime is None, "a query ends once"


class QueryWords(TypedDict, total=False):
    """The words of options in the API: ``engine.register(text, report="change")``.

    ``t0`` and ``until`` are ms or an ISO time, ``lifetime`` is a duration, ``report`` is a text for
    ``report_policy``.
    """

    bounds: Bounds
    t0: int | str
    report: str
    empty_reports: bool
    until: int | str
    lifetime: int | str
    entailment: Literal["none", "rdfs", "owl"]
    region: str


def report_policy(text: str) -> dict[str, Any]:
    """Returns the options of a report policy's text; ``UsageError`` for other texts.

    >>> report_policy("periodic:1m+nonempty")
    {'period': 60000, 'nonempty': True}
    >>> report_policy("change")
    {'report': 'change'}
    """
    words = [word.strip() for word in str(text).split("+")]
    options: dict[str, Any] = {}
    policy, rest = ("", words) if words[0] == "nonempty" else (words[0], words[1:])
    if policy.startswith("periodic:"):
        options["period"] = parse_duration(policy.removeprefix("periodic:"))
        if not options["period"]:
            raise UsageError("The period of reports is not positive.", hint=_SPELLING)
    elif policy in get_args(ReportPolicy):
        options["report"] = policy
    elif policy or not rest:
        known = near(policy, ("close", "change", "periodic:", "nonempty"))
        raise UsageError(
            f"There is no report policy {policy}.",
            hint=known if known.startswith("Did") else _SPELLING,
        )
    if rest not in ([], ["nonempty"]):
        raise UsageError(f"{text} is no report policy.", hint=_SPELLING)
    return {**options, "nonempty": True} if rest else options


WORDS = tuple(f.name for f in fields(QueryOptions) if f.name not in ("period", "nonempty"))
"""The words for options; ``report`` also sets ``period`` and ``nonempty``."""


def options_of(words: Mapping[str, Any]) -> QueryOptions:
    """Returns the options of these words; a None is skipped. Raises ``UsageError``.

    ``t0`` and ``until`` are ISO or ms, ``lifetime`` is a duration, ``report`` is as in
    ``report_policy``.

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
    values |= _end_from_options(values)
    if "region" in values:
        values["region"] = region_of(values["region"])
    if values.get("bounds", "[)") not in get_args(Bounds):
        raise UsageError(f"There are no bounds {values['bounds']}.", hint="Say '[)' or '(]'.")
    if "entailment" in values:
        values["entailment"] = regime_of(values["entailment"])
    if values.get("nonempty") and values.get("empty_reports"):
        raise UsageError(
            "Reports without content are left out (nonempty) or shown (empty_reports), not both."
        )
    return QueryOptions(**values)


def narrow_options(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the words for many queries, overridden by those of one, which has an end of its own.

    >>> narrow_options({"lifetime": "1h", "t0": 5}, {"until": 7})
    {'t0': 5, 'until': 7}
    """
    ends = ("until", "lifetime")
    if any(narrow.get(word) is not None for word in ends):
        wide = {word: value for word, value in wide.items() if word not in ends}
    return {**wide, **narrow}


def region_of(value: Any) -> str:
    """Returns the regions of a query: the region of its results, and behind ``+`` those for
    sharing.

    Raises ``UsageError``.

    >>> region_of("east + west")
    'east+west'
    """
    home, *others = names = [name.strip() for name in str(value).split("+")]
    if not all(names) or home == "any" or any(" " in name for name in names):
        raise UsageError(
            f"A query is in a region, not region={value}.",
            hint="Say for example region=east, east+west (it shares with west, too) or east+any.",
        )
    return "+".join([home, *dict.fromkeys(others)])


def until_of(value: Any) -> int:
    """Returns the instant (ms) up to which a query reports. Raises ``UsageError``.

    >>> until_of("1970-01-01T01:00:00Z")
    3600000
    """
    until = parse_time(value)
    if until < 0:
        raise UsageError(
            f"A query reports until an instant from 1970 on, not until={value}.",
            hint="Say for example until=2013-01-01T05:00:00Z; lifetime=1h is so long from where "
            "the query begins.",
        )
    return until


def lifetime_of(value: Any) -> int:
    """Returns the lifetime of a query (ms). Raises ``UsageError``.

    >>> lifetime_of("1h")
    3600000
    """
    if str(value).strip().startswith("-") or not (lifetime := parse_duration(value)):
        raise UsageError(
            f"A query lives for some time, not lifetime={value}.",
            hint="Say for example lifetime=1h; until=2013-01-01T05:00:00Z is the instant itself.",
        )
    return lifetime


def _end_from_options(values: Mapping[str, Any]) -> dict[str, int]:
    """Returns the options for the end of a query. Raises ``UsageError``."""
    if "until" in values and "lifetime" in values:
        raise UsageError("A query ends at an instant (until) or after a time (lifetime), not both.")
    if "lifetime" in values:
        return {"lifetime": lifetime_of(values["lifetime"])}
    if "until" not in values:
        return {}
    until = until_of(values["until"])
    if "t0" in values and until < values["t0"]:
        raise UsageError(
            f"The query ends at {values['until']} (until), before its windows begin (t0)."
        )
    return {"until": until}


def describe_end(options: QueryOptions) -> str:
    """Returns a text with the end of a query; "": it has no end of its own.

    >>> describe_end(QueryOptions(until=1500)), describe_end(QueryOptions(lifetime=3_600_000))
    ('after its reports until 1970-01-01T00:00:01.500Z', 'PT1H after it begins')
    """
    if options.lifetime is not None:
        return f"{shown_duration(options.lifetime)} after it begins"
    return "" if options.until is None else f"after its reports until {instant(options.until)}"
