"""What people get wrong, each with the whole message that they are told: a table in
``mistakes.txt``, of errors and warnings, in every language.

``python tests/unit/engine/test_mistakes.py`` writes the table anew; what changed is then to be
read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare
from levada.engine.query_request import QueryRequest
from levada.errors import LevadaError

TABLE = Path(__file__).with_name("mistakes.txt")
SAID, NEXT = "\n=>\n", "\n\n----\n\n"


def blocks() -> list[tuple[str, str]]:
    """The texts, with their messages."""
    parts = TABLE.read_text(encoding="utf-8").removesuffix("\n").split(NEXT)
    return [(text, said) for text, _, said in (part.partition(SAID) for part in parts)]


def message(text: str) -> str:
    """The error of a query over an RDF stream, a tuple stream and a static graph; else its
    warnings.
    """
    schema = {"k": "integer", "v": "double"}
    streams = {"rooms": StreamFacts(), "A": StreamFacts(schema=schema)}
    query = prepare(QueryRequest(text, "q"), NameScope(streams, frozenset({"http://e/g"})))
    try:
        _ = query.plannable
        return "\n".join(warning.shown(text) for warning in query.warnings)
    except LevadaError as error:
        return str(error)


@pytest.mark.parametrize(("text", "said"), blocks())
def test_each_mistake_has_its_message(text: str, said: str) -> None:
    assert message(text) == said


def test_each_message_says_where_and_ends_as_a_sentence() -> None:
    assert len(blocks()) == len(dict(blocks())) >= 150
    for text, said in blocks():
        assert "line " in said.split("\n", 1)[0], f"no place in the message of {text}"
        first = said.split("\n", 1)[0]
        assert first.endswith((".", "?")), f"no sentence: {first}"


if __name__ == "__main__":
    TABLE.write_text(NEXT.join(t + SAID + message(t) for t, _ in blocks()) + "\n", "utf-8")
