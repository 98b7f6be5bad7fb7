"""The options of static tables, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from levada.connectors.config.table_config import TableConfig
from levada.connectors.sources.postgres_table import shown_source
from levada.errors import UsageError


def test_a_database_is_named_without_user_and_with_its_table() -> None:
    table = TableConfig.from_options("dims", "postgresql://me@db:5433/shop", every="2s")
    assert (table.is_database, table.every, table.graph) == (True, 2000, "urn:levada:table:dims")
    assert shown_source(table) == "postgresql://db:5433/shop#dims"
    other = TableConfig.from_options("dims", "postgresql://me@db/shop#public.rooms")
    assert shown_source(other) == "postgresql://db/shop#public.rooms"


def test_a_schema_of_auto_is_none() -> None:
    assert TableConfig.from_options("d", "d.parquet", schema="auto").schema == ()


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("d.txt", {}, "The table d at d.txt has no format that is known"),
        ("d.csv", {"graph": "x"}, "The table d has no option graph"),
        ("d.csv", {"schema": "k:int"}, "schema of the table d: the column k has the type int"),
        ("postgresql://me:pw@db/shop", {}, "a password does not stand in a URL"),
        ("postgresql://me@db", {}, "the URL names no database"),
        ("postgresql://me@db/shop", {"password": "pw"}, "a password does not stand here"),
    ],
)
def test_wrong_options_are_refused(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        TableConfig.from_options("d", source, **options)
    assert message in error.value.message
