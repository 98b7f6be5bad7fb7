"""State from epoch to epoch: pieces are found in the file that holds them; what an epoch replaces
stays readable in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from levada.core.frame import Frame
from levada.kernels.terms.term_dictionary import Terms
from levada.operators.reporting import report_buffer
from levada.operators.state import term_retention
from levada.operators.state.checksummed_frames import unpack_checked
from levada.operators.state.state_parts import State, read_head


class Files:
    """State files by name, in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def close(self, state: State, name: str) -> State:
        """Writes the state as this file and opens it for the next epoch."""
        self.blobs[name] = b"".join(state.finish())
        return self.open(name)

    def open(self, name: str) -> State:
        return State(read_head(self.read(name)[1]), name, self.read)

    def read(self, name: str) -> tuple[Mapping[str, Frame], Any]:
        return unpack_checked(np.frombuffer(self.blobs[name], np.uint8), name)


def rows(*numbers: int) -> Frame:
    return Frame({"id": np.array(numbers, np.int64), "g": np.zeros(len(numbers), np.uint16)})


def terms(*names: str) -> Terms:
    x = np.array([sum(map(ord, n)) for n in names], np.uint64)
    sizes = np.array([len(n) for n in names], np.int64)
    data = np.frombuffer("".join(names).encode(), np.uint8)
    return Terms.from_texts(x, x, np.cumsum(sizes) - sizes, sizes, data)


def known(tables: object) -> set[str]:
    return {t for table in tables for t in table.texts(table.x, table.y).to_pylist()}  # type: ignore[attr-defined]


def test_pieces_are_found_in_older_files() -> None:
    files = Files()
    state = State(None, "", files.read)
    first = state.put({"": rows(1, 2)}, 2, (100, 0, 0))
    state.replace("a", [first])
    state = files.close(state, "one")
    state.replace("a", [*state.pieces("a"), state.put({"": rows(3)}, 1, (200, 5, 5))])
    state = files.close(state, "two")
    assert [state.frame(p)["id"].tolist() for p in state.pieces("a")] == [[1, 2], [3]]
    assert state.files() == ["one", "two"]
    assert [state.frame(p)["id"].tolist() for p in state.drop_dead("a", 100)] == [[3]]


def test_an_epoch_without_changes_has_none() -> None:
    files = Files()
    state = State(None, "", files.read)
    state.replace("a", [state.put({"": rows(1)}, 1, (100, 0, 0))])
    state = files.close(state, "one")
    assert not state.changed
    state.drop_dead("a", 50)
    state.replace("b", [])
    assert not state.changed
    state.drop_dead("a", 100)
    assert state.changed


def test_texts_of_what_ends_are_there_until_the_epoch_is_over() -> None:
    """Report rows that end in an epoch are shown in it, after they have been taken out of the
    state.
    """
    files = Files()
    state = State(None, "", files.read)
    counting = rows(1).with_(**{"#s": np.array([5]), "#e": np.array([9])})
    report_buffer.remember(state, "7.live", counting, terms("<a>"))
    term_retention.insert(state, terms("<b>"), 9, 0)
    state = files.close(state, "one")
    state.replace("7.live", [])
    term_retention.insert(state, terms("<c>"), 30, 20)
    assert known(report_buffer.own_terms(state)) == {"<a>"}
    assert known(term_retention.tables(state)) == {"<b>"}
    state = files.close(state, "two")
    assert known(report_buffer.own_terms(state)) == set()
    assert known(term_retention.tables(state)) == {"<c>"}


def test_terms_live_as_long_as_the_last_rows_that_came_with_them() -> None:
    files = Files()
    state = State(None, "", files.read)
    for at in range(40):
        term_retention.insert(state, terms(f"<{at:04}>"), at + 20, at)
        state = files.close(state, str(at))
        texts = known(term_retention.tables(state))
        assert {f"<{n:04}>" for n in range(max(at - 19, 0), at + 1)} <= texts
        assert len(state.pieces(term_retention.KEY)) <= 8


def test_of_terms_without_an_end_those_stay_that_rows_in_state_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(term_retention, "MIN_CHECKED_TERMS", 3)
    files = Files()
    state, names = State(None, "", files.read), [f"<{i:03}>" for i in range(100)]
    for epoch, name in enumerate(names):
        there = terms(name, *names[max(epoch - 1, 0) : epoch])
        identity: dict[str, Any] = {
            "x0": there.x,
            "y0": there.y,
            "g": np.zeros(len(there), np.uint16),
        }
        state.replace("5.last", [state.put({"": Frame(identity)}, 2, (2**62, 0, 0))])
        one: dict[str, Any] = {
            "a0.x": there.x[:1],
            "a0.y": there.y[:1],
            "g": np.zeros(1, np.uint16),
        }
        state.replace(
            "6.live",
            [state.put({"": Frame(one)}, 1, (2**62, 0, 0))],
        )
        term_retention.insert(state, terms(name), 2**62, 0)
        state = files.close(state, str(epoch))
        found = known(term_retention.tables(state))
        assert {name, *names[max(epoch - 1, 0) : epoch]} <= found
        assert len(found) <= 8
