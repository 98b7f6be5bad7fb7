"""The types of the columns of a PostgreSQL table that an output creates."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks.postgres_sink import PostgresTarget, _inferred_types
from levada.core.rdf_terms import XSD
from levada.errors import UsageError


@pytest.mark.parametrize(
    ("terms", "kind"),
    [
        ([f'"5"^^<{XSD}integer>', None], "numeric"),
        ([f'"5"^^<{XSD}integer>', f'"2.5"^^<{XSD}decimal>'], "numeric"),
        ([f'"5"^^<{XSD}integer>', f'"2.5"^^<{XSD}double>'], "double precision"),
        ([f'"2026-01-02T03:04:05Z"^^<{XSD}dateTime>'], "timestamptz"),
        ([f'"2026-01-02T03:04:05"^^<{XSD}dateTime>'], "timestamp"),
        ([f'"2026-01-02"^^<{XSD}date>'], "date"),
        ([f'"true"^^<{XSD}boolean>'], "boolean"),
        ([f'"P1D"^^<{XSD}dayTimeDuration>'], None),
        ([f'"5"^^<{XSD}integer>', "<http://e/a>"], None),
        ([f'"five"^^<{XSD}integer>'], None),
        ([None, None], None),
    ],
)
def test_a_column_has_the_common_type_of_its_values(
    terms: list[str | None], kind: str | None
) -> None:
    batch = Batch(np.zeros(len(terms), np.int64), columns={"x": pl.Series(terms, dtype=pl.String)})
    assert _inferred_types(batch).get("x") == kind


def test_an_unknown_type_is_refused_with_the_near_one() -> None:
    with pytest.raises(UsageError, match="n bigin has no type") as error:
        PostgresTarget.from_url("q", "postgresql://me@db/shop", {"columns": "n bigin"}, "id")
    assert error.value.hint == "Did you mean bigint?"
