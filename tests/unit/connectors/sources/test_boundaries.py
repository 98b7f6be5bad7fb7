"""Places at which a file may be cut are found from the bytes around them, and are such at which a
look at the whole file would cut, too. Which streams are cut so is a list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_splitter import LOOKS, _begin, boundary, cuts_by_size
from levada.connectors.sources.read_split import end_lines
from levada.core.array_types import Bytes
from levada.kernels.text.line_boundaries import cut_elements

LINES = st.sampled_from(
    [
        "<s1> <p> <o> .",
        "<s1> <p> <o2> .",
        "<s2> <p> <o> .",
        "<s3> <p> <o> .",
        "  <s2> <p> <o> .",
        "_:b <p> <o> .",
        "_:b <p> _:o .",
        "_:o <p> <o> .",
        "<s1> <p> _:b.",
        "<s2> <p> _:b .",
        "<s2> <p> _:o .",
        '<s1> <p> "a \\" <g> b"@en <g1> .',
        "<s2> <p> _:o <g1> .",
        "<s2> <p> <o> <g2> . # comment",
        "<s1> <p> <o> <g2> .",
        "<s2> <p> <o> _:g .",
        "# comment",
        "   # comment",
        "",
        " \t",
        "garbage",
        "<s1",
        "<s1> <p>",
    ]
)
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=20).map(
    lambda parts: "".join(a + b for a, b in parts).encode()
)
ELEMENTS = st.sampled_from(["line", "subject", "graph", "blankline"])


def count(data: bytes, element: str) -> int:
    """The elements of a text."""
    text = end_lines(np.frombuffer(bytearray(data), np.uint8))
    return cut_elements(text, element, len(data) + 1, True)[1]


def buffer(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


@given(TEXTS, ELEMENTS, st.integers(0, 400), st.integers(1, 200))
def test_element_begins_where_bytes_say_it_does(
    text: bytes, element: str, at: int, size: int
) -> None:
    """Wherever it is looked, and however little is seen there."""
    length = _begin(buffer(text[at : at + size]), element)
    if length:
        place = at + length
        assert count(text[:place], element) + count(text[place:], element) == count(text, element)


@pytest.mark.parametrize(
    ("element", "text", "begin"),
    [
        ("line", b"rest\n<s> <p> <o> .\n", 5),
        ("line", b"rest\r\n<s> <p> <o> .\n", 6),
        ("line", b"\n<s> <p> <o> .\n", 1),  # of a carriage return before it
        ("line", b"rest\r", 0),  # a newline may follow
        ("line", b"rest", 0),
        ("subject", b"rest\n<s> <p> <o> .\n<t> <p> <o> .\n", 19),
        ("subject", b"rest\n<s> <p> <o> .\n<t> <p> <o> ", 0),
        ("subject", b"rest\n<s> <p> <o> .\n<t> <p> _:o .\n<u> <p> <o> .\n", 33),
        ("subject", b"rest\n_:s <p> <o> .\n<t> <p> <o> .\n", 0),
        ("graph", b"rest\n<s> <p> <o> <g> .\n<s> <p> <o> <h> .\n", 23),
        ("blankline", b"rest\n<s> <p> <o> .\n\n<s> <p> <o> .\n", 20),
    ],
)
def test_element_begins_at_the_first_sure_place(element: str, text: bytes, begin: int) -> None:
    assert _begin(buffer(text), element) == begin


def test_place_is_looked_for_nearby(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    far = LOOKS[0] + 10
    path.write_bytes(b"x" * far + b"\n" + b"y" * LOOKS[1] + b"\n")
    size = path.stat().st_size
    found = boundary(str(path), 5, size, "line")
    assert found is not None and found[0] == far + 1 and found[1][:2] == (5, far + 1)
    assert boundary(str(path), far + 1, size - 1, "line") is None
    assert boundary(str(path), 5, far, "line") is None


@pytest.mark.parametrize(
    ("name", "options", "by_size"),
    [
        ("a.nt", {}, True),
        ("a.nq", {"element": "graph"}, True),
        ("a.nt", {"element": "subject"}, True),
        ("a.nt", {"element": "blankline"}, True),
        ("a.nt.gz", {}, True),  # its unpacked copy
        ("a.ndjson", {"schema": "k:integer"}, True),
        ("a.csv", {"schema": "k:integer"}, False),  # line ends within quotes
        ("a.parquet", {"schema": "k:integer"}, False),  # its layout says where rows are
        ("a.ttl", {"time": "filename:(.)"}, False),  # documents are read whole
        ("a.nt", {"element": "document"}, False),
        ("a.nt", {"limit": 5}, False),  # elements are counted before they are read
        ("a.ndjson", {"mapping": "{row}"}, False),  # rows are numbered
        ("a.ndjson", {"mapping": "{k}"}, True),
    ],
)
def test_streams_that_are_cut_by_size(
    tmp_path: Path, name: str, options: dict[str, Any], by_size: bool
) -> None:
    if "mapping" in options:
        mapping, subject = tmp_path / "m.yaml", f"<http://e/{options['mapping']}>"
        mapping.write_text(f"columns: {{k: integer}}\ntriples: ['{subject} <http://e/p> {{k}}']\n")
        options = {"mapping": mapping}
    assert cuts_by_size(StreamConfig.from_options("s", tmp_path / name, **options)) is by_size
