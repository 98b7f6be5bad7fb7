"""A short name stands for one IRI as long as a query uses it, and is free again after the last one,
however that ended.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

import levada
from levada.errors import UsageError

MINE, OTHERS, PLAIN = "http://mine/zz", "http://others/zz", "zz"
TAKEN = r"The word zz could be <http://(mine|others)/zz> or <http://(mine|others)/zz>\."


def over(stream: str, constant: str = "p", form: str = "SELECT ?s ?v") -> str:
    return f"""{form} FROM NAMED WINDOW <e:w> ON <{stream}> [RANGE PT2S STEP PT1S]
    WHERE {{ WINDOW <e:w> {{ ?s <http://e/{constant}> ?v }} }}"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[levada.Engine]:
    (tmp_path / "zz.nt").write_text('<http://e/a> <http://e/p> "1" 1000 .\n')
    with levada.Engine(spark=False) as made:
        made.stream("zz", tmp_path / "zz.nt")
        yield made


@pytest.mark.parametrize("started", [False, True])
def test_a_word_is_free_after_its_last_query(engine: levada.Engine, *, started: bool) -> None:
    if started:
        engine.start()
    engine.register(over(PLAIN), name="plain")  # says which stream it means
    first, second = (engine.register(over(MINE), name=name) for name in ("first", "second"))
    for query in (first, second):
        with pytest.raises(UsageError, match=TAKEN):
            engine.register(over(OTHERS))
        query.unregister()
    third = engine.register(over(OTHERS))
    with pytest.raises(UsageError, match=TAKEN):
        engine.register(over(MINE))
    third.unregister()
    engine.register(over(MINE))


def test_queries_of_a_template_have_their_word_until_the_last_one(engine: levada.Engine) -> None:
    queries = engine.register_each(
        over(MINE, "{{c}}"), [{"c": f"p{i}"} for i in range(20)], name="q-{{c}}"
    )
    names = [f"q-p{i}" for i in range(20)]
    assert len(queries) == len(names)
    for name in names:
        with pytest.raises(UsageError, match=TAKEN):
            engine.register(over(OTHERS))
        engine.unregister(name)
    engine.register(over(OTHERS))


def test_what_is_refused_takes_no_word(engine: levada.Engine) -> None:
    wrong = over(MINE).replace("?s ?v FROM", "?s (MAX(?v) AS ?m) FROM")
    with pytest.raises(levada.QueryError):
        engine.register(wrong)
    with pytest.raises(UsageError, match=TAKEN):
        requests = [levada.QueryRequest(over(MINE), "a"), levada.QueryRequest(over(OTHERS), "b")]
        engine.register_all(requests)
    engine.register(over(OTHERS))


def test_a_reader_has_its_word_for_what_a_query_makes(engine: levada.Engine) -> None:
    engine.register(over(PLAIN, form="CONSTRUCT { ?s <http://e/q> ?v }"), name="made")
    reader = engine.register(over("http://mine/made"))
    with pytest.raises(UsageError, match="The word made could be"):
        engine.register(over("http://others/made"))
    reader.unregister()
    engine.register(over("http://others/made"))
