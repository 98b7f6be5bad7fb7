"""Functions that tests declare, as a user's module does; executors import it by name."""

from collections import defaultdict

import polars as pl

import levada

CALLS: list[str] = []
"""The names of the functions that this process has called, in order."""


@levada.function(
    iri="http://e/hypot", name="hypot", arguments=("double", "double"), returns="double"
)
def hypot(a: pl.Series, b: pl.Series) -> pl.Series:
    CALLS.append("hypot")
    return (a * a + b * b).sqrt()


@levada.function(iri="http://e/shout", name="shout", arguments=("string",), returns="string")
def shout(a: pl.Series) -> pl.Series:
    return a.str.to_uppercase() + '"!\n'


@levada.function(iri="http://e/half", name="half", arguments=("integer",), returns="integer")
def half(a: pl.Series) -> pl.Series:
    """Half of an even number; none of an odd one."""
    return (a // 2).set(a % 2 == 1, None)


@levada.function(iri="http://e/long", name="islong", arguments=("string",), returns="boolean")
def is_long(a: pl.Series) -> pl.Series:
    return a.str.len_chars() > 3


@levada.function(iri="http://e/parent", arguments=("iri",), returns="iri")
def parent(a: pl.Series) -> pl.Series:
    """The IRI without its last step; of <http://e/bad> a text that is not an IRI."""
    return a.str.replace("[^/]*$", "").replace("http://e/", "no iri").replace("no iri", "not one")


@levada.function(iri="http://e/text", arguments=("term",), returns="string")
def text(a: pl.Series) -> pl.Series:
    return a


@levada.function(iri="http://e/fails", name="fails", arguments=("double",), returns="double")
def fails(a: pl.Series) -> pl.Series:
    if (a > 40).any():
        raise ValueError("too large")
    return a


@levada.function(iri="http://e/wrong", arguments=("double",), returns="integer")
def wrong(a: pl.Series) -> pl.Series:
    """Strings, of which one declares integers."""
    return a.cast(pl.String)


@levada.function(iri="http://e/short", arguments=("double",), returns="double")
def short(a: pl.Series) -> pl.Series:
    return a.head(0)


@levada.aggregate(
    iri="http://e/spread",
    name="spread",
    argument="double",
    state={"low": "double", "high": "double", "n": "integer"},
    returns="double",
)
class Spread:
    """The greatest value less the least, times their number: neither a sum nor a winner."""

    @staticmethod
    def fold(rows: pl.DataFrame) -> pl.DataFrame:
        CALLS.append("fold")
        value = pl.col("value")
        return rows.group_by("group").agg(low=value.min(), high=value.max(), n=pl.len())

    @staticmethod
    def merge(parts: pl.DataFrame) -> pl.DataFrame:
        CALLS.append("merge")
        return parts.group_by("group").agg(
            pl.col("low").min(), pl.col("high").max(), pl.col("n").sum()
        )

    @staticmethod
    def finish(parts: pl.DataFrame) -> pl.Series:
        return (parts["high"] - parts["low"]) * parts["n"]


@levada.aggregate(
    iri="http://e/longest",
    name="longest",
    argument="string",
    state={"n": "integer"},
    returns="integer",
)
class Longest:
    """The most characters of a text."""

    @staticmethod
    def fold(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.group_by("group").agg(n=pl.col("value").str.len_chars().max())

    @staticmethod
    def merge(parts: pl.DataFrame) -> pl.DataFrame:
        return parts.group_by("group").agg(pl.col("n").max())

    @staticmethod
    def finish(parts: pl.DataFrame) -> pl.Series:
        return parts["n"]


@levada.operator(
    iri="http://e/running",
    name="running",
    takes={"v": "double"},
    returns={"n": "integer", "total": "double"},
    state={"n": "integer", "total": "double"},
)
def running(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The number and the sum of a key's values so far; a row without a value makes none."""
    there = rows["v"].is_not_null()
    before = rows.join(state, on="key", how="left").fill_null(0).with_columns(there=there)
    out = before.select(
        "row",
        "key",
        n=pl.col("n") + pl.col("there").cast(pl.Int64).cum_sum().over("key"),
        total=pl.col("total") + pl.col("v").cum_sum().over("key"),
    )
    after = out.group_by("key", maintain_order=True).last().select("key", "n", "total")
    return out.filter(there).select("row", "n", "total"), after


@levada.operator(
    iri="http://e/lastthree",
    name="lastthree",
    takes={"v": "double"},
    returns={"mean": "double"},
    state={"v": "double"},
)
def last_three(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The mean of a key's last three values; a negative one makes it forget them all."""
    last: dict[int, list[float]] = defaultdict(list)
    for key, value in state.rows():
        last[key].append(value)
    out: list[tuple[int, float]] = []
    for row, key, value in rows.select("row", "key", "v").rows():
        if value is not None and value < 0:
            last[key] = []
        elif value is not None:
            last[key] = [*last[key], value][-3:]
            out.append((row, sum(last[key]) / len(last[key])))
    after = [(key, value) for key, values in last.items() for value in values]
    return (
        pl.DataFrame(out, schema={"row": pl.Int64, "mean": pl.Float64}, orient="row"),
        pl.DataFrame(after, schema={"key": pl.Int64, "v": pl.Float64}, orient="row"),
    )


@levada.operator(
    iri="http://e/letters",
    name="letters",
    takes={"dev": "string"},
    returns={"word": "string"},
    state={},
)
def letters(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The letters of a text."""
    return rows.select("row", word=pl.col("dev").str.split("")).explode("word"), state
