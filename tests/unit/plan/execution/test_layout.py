"""Columns of a frame follow from its layout."""

import pytest

from levada.plan.execution.row_layout import NOTHING, Facet, Layout, Span, slot_columns


@pytest.mark.parametrize(
    ("facets", "columns"),
    [
        (NOTHING, []),
        (Facet.ID, ["x4", "y4"]),
        (Facet.TEXT, ["x4", "y4"]),
        (Facet.NUM, ["k4", "d4", "m4", "c4"]),
        (Facet.ID | Facet.NUM, ["x4", "y4", "k4", "d4", "m4", "c4"]),
        (Facet.INT, ["k4", "m4"]),
        (Facet.DBL, ["k4", "d4"]),
        (Facet.ID | Facet.INT, ["x4", "y4", "k4", "m4"]),
        (Facet.NUM | Facet.INT, ["k4", "d4", "m4", "c4"]),
    ],
)
def test_columns_of_a_slot(facets: Facet, columns: list[str]) -> None:
    assert slot_columns(4, facets) == tuple(columns)


def test_columns_of_a_frame() -> None:
    rows = Layout((Facet.ID, Facet.INT), (Span(False, False), Span(True, True)), weighted=True)
    assert rows.columns() == ["op", "x0", "y0", "k1", "m1", "lo0", "lo1", "hi1", "prev1", "w", "u"]
    assert Layout((Facet.DBL,), report=True).columns() == ["op", "k0", "d0", "r"]
    assert Layout(()).columns() == ["op"]


def test_the_text_of_a_layout() -> None:
    rows = Layout((Facet.ID | Facet.TEXT, NOTHING), (Span(True, False),), weighted=True)
    assert rows.show() == "[ID+TEXT -] lo/hi w"
    assert Layout((), report=True).show() == "[] r"


def test_sets_of_facets_are_one_object() -> None:
    assert (Facet.ID | Facet.NUM) is (Facet.NUM | Facet.ID)
    assert Facet.ID in (Facet.ID | Facet.NUM)
    assert Facet.TEXT not in (Facet.ID | Facet.NUM)
    assert NOTHING in Facet.ID, "nothing is a part of everything"
