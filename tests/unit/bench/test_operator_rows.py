"""How many rows the operators touch in an epoch, given, read from state, looked up and written:
they follow the epoch, not the window.

Each operator by its query of ``bench operators``, with windows of 4 and of 16 epochs,
from when they are full; the results are counted, too.
"""

from __future__ import annotations

import pytest
from bench.operator_data import Size
from bench.operator_forms import CASES
from bench.operators import go

EPOCH = 50
ALIKE = {
    "Filter",
    "Filter, REGEX",
    "Extend",
    "Extend, text",
    "RGroup, GROUP_CONCAT",
    "RDistinct",
    "ReportJoin, EXISTS",
    "CountWindow",
    "SubqueryWindow",
}
"""What touches the rows that another case does."""


def touched(name: str, window: int) -> int:
    """Rows touched by the epochs that follow one another with full windows."""
    size = Size(EPOCH, window * EPOCH, 20, 8 * EPOCH)
    rows = 0

    def see(manifest) -> None:  # type: ignore[no-untyped-def]
        nonlocal rows
        read = sum(stream.elements for stream in manifest.streams.values())
        if size.warm < read <= size.until:
            rows += manifest.input_rows + manifest.state_rows

    go(name, size, see)
    return rows


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in CASES if name not in ALIKE])
def test_the_rows_that_an_epoch_touches_do_not_grow_with_the_window(name: str) -> None:
    short, long = touched(name, 4), touched(name, 16)
    assert short > 0
    assert long < 2 * short, (short, long)
