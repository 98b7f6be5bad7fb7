"""Parses the options of rebalancing: on or off, thresholds, and the choice of groups.

The names and values of the preset ``windowed-joins`` are those of Parallel windowed joins (Table 2;
W12 to W16, W27, W28 of its checklist): Th_sup, Th_con, beta, t_r in epochs, the buffer of a slave
in rows. If a value of the paper supposes a machine that waits for data by the clock, the default
differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
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
    """The choice of groups: any by lot, the heaviest that fit, or first the one that fits best."""

    RANDOM = "random"
    LARGEST = "largest"
    BEST_FIT = "best-fit"


class By(StrEnum):
    """The basis of the number of partitions: their load, or the time of epochs (``epochs``)."""

    LOAD = "load"
    MODEL = "model"


@frozen
class BalanceOptions:
    """The options of rebalancing. ``reorganize_every``: epochs between two reorganizations (t_r).
    ``supplier_threshold`` and ``consumer_threshold``: the mean occupancy above which a partition
    gives and below which it takes groups. ``buffer_rows``: rows that wait at occupancy 1; 0: as
    many as an epoch has time for. ``choice``: the choice of groups, by ``seed`` if it is a lot.
    ``beta``: more partitions if suppliers are more than ``beta`` times the consumers.
    ``least_partitions``: never fewer. ``quiet``: reorganizations without a supplier before the
    number shrinks. ``degree``: the basis of the number (load or model). ``measure``: the measure of
    a partition's work.

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
    degree: str = By.LOAD
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in _COUNTS.items():
            check_count(getattr(self, name), name, least)
        low, high = (_number(self, f"{n}_threshold") for n in ("consumer", "supplier"))
        if not 0 <= low < high <= 1:
            raise UsageError(
                f"consumer_threshold is {low:g} and supplier_threshold {high:g}: "
                "the first is to be less than the second, and both from 0 to 1."
            )
        if not 0 < _number(self, "beta") < 1:
            raise UsageError(f"beta is {self.beta:g}, and it is to be between 0 and 1.")
        for name, words in (
            ("choice", list(Choice)), ("measure", list(Measure)), ("degree", list(By)),
        ):  # fmt: skip
            if (word := getattr(self, name)) not in words:
                message = f"{name} is {', '.join(words)}, not {word}."
                raise UsageError(message, hint=near(str(word), words))


_COUNTS = {"reorganize_every": 1, "buffer_rows": 0, "least_partitions": 1, "quiet": 1, "seed": 0}
NAMES = tuple(field.name for field in fields(BalanceOptions))
PRESETS: dict[str, dict[str, Any]] = {
    ON: {},
    "windowed-joins": {"buffer_rows": 16_384, "choice": Choice.RANDOM},
}
"""The options of each word. ``windowed-joins``: 1 MB of tuples of 64 bytes, random groups."""


def balance_of(setting: Any) -> BalanceOptions | None:
    """Parses the setting: nothing (off), on, a preset, ``name=value,..``, or a mapping of names to
    values, with the word under ``preset``. Raises ``UsageError``.

    >>> balance_of("off"), balance_of("on,choice=random").choice
    (None, 'random')
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


def _number(options: BalanceOptions, name: str) -> float:
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{name} is {value!r}, which is no number.")
    return float(value)
