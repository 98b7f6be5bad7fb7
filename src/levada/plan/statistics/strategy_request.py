"""Of which form the joins of a query are to be, what is known of its streams, and what has been
chosen: it goes along while a query is lowered.
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
    """What has been chosen for a join of these ``parts``, each as it is told, and over how many
    ``partitions`` it was reckoned. ``star``: the variable that all have; "": there is none.
    """

    parts: tuple[str, ...]
    partitions: int
    choice: Choice
    star: str = ""


@frozen
class JoinStrategyRequest:
    """``form``: as the user says. ``measures``: what is known of streams; None: nothing.
    ``windows``: those of the query. ``chosen``: the forms so far; ``notes``: what else has been
    chosen, a sentence each.
    """

    form: JoinForm
    measures: Measures | None = None
    windows: Sequence[Window] = ()
    chosen: list[Chosen] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
