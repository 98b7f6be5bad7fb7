"""Random windows: the clause in RSP-QL or CQL, and what ``core.event_time`` makes of it under a
query's options.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from levada.core.event_time import Window, WindowKind

RANGES = (4000, 2000, 3000, 5000, 1000, 10000, 2500, 6000, 250)
STEPS = (1000, 2000, 500, 3000, 250)
PASTS = ((4000, 1000), (2000, 500), (3000, 2500), (10000, 6000), (5000, 4999))
PERIODS = (1000, 500, 1700, 3000, 250)
ORIGINS = (0, 500, 1000, 1300, -750)


@dataclass(frozen=True, slots=True)
class Clause:
    """A window clause: ``kind`` is "step" (range and step), "range", "now", "all", "count" (count
    and step) or "session".

    With ``to`` the first two are windows in the past.
    """

    kind: str
    range: int = 0
    step: int = 1
    count: int = 0
    to: int = 0

    @property
    def rspql(self) -> str:
        """The clause in RSP-QL, with its brackets."""
        span = (
            f"FROM NOW-{duration(self.range)} TO NOW-{duration(self.to)}"
            if self.to
            else f"RANGE {duration(self.range)}"
        )
        match self.kind:
            case "step":
                return f"[{span} STEP {duration(self.step)}]"
            case "range":
                return f"[{span}]"
            case "session":
                return f"[SESSION {duration(self.range)}]"
            case "count":
                return (
                    f"[TRIPLES {self.count}]"
                    if self.step == 1
                    else f"[ELEMENTS {self.count} STEP {self.step}]"
                )
            case _:
                return f"[{self.kind.upper()}]"

    @property
    def cql(self) -> str:
        """The clause in CQL, with its brackets."""
        match self.kind:
            case "step":
                return f"[Range {_span(self.range)} Slide {_span(self.step)}]"
            case "range":
                return f"[Range {_span(self.range)}]"
            case "count":
                return f"[Rows {self.count}]"
            case "now":
                return "[Now]"
            case _:
                return "[Range Unbounded]"

    def window(self, options: Mapping[str, object]) -> Window:
        """The window under these options: with a step it reports on close, unless ``report`` is
        "change".
        """
        kinds = {
            "range": WindowKind.RANGE,
            "now": WindowKind.NOW,
            "all": WindowKind.ALL,
            "count": WindowKind.COUNT,
        }
        closed = WindowKind.CLOSE_CLOSED if options.get("bounds") == "(]" else WindowKind.CLOSE_OPEN
        policy = str(options.get("report", ""))
        stepped = WindowKind.CHANGE if policy.startswith("change") else closed
        if self.kind == "session":
            stepped = (
                WindowKind.SESSION
                if policy.startswith(("change", "periodic"))
                else WindowKind.ENDED
            )
        kind = kinds.get(self.kind, stepped)
        t0 = options.get("t0")
        assert t0 is None or isinstance(t0, int), "t0 is in ms"
        return Window(kind, self.range, self.step, t0 or 0, t0 is not None, self.count, self.to)


def duration(ms: int) -> str:
    """A duration in ISO 8601.

    >>> duration(2500)
    'PT2.5S'
    """
    return f"PT{ms / 1000:.15g}S"


def compact(clause: Clause, *, tumbling: bool = False) -> str:
    """The clause in the words of C-SPARQL, SPARQLstream and CQELS-QL, with its brackets;
    ``tumbling``: TRIPLES n does.

    >>> compact(Clause("step", 2500, 1000))
    '[RANGE 2500ms STEP 1s]'
    """
    span = (
        f"NOW - {_short(clause.range)} TO NOW - {_short(clause.to)}"
        if clause.to
        else f"RANGE {_short(clause.range)}"
    )
    match clause.kind:
        case "step" if clause.range - clause.to == clause.step:
            return f"[{span} TUMBLING]"
        case "step":
            return (
                f"[{span} SLIDE {_short(clause.step)}]"
                if clause.to
                else f"[{span} STEP {_short(clause.step)}]"
            )
        case "range":
            return f"[{span}]"
        case "count" if tumbling and clause.step == clause.count:
            return f"[TRIPLES {clause.count}]"
        case "count" if tumbling:
            return f"[RANGE TRIPLES {clause.count} STEP {clause.step}]"
        case _:
            return clause.rspql


def _short(ms: int) -> str:
    return f"{ms}ms" if ms % 1000 else f"{ms // 1000}s"


def _span(ms: int) -> str:
    return f"{ms} ms" if ms % 1000 else f"{ms // 1000} s"


_SHARED = (
    *(Clause("step", a, b) for a in RANGES for b in STEPS),
    *(Clause("range", a) for a in RANGES * 2),
    *(Clause("count", count=n) for n in (3, 1, 2, 4, 5, 8) * 2),
    *(Clause("all"), Clause("now")) * 3,
)
_OURS = (
    *(Clause("step", a, b, to=c) for a, c in PASTS for b in STEPS),
    *(Clause("range", a, to=c) for a, c in PASTS),
    *(
        Clause("count", step=m, count=n)
        for n, m in ((3, 3), (2, 2), (4, 2), (1, 3), (5, 3), (2, 5))
    ),
    *(Clause("session", g) for g in (500, 250, 1000, 1001, 2000, 600, 999, 3000, 1) * 2),
    *(Clause("count", step=m, count=n) for n, m in ((8, 4), (3, 2), (4, 4), (6, 5))),
)
cql_clauses: st.SearchStrategy[Clause] = st.sampled_from(_SHARED)
"""A window clause that CQL has, too: two in five are RANGE and STEP."""
clauses: st.SearchStrategy[Clause] = st.sampled_from(_SHARED * 2 + _OURS)
"""A window clause."""


@st.composite
def options(draw: st.DrawFn, used: tuple[Clause, ...]) -> dict[str, object]:
    """Options that fit these windows: about half of the queries have none."""
    found: dict[str, object] = {}
    stepped = any(c.kind == "step" for c in used)
    if stepped and draw(st.integers(0, 3)) == 3:
        found["bounds"] = draw(st.sampled_from(("(]", "[)")))
    if draw(st.integers(0, 4)) == 4:
        found["t0"] = draw(st.sampled_from(ORIGINS))
    if draw(st.integers(0, 4)) == 4:
        found["report"] = draw(st.sampled_from(("change", "close"))) if stepped else "change"
    if draw(st.integers(0, 4)) == 4:
        found["report"] = f"periodic:{draw(st.sampled_from(PERIODS))}ms"
    if draw(st.integers(0, 9)) == 9:
        found["report"] = "+".join(
            [*([str(found["report"])] if "report" in found else []), "nonempty"]
        )
    return found


def reporting(options: Mapping[str, object]) -> dict[str, Any]:
    """The reference's clock and whether it leaves out what is empty, under these options.

    >>> reporting({"report": "periodic:500ms+nonempty", "t0": 7})["clock"].next_close(8)
    507
    """
    report = str(options.get("report", ""))
    period = re.search(r"periodic:(\d+)(ms|s)", report)
    t0 = options.get("t0")
    assert t0 is None or isinstance(t0, int), "t0 is in ms"
    step = int(period[1]) * (1 if period[2] == "ms" else 1000) if period else 1
    clock = Window(WindowKind.CLOCK, 0, step, t0 or 0, t0 is not None) if period else None
    return {"clock": clock, "nonempty": "nonempty" in report}


def allows_gap(windows: Iterable[Window], empty_reports: bool, clock: Window | None) -> bool:
    """Whether a year without elements costs the reference nothing: no close is evaluated in it."""
    kinds = {w.kind for w in windows}
    endless = empty_reports or any(kind in (WindowKind.ALL, WindowKind.COUNT) for kind in kinds)
    return not endless or (clock is None and not any(kind.on_close for kind in kinds))
