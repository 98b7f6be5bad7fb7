"""Fraud detection: how unlikely an entity's last moves are, by a Markov model of 18 states.

A transaction has a state (how large, what kind, how soon after the last one: LNL .. HHS). The
score of a move is the sum of what the model gives to all other moves from the same state
(*missProbability*); an entity's score is the mean over its last four moves, so over its last five
transactions. Above 0.96 it is taken for a fraud.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from bench.streaming.application import Answer, Application, Frames, text

STATES, MOVES, THRESHOLD = 18, 4, 0.96
EACH = 100
"""Transactions of an entity."""
FRAUDS = 0.05
"""The part of the transactions that are drawn without the model."""
Matrix = npt.NDArray[np.float64]


def model(seed: int) -> Matrix:
    """Probabilities of moves, from row to column; few are likely."""
    drawn = np.random.default_rng(seed).gamma(0.2, size=(STATES, STATES)) + 1e-3
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def read_model(path: Path) -> Matrix:
    """A model as DSPBench publishes it: a line with the names of states, then a row a line."""
    rows = path.read_text().split()[1:]
    return np.array([[float(value) for value in row.split(",")] for row in rows])


def misses(moves: Matrix) -> pl.DataFrame:
    """The stream ``Model``, a relation from outside: the score of each move."""
    rows = [
        (i, j, float(math.fsum(moves[i]) - moves[i, j]), 0, "+")
        for i in range(STATES)
        for j in range(STATES)
    ]
    return pl.DataFrame(rows, schema=["earlier", "later", "missing", "ts", "sign"], orient="row")


def transactions(n: int, seed: int, moves: Matrix) -> pl.DataFrame:
    """The stream ``Transactions``: in each round every entity makes one, in any order; one a ms."""
    rng = np.random.default_rng(seed)
    entities = max(n // EACH, 1)
    reach = moves.cumsum(axis=1)
    state = rng.integers(0, STATES, entities)
    made, whose = [], []
    for _ in range(min(EACH, n)):
        likely = (rng.random((entities, 1)) > reach[state]).sum(axis=1).clip(max=STATES - 1)
        state = np.where(rng.random(entities) < FRAUDS, rng.integers(0, STATES, entities), likely)
        order = rng.permutation(entities)
        made.append(state[order])
        whose.append(order)
    ids = np.arange(1, entities * len(made) + 1)
    return pl.DataFrame(
        {"entity": np.concatenate(whose), "id": ids, "state": np.concatenate(made), "ts": ids}
    )


def over(moves: Matrix, n: int, seed: int) -> Frames:
    """Both streams by a model."""
    return {"Model": misses(moves), "Transactions": transactions(n, seed, moves)}


def make(n: int, seed: int) -> Frames:
    """About ``n`` transactions by a model that is drawn."""
    return over(model(seed), n, seed)


def answers(streams: Frames) -> dict[str, list[Answer]]:
    """A score for each transaction from an entity's fifth on."""
    missing = {(i, j): miss for i, j, miss, _, _ in streams["Model"].iter_rows()}
    last: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=MOVES + 1))
    signals: list[Answer] = []
    for entity, number, state, ts in streams["Transactions"].iter_rows():
        seen = last[entity]
        seen.append(state)
        if len(seen) > MOVES:
            steps = zip(list(seen), list(seen)[1:], strict=False)
            score = math.fsum(missing[step] for step in steps) / MOVES
            signals.append((ts, entity, number, score))
    return {"signals": signals, "frauds": [row for row in signals if row[3] > THRESHOLD]}  # type: ignore[operator]


FRAUD_DETECTION = Application(
    "FD",
    {
        "signals": text("fraud_views", "fraud_signals"),
        "frauds": text("fraud_views", "frauds"),
    },
    ("signals",),
    make,
    answers,
    target=0.5,
    brisk=0.05,
    events=1_000_000,
    epoch=50_000,
    relations=("Model",),
)
