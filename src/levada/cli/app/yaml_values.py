"""The readers of values in an app file. Each checks a value; its ``UsageError`` names the place
(``streams.temp.lateness``).
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from levada.checkpoint.send_graph_options import check_slices
from levada.core.durations import parse_duration, parse_time
from levada.core.integer_options import parse_count
from levada.core.query_limits import check_limits, check_memory
from levada.errors import UsageError, near
from levada.plan.logical.query_options import lifetime_of, region_of, report_policy, until_of

if TYPE_CHECKING:
    from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


def mapping_at(value: Any, place: str, known: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Returns a mapping with text keys, which must be in ``known`` unless that is None. None
    becomes the empty mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_value(place or "The app file", "a mapping", value)
    for key in value:
        if not isinstance(key, str):
            raise UsageError(
                f"{join_place(place, str(key))}: a key is a text.", hint=f'Write "{key}" in quotes.'
            )
        if known is not None and key not in known:
            raise UsageError(f"{join_place(place, key)} is not an option.", hint=near(key, known))
    return dict(value)


def list_at(value: Any, place: str) -> list[Any]:
    """Returns a list; None becomes the empty list."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_value(place, "a list", value)
    return value


def join_place(place: str, key: str) -> str:
    """Returns the place of a key within a place."""
    return f"{place}.{key}" if place else key


def wrong_value(place: str, expected: str, value: Any) -> UsageError:
    """Returns the error for a value of another kind than ``expected``."""
    return UsageError(f"{place} is {expected}, not {value!r}.")


def with_place(place: str, make: Callable[[], Any]) -> Any:
    """Returns the value of ``make``; adds the place to its usage errors."""
    try:
        return make()
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}", hint=error.hint) from error


def duration_at(value: Any, place: str) -> int:
    """Returns a duration in ms."""
    return cast(int, with_place(place, lambda: parse_duration(value)))


def plain_time(value: Any) -> Any:
    """Converts a date of YAML to ISO text; returns other values unchanged."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def time_at(value: Any, place: str) -> int:
    """Returns an instant in ms."""
    if isinstance(value, bool) or not isinstance(value, (str, int, datetime.date)):
        raise wrong_value(place, "a time", value)
    return cast(int, with_place(place, lambda: parse_time(value)))


def until_at(value: Any, place: str) -> int:
    """Returns the last instant of a query's reports, in ms."""
    return cast(int, with_place(place, lambda: until_of(time_at(value, place))))


def lifetime_at(value: Any, place: str) -> int:
    """Returns the lifetime of a query in ms."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong_value(place, "a duration", value)
    return cast(int, with_place(place, lambda: lifetime_of(value)))


def limits_at(value: Any, place: str) -> str:
    """Returns the limits of a query as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: check_limits(text)))


def slice_at(value: Any, place: str) -> str:
    """Returns the slices in which sent rows are counted, as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: check_slices(text)))


def memory_at(value: Any, place: str) -> str:
    """Returns the memory limit of a task as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: check_memory(text)))


def read_required(options: Mapping[str, Any], key: str, place: str) -> Any:
    """Returns the value of a required key."""
    if options.get(key) is None:
        raise UsageError(f"{place} needs a {key}.")
    return options[key]


def text_at(value: Any, place: str) -> str:
    """Returns a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong_value(place, "a text", value)
    return value


def texts_at(value: Any, place: str) -> list[str]:
    """Returns a text or a list of texts as a list."""
    return [text_at(item, place) for item in (value if isinstance(value, list) else [value])]


def flag_at(value: Any, place: str) -> bool:
    """Returns a boolean."""
    if not isinstance(value, bool):
        raise wrong_value(place, "true or false", value)
    return value


def count_at(value: Any, place: str) -> int:
    """Returns a positive number, which may be a text such as ``100k``."""
    if isinstance(value, str):
        return cast(int, with_place(place, lambda: parse_count(value, "the number")))
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong_value(place, "a positive number", value)
    return value


def balance_at(value: Any, place: str) -> BalanceOptions | None:
    """Returns the options of balance."""
    # imported here: only a run with balance needs the runtime
    from levada.runtime.rebalancing.rebalancing_options import balance_of

    options: BalanceOptions | None = with_place(place, lambda: balance_of(value))
    return options


def one_of(
    words: tuple[str, ...], hint_of: Callable[[str, tuple[str, ...]], str] = near
) -> Callable[[Any, str], str]:
    """Returns a reader of one of these words. ``hint_of`` makes the hint for another word."""

    def read(value: Any, place: str) -> str:
        if value not in words:
            hint = hint_of(value, words) if isinstance(value, str) else ""
            said = f"{', '.join(words[:-1])} or {words[-1]}"
            raise UsageError(f"{place} is {said}, not {value!r}.", hint=hint)
        return str(value)

    return read


def region_at(value: Any, place: str) -> str:
    """Returns the regions of a query as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: region_of(text)))


def policy_at(value: Any, place: str) -> str:
    """Returns a report policy as text."""
    with_place(place, lambda: report_policy(value))
    return str(value)
