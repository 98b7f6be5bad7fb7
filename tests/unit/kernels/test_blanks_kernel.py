"""The kernels of blank nodes equal a twin that looks for terms by a regular expression."""

import re
from typing import Any

import numpy as np
import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from levada.kernels.text.blank_nodes import blank_places, relabel

TERM = re.compile(r'<[^>]*>|_:(\S+)|"(?:[^"\\]|\\.)*"', re.DOTALL)
IRIS = st.sampled_from(["http://e/a", "http://e/_:x", "http://e/é"]).map(ox.NamedNode)
BLANKS = st.sampled_from(["a", "b12", "n0", "x_y.z"]).map(ox.BlankNode)
LITERALS = st.text(alphabet='a _:"\\\n<>é', max_size=6).map(ox.Literal)
QUADS = st.builds(
    ox.Quad,
    IRIS | BLANKS,
    IRIS,
    IRIS | BLANKS | LITERALS,
    IRIS | BLANKS | st.just(ox.DefaultGraph()),
)


def printed(quads: Any) -> Any:
    return ox.serialize(quads, format=ox.RdfFormat.N_QUADS)


def places(text: Any) -> Any:
    data = np.frombuffer(text, np.uint8)
    start, size = (np.empty(text.count(b"_:"), np.int64) for _ in range(2))
    found = blank_places(data, start, size)
    return start[:found], size[:found]


@given(st.lists(QUADS, max_size=8))
def test_places_equal_the_twin(quads: Any) -> None:
    text = printed(quads)
    start, size = places(text)
    labels = [text[a : a + n].decode() for a, n in zip(start.tolist(), size.tolist(), strict=True)]
    assert labels == [m[1] for m in TERM.finditer(text.decode()) if m[1] is not None]


@given(st.lists(QUADS, max_size=8), st.integers(0, 10**12))
def test_new_labels_equal_the_twin(quads: Any, first: Any) -> None:
    text = printed(quads)
    start, size = places(text)
    number = np.arange(first, first + len(start), dtype=np.int64)
    out = np.empty(len(text) + 20 * len(start), np.uint8)
    written = relabel(np.frombuffer(text, np.uint8), start, size, number, out)
    numbers = iter(number.tolist())
    twin = TERM.sub(lambda m: m[0] if m[1] is None else f"_:n{next(numbers)}", text.decode())
    assert out[:written].tobytes().decode() == twin
