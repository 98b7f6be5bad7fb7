"""JSONPaths against ``jsonpath-rfc9535``: which values they meet in random documents, and which
texts are paths at all.
"""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.config.json_path import EACH, Step, parse_iterator, rooted_path
from levada.connectors.ingest.tables.json_rows import json_rows
from levada.connectors.sources.splits import FileSplit
from levada.errors import UsageError

reference = pytest.importorskip("jsonpath_rfc9535", reason="needs jsonpath-rfc9535")

NAMES = ["a", "b", "é", "a.b", "x y", "'", '"', "\\", "", "$", "*", "0"]
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", '{"a": 1}'])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=15,
)
STEPS = st.sampled_from([*NAMES, 0, 1, 2, EACH])


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), max_size=3), st.lists(STEPS))
def test_a_path_meets_the_values_of_the_reference(
    records: list[dict[str, Any]], steps: list[Step]
) -> None:
    path = rooted_path(steps)
    assert parse_iterator(path) == tuple(steps)
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    split = FileSplit("s", "s", "a", "a", "ndjson", 0, len(lines), 0, 1, len(records))
    iterator = parse_iterator(path)
    rows = json_rows(np.frombuffer(lines, np.uint8), ["@"], split, None, iterator)
    values = [node.value for record in records for node in reference.find(path, record)]
    if iterator[:1] and not isinstance(iterator[0], str):
        assert iterator[0] is EACH or not values  # an index is of an array
    assert rows.table.height == len(values) and not rows.dead
    for text, value in zip(rows.table["@"], values, strict=True):
        is_text = value is None or isinstance(value, str)
        assert (text if is_text else json.loads(text)) == value


@given(st.text("$.[]'\"\\*ab0 1-é@?,:u", max_size=8).map(lambda text: "$" + text))
def test_a_text_is_a_path_if_it_is_one_for_the_reference(text: str) -> None:
    try:
        reference.compile(text)
        is_path = True
    except reference.JSONPathError:
        is_path = False
    try:
        parse_iterator(text)
    except UsageError as error:
        assert not is_path or "not supported" in error.message or "starts" in error.message, text
    else:
        assert is_path or not text.startswith(("$.", "$[")), text
