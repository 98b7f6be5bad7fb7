"""``growth``: W1 with windows of 6, 60 and 600 s and so many keys that results are about as many.

The work of an epoch is to grow with its new rows and results, not with the window: the cost of an
event at 60 s is compared with that at 6 s, and that at 600 s with that at 60 s (at most 1.3 each).
The longest window keeps two thirds of all events alive.
"""

from __future__ import annotations

from bench.data import SPAN
from bench.join import WIDTH, Shape, both
from bench.result import Result

WIDTHS = (6_000, WIDTH, 600_000)


def keys_for(width: int, keys: int) -> int:
    """So many keys that a window of ``width`` gives as many results as one of 60 s with ``keys``.

    Of two events uniform over a span T, a share of (2 w T - w^2) / T^2 is at most w apart.

    >>> [keys_for(width, 100_000) for width in WIDTHS]
    [10278, 100000, 721649]
    """
    return max(round(keys * _near(width) / _near(WIDTH)), 1)


def _near(width: int) -> float:
    return (2 * width * SPAN - width**2) / SPAN**2


def run(scale: float, stepped: bool) -> Result:
    """The engine with each width; ``levada`` is the widest, ``baseline`` the narrowest."""
    base = Shape().scaled(scale)
    sides = []
    for width in WIDTHS:
        shape = Shape(base.n, keys_for(width, base.keys), width, base.epoch, base.warm, base.rounds)
        sides.append(
            both(shape, ("levada",), stepped=stepped)["levada"]
            | {"window_s": width // 1000, "keys": shape.keys}
        )
    costs = [side["cpu_s"] / side["rows"] for side in sides]
    growth = {
        f"growth_{wide['window_s']}_s": round(after / before, 3)
        for wide, before, after in zip(sides[1:], costs, costs[1:], strict=False)
    }
    return Result(
        "growth", sides[-1], sides[0], round(costs[0] / costs[-1], 3), growth | {"middle": sides[1]}
    )
