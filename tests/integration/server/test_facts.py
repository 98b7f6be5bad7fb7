"""Facts of a checkpoint that a new text can name."""

from __future__ import annotations

from levada.server.checkpoint_catalog import Facts
from support.http_server import GRAPHS, TEXT, Run
from support.polling import until


def test_queries_that_were_there_are_not_translated_again(run: Run) -> None:
    facts = Facts(run.root)
    before = until(lambda: facts.name_scope().queries)
    run.engine.register(TEXT.replace("PT2S", "PT3S"), name="warm")
    run.engine.register(GRAPHS, name="made")
    after = until(lambda: len(facts.name_scope().queries) == 3 and facts.name_scope())
    assert list(after.queries) == ["made", "hot", "warm"], "those that make a stream are first"
    assert after.makers == {"made": ["made"]}
    assert after.queries["hot"] is before["hot"]
