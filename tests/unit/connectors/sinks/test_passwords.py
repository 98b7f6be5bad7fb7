"""An output whose password is away: a mistake at the start, waited for once it has been let in."""

from __future__ import annotations

from typing import Any

import pytest

from levada.connectors.sinks.sink_url import Destination
from levada.errors import SinkError, TargetAwayError

LOGIN = {"password": "env:LEVADA_NO_PASSWORD"}
TARGETS: list[tuple[str, dict[str, Any]]] = [
    ("postgresql://me@127.0.0.1:1/db", LOGIN),
    ("kafka://127.0.0.1:1/t", {**LOGIN, "sasl": "plain", "user": "me"}),
]


@pytest.mark.parametrize(("url", "options"), TARGETS)
@pytest.mark.parametrize("begun", [False, True])
def test_a_password_that_is_away(url: str, options: dict[str, Any], begun: bool) -> None:
    target: Any = Destination(url, options).target("q", "id")
    target._begun = begun
    with pytest.raises(SinkError, match="no variable LEVADA_NO_PASSWORD") as caught:
        target.open(None)
    assert isinstance(caught.value, TargetAwayError) == begun
