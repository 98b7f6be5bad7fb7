"""Names of queries and streams."""

import pytest

from levada.core.names import check_query_name, check_stream_name, match_streams
from levada.errors import UnknownNameError, UsageError


@pytest.mark.parametrize("name", ["q1", "a.b-c_d", "7", "-x", "übung"])
def test_names_of_queries(name: str) -> None:
    assert check_query_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a b", "a/b", "..", ".x", "q\n", "late", "Late", "dead-letter"]
)
def test_what_is_no_name_of_a_query(name: str) -> None:
    with pytest.raises(UsageError):
        check_query_name(name)


def test_names_of_streams() -> None:
    assert check_stream_name("<http://e/a>") == "http://e/a"
    assert check_stream_name("urn:x") == "urn:x"
    assert check_stream_name("temp") == "temp"
    for wrong in ("", "a b", "/a", "1a", "http://e/a b"):
        with pytest.raises(UsageError, match="is not a name of a stream"):
            check_stream_name(wrong)


def test_a_word_names_every_iri_that_ends_in_it() -> None:
    assert match_streams(["http://e/temp"], ["temp"]) == {"http://e/temp": "temp"}
    assert match_streams(["http://e/v#temp", "http://e/hum"], ["hum", "temp"]) == {
        "http://e/v#temp": "temp",
        "http://e/hum": "hum",
    }
    assert match_streams(["http://e/temp", "temp"], ["temp"]) == {
        "http://e/temp": "temp",
        "temp": "temp",
    }


def test_an_equal_name_wins() -> None:
    assert match_streams(["http://e/temp"], ["temp", "http://e/temp"]) == {
        "http://e/temp": "http://e/temp"
    }


def test_two_iris_of_one_word() -> None:
    with pytest.raises(
        UsageError, match=r"The word temp could be <http://a/temp> or <http://b/temp>\."
    ):
        match_streams(["http://a/temp", "http://b/temp"], ["temp"])
    names = ["temp", "http://b/temp"]
    assert match_streams(["http://a/temp", "http://b/temp"], names) == {
        "http://a/temp": "temp",
        "http://b/temp": "http://b/temp",
    }


def test_a_stream_that_a_query_makes() -> None:
    makers = {"http://e/hot": ["q1"], "q1": ["q1"], "temp": ["q2"], "two": ["q1", "q2"]}
    assert match_streams(["http://e/hot", "http://x/q1"], ["temp"], makers) == {
        "http://e/hot": "q1#",
        "http://x/q1": "q1#",
    }
    assert match_streams(["http://e/temp", "temp"], ["temp"], makers) == {
        "http://e/temp": "temp",
        "temp": "temp",
    }
    with pytest.raises(UsageError, match="The stream two is made by the queries q1 and q2"):
        match_streams(["two"], [], makers)
    with pytest.raises(UsageError, match=r"The word q1 could be <http://a/q1> or <http://b/q1>\."):
        match_streams(["http://a/q1", "http://b/q1"], [], makers)
    with pytest.raises(UnknownNameError, match="Did you mean hot"):
        match_streams(["http://e/hott"], [], makers)


def test_an_unknown_stream_says_what_is_known() -> None:
    with pytest.raises(UnknownNameError) as caught:
        match_streams(["http://e/tmp"], ["temp", "hum"])
    assert (caught.value.message, caught.value.hint) == (
        "There is no stream http://e/tmp.",
        "Did you mean temp?",
    )
    with pytest.raises(UnknownNameError, match="Known: a, b"):
        match_streams(["http://e/zzzzzz"], ["a", "b"])
