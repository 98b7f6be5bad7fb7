"""The requested join form of a query, the statistics of its streams, and the choices so far.

It is passed along while a query is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from levada.core.event_time import Window
from levada.core.frozen import frozen
from levada.plan.execution.join_kinds import JoinForm
from levada.plan.statistics.choose_join_strategy import Choice
from levada.plan.statistics.statistics import Measures


@frozen
class Chosen:
    """A choice for a join of these ``parts`` (texts), computed for a number of ``partitions``.

    ``star``: the variable that all parts have; "": there is none.
    """

    parts: tuple[str, ...]
    partitions: int
    choice: Choice
    star: str = ""


@frozen
class JoinStrategyRequest:
    """A request for a join form.

    ``form``: the user's option. ``measures``: statistics of streams; None: there are none.
    ``windows``: the windows of the query. ``chosen``: the choices so far. ``notes``: other choices,
    a sentence each.
    """

    form: JoinForm
    measures: Measures | None = None
    windows: Sequence[Window] = ()
    chosen: list[Chosen] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
