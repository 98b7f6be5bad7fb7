"""Which column a variable is, seen from above."""

import pytest

from levada.core.stream_facts import StreamFacts
from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical import nodes as a
from levada.plan.logical.query_options import QueryOptions
from levada.plan.lowering.lower import lower
from levada.plan.physical.column_lineage import column_type, time_variables
from levada.plan.physical.operators import Op

SCHEMAS = {"A": {"k": "integer", "v": "double"}, "B": {"k": "integer", "name": "string"}}


def planned(text: str) -> Op:
    query: a.Query = translate_cql(text, SCHEMAS, QueryOptions())
    return lower(query, {name: StreamFacts(schema) for name, schema in SCHEMAS.items()}).root


def rows_of(op: Op) -> Op:
    """The rows with event times below what reports them."""
    while not op.windows:
        (op,) = op.inputs
    return op


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Select k, v From A [Range 1 s]", ["integer", "double"]),
        ("Select k As a, v As b From A [Range 1 s]", ["integer", "double"]),
        ("Select A.v, B.name From A [Range 1 s], B [Now] Where A.k = B.k", ["double", "string"]),
        ("Select k + 1 As more From A [Range 1 s]", [""]),
        ("Select k From A [Range 1 s] Where v > 2.5", ["integer"]),
    ],
)
def test_a_column_keeps_its_type_through_filters_joins_and_names(
    text: str, types: list[str]
) -> None:
    root = planned(text)
    assert [column_type(root, name) for name in root.variables] == types


def test_a_name_that_is_not_there_has_no_type() -> None:
    assert column_type(planned("Select k From A [Range 1 s]"), "nothing") == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Select k, ts From A [Range 1 s]", {0}),
        ("Select k From A [Range 1 s]", set()),
        ("Select A.ts As a, B.ts As b From A [Range 1 s], B [Now] Where A.k = B.k", {0, 1}),
        ("Select B.ts As b From A [Range 1 s], B [Now] Where A.k = B.k", {1}),
        ("Select ts + 1 As later From A [Range 1 s]", set()),
    ],
)
def test_the_windows_whose_event_times_are_shown(text: str, shown: set[int]) -> None:
    assert set(time_variables(rows_of(planned(text)))) == shown
