"""Of which form the joins of a query are to be, what is known of its streams, and what has been
chosen: it goes along while a query is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from levada.frozen import frozen
from levada.model.time import Window
from levada.plan.physical.forms.choose import Choice
from levada.plan.physical.forms.figures import Measures
from levada.plan.sealed.kinds import JoinForm


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
class Wanted:
    """``form``: as the user says. ``measures``: what is known of streams; None: nothing.
    ``windows``: those of the query. ``chosen``: the forms so far; ``notes``: what else has been
    chosen, a sentence each.
    """

    form: JoinForm
    measures: Measures | None = None
    windows: Sequence[Window] = ()
    chosen: list[Chosen] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
