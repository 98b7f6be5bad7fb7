"""Parses the option of rebalancing: on or off, and two thresholds.

The preset ``windowed-joins`` has the values of Parallel windowed joins (Table 2; W12 to W16, W27,
W28 of its checklist): Th_sup, Th_con, beta, t_r in epochs, the buffer of a slave in rows. If a
value of the paper supposes a machine that waits for data by the clock, the default differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from levada.core.frozen import frozen
from levada.core.integer_options import check_count
from levada.errors import UsageError, near

ON, OFF = "on", "off"


class Measure(StrEnum):
    """The measure of a partition's work: CPU time, or elapsed time with all waiting."""

    CPU = "cpu"
    TIME = "time"


class Choice(StrEnum):
    """The choice of groups: any by lot, or the heaviest that fit."""

    RANDOM = "random"
    LARGEST = "largest"


@frozen
class BalanceOptions:
    """The options of rebalancing. ``reorganize_every``: epochs between two reorganizations (t_r).
    ``supplier_threshold``: the mean occupancy above which a partition gives groups. Users set
    these two.

    ``consumer_threshold``: the one below which it takes groups. ``buffer_rows``: rows that wait at
    occupancy 1; 0: as many as an epoch has time for. ``choice``: the choice of groups, by ``seed``
    if it is a lot. ``beta``: more partitions if suppliers are more than ``beta`` times the
    consumers. ``least_partitions``: never fewer. ``quiet``: reorganizations without a supplier
    before the number shrinks. ``measure``: elapsed time if tasks stay on their executors.

    Raises ``UsageError``.

    >>> BalanceOptions(supplier_threshold=0.4).consumer_threshold
    0.01
    """

    reorganize_every: int = 10
    supplier_threshold: float = 0.5
    consumer_threshold: float = 0.01
    beta: float = 0.5
    buffer_rows: int = 0
    choice: str = Choice.LARGEST
    measure: str = Measure.CPU
    least_partitions: int = 1
    quiet: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.reorganize_every, "reorganize_every", 1)
        high, low = self.supplier_threshold, self.consumer_threshold
        if isinstance(high, bool) or not isinstance(high, int | float):
            raise UsageError(f"supplier_threshold is {high!r}, which is no number.")
        if not low < high <= 1:
            raise UsageError(f"supplier_threshold is {high:g}, not above {low:g} and up to 1.")


NAMES = ("reorganize_every", "supplier_threshold")
PRESETS: dict[str, dict[str, Any]] = {
    ON: {},
    "windowed-joins": {"buffer_rows": 16_384, "choice": Choice.RANDOM},
}
"""The options of each word. ``windowed-joins``: 1 MB of tuples of 64 bytes, random groups."""


def balance_of(setting: Any) -> BalanceOptions | None:
    """Parses the setting: nothing (off), on, a preset, ``name=value,..``, or a mapping of names to
    values, with the word under ``preset``. Raises ``UsageError``.

    >>> balance_of("off"), balance_of("on,reorganize_every=5").reorganize_every
    (None, 5)
    """
    if setting is None or isinstance(setting, BalanceOptions):
        return setting
    if isinstance(setting, bool):
        return BalanceOptions() if setting else None
    if isinstance(setting, str):
        return _of_text(setting)
    if not isinstance(setting, Mapping):
        raise UsageError(f"balance is {setting!r}.", hint="Say on, off, or a mapping of options.")
    options = dict(setting)
    return _from_preset(str(options.pop("preset", ON)), options)


def _of_text(text: str) -> BalanceOptions | None:
    first, *rest = text.split(",")
    if text in ("", OFF):
        return None
    if first == OFF:
        raise UsageError(f"balance is off, and {rest[0] or 'nothing'} is said beside it.",
                         hint="Say on in place of off, or leave out the options.")  # fmt: skip
    word, parts = (ON, [first, *rest]) if "=" in first else (first, rest)
    pairs = [part.partition("=")[::2] for part in parts]
    twice = next((n for i, (n, _) in enumerate(pairs) if n in dict(pairs[:i])), None)
    if twice is not None:
        raise UsageError(f"The option {twice} is there twice in {text}.")
    return _from_preset(word, {name: _value(name, value) for name, value in pairs})


def _from_preset(word: str, options: Mapping[str, Any]) -> BalanceOptions:
    if word not in PRESETS:
        words = [OFF, *PRESETS]
        raise UsageError(f"balance is {', '.join(words)}, not {word!r}.", hint=near(word, words))
    for name in options:
        if name not in NAMES:
            raise UsageError(f"balance has no option {name}.", hint=near(str(name), NAMES))
    return BalanceOptions(**{**PRESETS[word], **options})


def _value(name: str, text: str) -> Any:
    """Parses a value: a number, if it is one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
