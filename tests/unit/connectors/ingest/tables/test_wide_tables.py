"""Tables of thousands of columns: the work grows as the columns do, by counts of comparisons and
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from levada.connectors.config.column_names import number_names
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import AUTO
from levada.connectors.ingest.tables.schema_inference import sniff
from levada.core import frame
from levada.core.frame import Frame
from levada.language.cql.ast import Column, Item, LiteralType, Span
from levada.language.translate.cql.scope import (
    Classes,
    Columns,
    Scope,
    output_names,
    variable_names,
)
from levada.plan.binding.leaves import leaf
from levada.plan.binding.slot_resolution import slots_of
from levada.plan.physical import operators as p
from levada.plan.physical.column_lineage import column_types
from levada.plan.physical.operators import Op

COLUMNS = 2_000
MANY = 20 * COLUMNS


class Name(str):
    """A name that counts with how many others it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def comparisons(work: Callable[[list[Name], list[Name]], Any]) -> int:
    """How many ``work`` makes with two equal lists of names, which are not the same objects."""
    one, other = ([Name(f"c{i}") for i in range(COLUMNS)] for _ in range(2))
    Name.compared = 0
    work(one, other)
    return Name.compared


def scope_of(names: list[Name]) -> Scope:
    keys: list[str] = [*names]
    declared = dict.fromkeys(keys, LiteralType.INTEGER)
    return Scope([Columns("M", declared, True, Span(1, 1))], "")


def select_all(one: list[Name], other: list[Name]) -> None:
    scope, span = scope_of(one), Span(1, 1)
    items = [Item(Column("M", name, span), None, name, span) for name in other]
    variable_names(scope, Classes(), items, output_names(scope, items))


def scan(names: list[Name]) -> Op:
    types = ("integer",) * len(names)
    return Op(p.Scan("s", tuple(names), types), (), tuple(names), (0,), 0)


def rename(one: list[Name], other: list[Name]) -> Op:
    return Op(p.Rename(tuple(other)), (scan(one),), tuple(one), (0,), 0)


WORK: dict[str, Callable[[list[Name], list[Name]], Any]] = {
    "numbers": lambda one, other: number_names([*one, *other]),
    "select": select_all,
    "slots": lambda one, other: slots_of(one, other),
    "leaf": lambda one, other: leaf(scan(one).spec, tuple(one), tuple(other), 0, ()),  # type: ignore[arg-type]
    "types": lambda one, other: column_types(rename(one, other), other),
}


@pytest.mark.parametrize("name", WORK)
def test_comparisons_of_names_grow_as_the_columns(name: str) -> None:
    assert comparisons(WORK[name]) < MANY


def test_columns_of_a_frame_are_not_compared_pair_by_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    equal = np.array_equal
    monkeypatch.setattr(
        np,
        "array_equal",
        lambda *two: compared.append(1) or equal(*two),  # type: ignore[func-returns-value]
    )
    values = np.arange(100, dtype=np.int64)
    columns = {f"c{i}": values + i for i in range(COLUMNS)} | {"again": values + 7}
    ((described, _),) = frame.lay_out({"a": Frame(columns)})
    assert sum(compared) == 1
    places = {name: place for name, _, place in described.columns}
    assert places["again"] == places["c7"]


def test_the_columns_of_a_table_are_looked_at_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    select = pl.DataFrame.select

    def counted(*given: Any, **options: Any) -> pl.DataFrame:
        calls.append(1)
        return select(*given, **options)

    monkeypatch.setattr(pl.DataFrame, "select", counted)
    counts = []
    for size in (10, 500):
        path = tmp_path / "a.csv"
        names = ",".join(f"c{i}" for i in range(size))
        path.write_text(f"ts,{names}\n1{',2.5' * size}\n2{',3' * size}\n")
        calls.clear()
        found = sniff(str(path), StreamConfig("s", str(path), "csv", "field:ts", schema=AUTO))
        assert (found.types["c0"], found.time) == ("double", "ts")
        counts.append(sum(calls))
    assert counts[0] == counts[1]
