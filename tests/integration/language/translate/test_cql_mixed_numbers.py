"""Integers beside doubles beyond 2**53: ``In`` and ``Between`` say what ``=`` says, in every mode
of sharing, below a join that is relaxed and without one (docs/semantics.md).
"""

from pathlib import Path

import pytest

from levada import Engine
from levada.engine.query import Query
from levada.plan.sharing.sharing_modes import Sharing

BIG = 2**53
INTEGERS = (BIG - 1, BIG, BIG + 1, BIG + 2, 5)
EQUAL = ("{0} = {1}", "{0} In ({1})", "{0} In ({1}, -7)", "{0} Between {1} And {1}",
         "Not ({0} Not In ({1}))")  # fmt: skip
BOUNDS = (f"{BIG}.0", str(BIG + 1), f"{BIG + 1}.0")
TABLES = {
    "A [Range 1 hour] As l": "",
    "A [Range 1 hour] As l, A [Range 1 hour] As r": "l.k = r.k And ",
}


def equal(integer: int, bound: str) -> bool:
    """A double on either side makes it a comparison of doubles."""
    return float(integer) == float(bound) if "." in bound else integer == int(bound)


@pytest.mark.parametrize("sharing", Sharing)
def test_all_that_means_equal_is_equal(tmp_path: Path, sharing: str) -> None:
    lines = "".join(f"{k},{1000 * i}\n" for i, k in enumerate(INTEGERS))
    (tmp_path / "a.csv").write_text("k,ts\n" + lines)
    with Engine(spark=False, sharing=sharing, checkpoint=tmp_path / "c", partitions=1) as engine:
        engine.stream("A", tmp_path / "a.csv", schema={"k": "integer"})
        asked = {
            (form, bound, tables): engine.register(
                f"Istream(Select l.k As k From {tables} Where {keys}{form.format('l.k', bound)})"
            )
            for form in EQUAL
            for bound in BOUNDS
            for tables, keys in TABLES.items()
        }
        engine.start(once=True)
        engine.await_end()
        for said, query in asked.items():
            assert found(query) == [k for k in INTEGERS if equal(k, said[1])], said


def found(query: Query) -> list[int]:
    """The integers that a query has reported."""
    rows = [text for report in query.results() for text in report.rows["k"].to_list()]
    return [int(text.split('"')[1]) for text in rows]
