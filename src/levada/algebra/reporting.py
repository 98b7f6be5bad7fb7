"""When a query is evaluated, beyond what its windows say."""

from __future__ import annotations

from levada.frozen import frozen
from levada.model.time import Window


@frozen
class Reporting:
    """When a query is evaluated beside what its windows' kinds say.

    ``clock`` (kind CLOCK): at its closes and nowhere else. ``nonempty``: not where all windows are
    empty.
    """

    clock: Window | None = None
    nonempty: bool = False
