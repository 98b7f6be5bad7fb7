"""BriskStream's four applications as dataflows: word count, fraud and spike detection, Linear Road.

The paper states their operators, selectivities, and of word count the splitter's and the counter's
time on server A (1,612.8 and 612.3 ns). Linear Road's selectivities are from the authors' code,
since the paper's table is lost. All other cycles and all sizes are invented (``MADE_UP``), so only
the sign and the order of results count. Memory traffic is the bytes of a tuple.
"""

from __future__ import annotations

from levada.placement.replication.dataflow import Graph, Operator, Stream

MADE_UP = "cycles of all operators but splitter and counter, sizes of all tuples"
CLOCK = 1.2
"""GHz of server A, on which times were measured."""


def _op(name: str, ns: float, size: float) -> Operator:
    return Operator(name, ns * CLOCK, memory=size)


def word_count() -> Graph:
    """Returns WC: sentences of ten words, a running count of each word."""
    return Graph(
        "WC",
        [
            _op("spout", 400, 192),
            _op("parser", 250, 192),
            _op("splitter", 1612.8, 192),
            _op("counter", 612.3, 64),
            _op("sink", 150, 64),
        ],
        [
            Stream("spout", "parser", size=192),
            Stream("parser", "splitter", size=192),
            Stream("splitter", "counter", selectivity=10, size=64),
            Stream("counter", "sink", size=64),
        ],
    )


def fraud_detection() -> Graph:
    """Returns FD: a Markov model of each entity's last records; a signal for each."""
    return Graph(
        "FD",
        [
            _op("spout", 400, 256),
            _op("parser", 350, 256),
            _op("predictor", 4500, 256),
            _op("sink", 200, 64),
        ],
        [
            Stream("spout", "parser", size=256),
            Stream("parser", "predictor", size=256),
            Stream("predictor", "sink", size=64),
        ],
    )


def spike_detection() -> Graph:
    """Returns SD: each value against the mean of its device's last thousand."""
    return Graph(
        "SD",
        [
            _op("spout", 400, 128),
            _op("parser", 350, 128),
            _op("average", 1400, 128),
            _op("detector", 350, 64),
            _op("sink", 200, 64),
        ],
        [
            Stream("spout", "parser", size=128),
            Stream("parser", "average", size=128),
            Stream("average", "detector", size=64),
            Stream("detector", "sink", size=64),
        ],
    )


def linear_road() -> Graph:
    """Returns LR: tolls by speed, traffic and accidents. Balances and expenditures are off, as in
    the authors' code, and accidents send nothing.
    """
    position = 0.9886
    return Graph(
        "LR",
        [
            _op("spout", 400, 128),
            _op("parser", 350, 128),
            _op("dispatcher", 500, 128),
            _op("speed", 900, 128),
            _op("last_speed", 700, 64),
            _op("count", 800, 128),
            _op("accidents", 900, 128),
            _op("notification", 400, 128),
            _op("toll", 600, 128),
            _op("sink", 200, 64),
        ],
        [
            Stream("spout", "parser", size=128),
            Stream("parser", "dispatcher", size=128),
            Stream("dispatcher", "speed", position, 128),
            Stream("dispatcher", "count", position, 128),
            Stream("dispatcher", "accidents", position, 128),
            Stream("dispatcher", "notification", position, 128),
            Stream("dispatcher", "toll", position, 128),
            Stream("speed", "last_speed", size=64),
            Stream("last_speed", "toll", size=64),
            Stream("count", "toll", size=64),
            Stream("accidents", "notification", selectivity=0, size=64),
            Stream("notification", "sink", selectivity=0, size=64),
            Stream("toll", "sink", size=64),
        ],
    )


APPLICATIONS = {
    "WC": word_count,
    "FD": fraud_detection,
    "SD": spike_detection,
    "LR": linear_road,
}
