"""``equal_windows``: two names of one window."""

from __future__ import annotations

import pytest
from pairs import NOTHING, asked, check, check_same

from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.nodes import Query
from levada.plan.optimizer.rules.deduplicate_windows import equal_windows

TWO = "WINDOW :w { ?s :p ?v } WINDOW :x { ?s :q ?u }"


def translated(first: str, second: str, stream: str = ":s") -> Query:
    text = f"""PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON :s [{first}]
    FROM NAMED WINDOW :x ON {stream} [{second}] WHERE {{ {TWO} }}"""
    return translate(parse(text), graphs=[])


def test_the_second_name_reads_the_first_window() -> None:
    before = """
    (project (?s ?v ?u)
      (join
        (bgp (window 0)
          (?s <p> ?v))
        (bgp (window 1)
          (?s <q> ?u))))
    """
    check(asked(TWO), equal_windows, before, before.replace("window 1", "window 0"))


@pytest.mark.parametrize(
    ("first", "second", "stream"),
    [
        ("RANGE PT4S STEP PT2S", "RANGE PT4S STEP PT1S", ":s"),
        ("RANGE PT4S", "RANGE PT5S", ":s"),
        ("RANGE PT4S STEP PT2S", "RANGE PT4S STEP PT2S", ":t"),
        ("TRIPLES 4", "TRIPLES 4", ":s"),
        ("SESSION PT4S", "SESSION PT4S", ":s"),
    ],
)
def test_others_stay(first: str, second: str, stream: str) -> None:
    check_same(translated(first, second, stream), equal_windows)


@pytest.mark.parametrize("one", ["RANGE PT4S STEP PT2S", "RANGE PT4S", "NOW", "ALL"])
def test_windows_of_time_are_one(one: str) -> None:
    query = translated(one, one)
    assert equal_windows(query, NOTHING).windows == query.windows
    assert "window 1" not in str(equal_windows(query, NOTHING).pattern)
    assert equal_windows(query, NOTHING) != query
