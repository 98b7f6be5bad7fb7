"""When a query is evaluated, beyond what its windows say."""

from __future__ import annotations

from dataclasses import dataclass

from levada.model.time import Window


@dataclass(frozen=True, slots=True)
class Reporting:
    """When a query is evaluated beside what its windows' kinds say.

    ``clock`` (kind CLOCK): at its closes and nowhere else. ``nonempty``: not where all windows are
    empty.
    """

    clock: Window | None = None
    nonempty: bool = False
