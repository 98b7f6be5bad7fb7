"""Every published query text is recognised, parses and plans; what is faulty is refused with the
reason.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from published import FAULTY, MISSING, available, texts

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.errors import QueryError, QuerySyntaxError, UnsupportedError
from levada.language import parse
from levada.language.dialects.detect import recognise
from levada.language.translate.sparql.translate import translate
from levada.plan.optimizer.pipeline import optimize
from levada.plan.topology.topology import Topology

pytestmark = pytest.mark.skipif(not available(), reason=MISSING)
EVERY = texts() if available() else []
by_name = pytest.mark.parametrize(
    ("name", "dialect", "place"), EVERY, ids=[name for name, _, _ in EVERY]
)


def plan(text: str) -> Topology:
    """The operators of a text."""
    query = optimize(translate(parse(text), text=text))
    topology = Topology({window.stream: StreamFacts() for window in query.windows})
    topology.add("q", query, MIN)
    topology.install()
    return topology


@by_name
def test_a_published_text(name: str, dialect: str, place: Path) -> None:
    text = place.read_text(encoding="utf-8")
    assert recognise(text).name == dialect
    refusal = FAULTY.get(name)
    if refusal is None:
        assert plan(text).graph.nodes
        return
    with pytest.raises(QueryError, match=refusal) as caught:
        plan(text)
    assert isinstance(caught.value, QuerySyntaxError if name in FAULTY else UnsupportedError)
    assert caught.value.span is not None


def test_all_suites_are_there() -> None:
    assert len(EVERY) >= 80
    assert {name for name, _, _ in EVERY} >= FAULTY.keys()
