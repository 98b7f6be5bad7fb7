"""Four streaming applications by operators and functions of one's own: word count, fraud
detection, spike detection and the cars of Linear Road. ``app.yaml`` declares them, and the files
``*.cql`` use them.
"""

from pathlib import Path

import numpy as np
import polars as pl

import levada

Frames = tuple[pl.DataFrame, pl.DataFrame]
URL = "http://example.org/applications/"
MISSING = np.loadtxt(Path(__file__).with_name("model.csv"), delimiter=",")
"""For a move from state i to state j: the probability of all other moves from i."""
MOVES, READINGS, STANDING = 4, 1000, 4
EXIT = 4
"""The lane that leaves the road."""


def with_state(rows: pl.DataFrame, state: pl.DataFrame) -> pl.DataFrame:
    """The rows behind those that the state has of their keys, which have the row -1."""
    before = state.with_columns(row=pl.lit(-1, pl.Int64))
    whole = pl.concat([before, rows.select(before.columns)])
    return whole.sort("key", maintain_order=True)


# Word count


@levada.operator(
    iri=URL + "words",
    name="words",
    takes={"text": "string"},
    returns={"word": "string"},
    state={},
)
def words(rows: pl.DataFrame, state: pl.DataFrame) -> Frames:
    """The words of texts, in their order; the operator keeps nothing."""
    each = rows.select("row", word=pl.col("text").str.extract_all(r"\S+"))
    return each.explode("word").drop_nulls(), state


@levada.operator(
    iri=URL + "counts",
    name="counts",
    takes={},
    returns={"n": "integer"},
    state={"n": "integer"},
)
def counts(rows: pl.DataFrame, state: pl.DataFrame) -> Frames:
    """The number of rows of a key so far, with each row."""
    before = rows.join(state, on="key", how="left")
    numbers = pl.col("n").fill_null(0) + pl.int_range(1, pl.len() + 1).over("key")
    out = before.select("row", "key", n=numbers)
    return out, out.group_by("key").agg(pl.col("n").max())


# Fraud detection


@levada.operator(
    iri=URL + "score",
    name="score",
    takes={"id": "integer", "state": "integer"},
    returns={"id": "integer", "score": "double"},
    state={"id": "integer", "state": "integer"},
)
def score(rows: pl.DataFrame, state: pl.DataFrame) -> Frames:
    """How unlikely the last four moves of an entity are, from its fifth transaction on."""
    whole = with_state(rows, state)
    earlier = whole.select(pl.col("state").shift(1).over("key").fill_null(0)).to_series()
    missing = MISSING[earlier.to_numpy(), whole["state"].to_numpy()]
    place = pl.int_range(pl.len()).over("key")
    whole = whole.with_columns(missing=missing, place=place)
    whole = whole.with_columns(missing=pl.when(pl.col("place") > 0).then("missing"))
    last = [pl.col("missing").shift(i).over("key") for i in range(MOVES)]
    scores = whole.with_columns(score=sum(last[1:], last[0]) / MOVES)
    out = scores.filter(pl.col("row") >= 0).drop_nulls("score")
    return out, whole.group_by("key", maintain_order=True).tail(MOVES)


# Spike detection


@levada.operator(
    iri=URL + "spikes",
    name="means",
    takes={"value": "double"},
    returns={"value": "double", "mean": "double"},
    state={"value": "double"},
)
def means(rows: pl.DataFrame, state: pl.DataFrame) -> Frames:
    """The mean of the last thousand values of a key, with each of them."""
    whole = with_state(rows, state)
    mean = pl.col("value").rolling_mean(READINGS, min_samples=1).over("key")
    out = whole.with_columns(mean=mean).filter(pl.col("row") >= 0)
    return out, whole.group_by("key", maintain_order=True).tail(READINGS - 1)


@levada.function(
    iri=URL + "is-spike", name="isspike", arguments=("double", "double"), returns="boolean"
)
def is_spike(value: pl.Series, mean: pl.Series) -> pl.Series:
    """Whether a value is more than 3 % off the mean."""
    return (value - mean).abs() > 0.03 * mean


# Linear Road


@levada.operator(
    iri=URL + "cars",
    name="cars",
    takes=dict.fromkeys(("road", "way", "lane", "segment", "place"), "integer"),
    returns={
        **dict.fromkeys(("road", "way", "lane", "segment", "place"), "integer"),
        **dict.fromkeys(("enters", "stands"), "boolean"),
    },
    state=dict.fromkeys(("road", "way", "lane", "segment", "place"), "integer"),
)
def cars(rows: pl.DataFrame, state: pl.DataFrame) -> Frames:
    """The reports of cars: whether the car enters a segment, and whether its last four reports are
    from one place.
    """
    whole = with_state(rows, state)

    def same(*columns: str) -> pl.Expr:
        alike = [pl.col(c) == pl.col(c).shift(1).over("key") for c in columns]
        return pl.all_horizontal(alike).fill_null(False)

    left = pl.col("lane").shift(1).over("key") == EXIT
    stays = same("road", "way", "segment") & ~left.fill_null(True)
    whole = whole.with_columns(
        enters=(pl.col("lane") != EXIT) & ~stays,
        still=same("road", "way", "lane", "segment", "place"),
    )
    still = [pl.col("still").shift(i).over("key").fill_null(False) for i in range(STANDING - 1)]
    out = whole.with_columns(stands=pl.all_horizontal(still)).filter(pl.col("row") >= 0)
    return out, whole.group_by("key", maintain_order=True).tail(STANDING - 1)


@levada.function(iri=URL + "toll", name="toll", arguments=("integer", "double"), returns="integer")
def toll(number: pl.Series, speed: pl.Series) -> pl.Series:
    """The toll of a segment with so many cars and this mean speed; none where it is free."""
    return (2 * (number - 50) ** 2).set((number <= 50) | (speed >= 40), None)
