"""Terms tables against a dictionary."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.frame import pack, unpack
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.text import term_texts as kernels

Identity = tuple[int, int]
IDENTITY = st.tuples(st.integers(0, 3), st.integers(0, 2))
IDENTITIES = st.lists(IDENTITY, max_size=25)


def text_of(identity: Identity) -> str:
    x, y = identity
    return "" if identity == (1, 1) else f'"{"é" * x}term {x}-{y}"'


def halves(identities: list[Identity]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([i[0] for i in identities], np.uint64), np.array(
        [i[1] for i in identities], np.uint64
    )


def table(identities: list[Identity]) -> Terms:
    """The table of these rows, their texts scattered over a buffer with other bytes between
    them.
    """
    pieces = [b"#" + text_of(i).encode() for i in identities]
    starts = np.cumsum([0, *(len(p) for p in pieces)])[:-1] + 1
    lengths = np.array([len(p) - 1 for p in pieces], np.int32)
    return Terms.from_texts(
        *halves(identities),
        starts.astype(np.int64),
        lengths,
        np.frombuffer(b"".join(pieces), np.uint8),
    )


def contents(terms: Terms) -> dict[Identity, str]:
    ends = zip(terms.off[:-1], terms.off[1:], strict=True)
    texts = [terms.data[a:z].tobytes().decode() for a, z in ends]
    identities = list(zip(terms.x.tolist(), terms.y.tolist(), strict=True))
    assert len(set(identities)) == len(identities) == len(terms)
    return dict(zip(identities, texts, strict=True))


def expected(identities: list[Identity]) -> dict[Identity, str]:
    return {i: text_of(i) for i in identities if i != (0, 0)}


@settings(deadline=None)
@given(identities=IDENTITIES)
def test_of_keeps_each_bound_identity_once_in_order(identities: list[Identity]) -> None:
    assert list(contents(table(identities)).items()) == list(expected(identities).items())


@settings(deadline=None)
@given(identities=IDENTITIES, wanted=IDENTITIES)
def test_find_texts_and_pick(identities: list[Identity], wanted: list[Identity]) -> None:
    terms = table(identities)
    held = list(expected(identities))
    rows = terms.find(*halves(wanted))
    assert rows.tolist() == [held.index(w) if w in held else -1 for w in wanted]
    texts = terms.texts(*halves(wanted), strict=False)
    texts.validate(full=True)
    assert texts.type == pa.large_string()
    assert texts.to_pylist() == [text_of(w) if w in held else None for w in wanted]
    assert texts.null_count == sum(w not in held for w in wanted)
    assert contents(terms.pick(*halves(wanted))) == expected([w for w in wanted if w in held])


@settings(deadline=None)
@given(parts=st.lists(IDENTITIES, max_size=4))
def test_merge_is_the_union(parts: list[list[Identity]]) -> None:
    assert contents(Terms.merge([table(p) for p in parts])) == expected(
        [i for p in parts for i in p]
    )


@settings(deadline=None)
@given(identities=IDENTITIES)
def test_frames_survive_packing(identities: list[Identity]) -> None:
    terms = table(identities)
    frames, _ = unpack(pack(terms.frames("t")))
    back = Terms.from_frames(frames, "t")
    assert contents(back) == contents(terms)
    assert (
        back.texts(*halves(identities)).to_pylist() == terms.texts(*halves(identities)).to_pylist()
    )


def test_a_missing_text_is_a_programmers_error() -> None:
    terms = table([(1, 2)])
    with pytest.raises(AssertionError, match="every bound identity"):
        terms.texts(*halves([(1, 2), (2, 2)]))
    assert terms.texts(*halves([(1, 2), (0, 0)])).to_pylist() == [text_of((1, 2)), None]


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1), (2, 2), (4, 0)])
def test_a_text_outside_its_buffer_is_refused(start: int, length: int) -> None:
    x, y = halves([(1, 1)])
    with pytest.raises(AssertionError, match="lies in its buffer"):
        Terms.from_texts(x, y, np.array([start]), np.array([length]), np.zeros(3, np.uint8))


def test_the_empty_table() -> None:
    empty = Terms.empty()
    assert len(empty) == 0 and repr(empty) == "Terms(0 terms, 0 bytes)"
    assert empty.find(*halves([(1, 1)])).tolist() == [-1]
    assert empty.texts(*halves([])).to_pylist() == []
    assert contents(Terms.merge([])) == contents(empty.pick(*halves([(1, 1)]))) == {}


def test_merge_of_one_filled_table_copies_nothing() -> None:
    terms = table([(1, 2)])
    assert Terms.merge([Terms.empty(), terms]) is terms


@settings(deadline=None)
@given(
    identities=st.lists(IDENTITY, min_size=1, max_size=20),
    rows=st.lists(st.integers(-1, 19), max_size=20),
)
def test_gather_equals_arrow_take(identities: list[Identity], rows: list[int]) -> None:
    texts = pa.array([text_of(i) for i in identities], pa.large_string())
    offsets, data = (
        np.frombuffer(b, d) for b, d in zip(texts.buffers()[1:], (np.int64, np.uint8), strict=True)
    )
    chosen = [r if r < len(identities) else -1 for r in rows]
    start = np.ascontiguousarray(offsets[: len(texts)])
    got_offsets, got = kernels.gather(
        np.array(chosen, np.int64), start, np.diff(offsets[: len(texts) + 1]), data
    )
    taken = texts.take(pa.array([None if r < 0 else r for r in chosen], pa.int64())).fill_null("")
    assert [got[a:z].tobytes().decode() for a, z in pairwise(got_offsets)] == taken.to_pylist()
