"""What a mistake costs does not grow by the square of how deep the text before it nests."""

from typing import Any

import pytest
from lark.parsers.lalr_interactive_parser import InteractiveParser

from levada.errors import QuerySyntaxError
from levada.language import parse


def copies(text: str, dialect: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the parser's stack is copied until a text is refused."""
    copy: Any = InteractiveParser.copy
    made: list[InteractiveParser] = []

    def counted(parser: InteractiveParser, **said: bool) -> InteractiveParser:
        made.append(parser)
        found: InteractiveParser = copy(parser, **said)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(InteractiveParser, "copy", counted)
        with pytest.raises(QuerySyntaxError, match="ends too early") as refused:
            parse(text, dialect)
    assert refused.value.expected, "what may stand there is told"
    return len(made)


@pytest.mark.parametrize(
    ("dialect", "begin", "deep"), [("rspql", "SELECT * {", "{"), ("cql", "Select ", "(")]
)
def test_a_stack_is_not_copied_for_each_token(
    dialect: str, begin: str, deep: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = copies(begin + deep * 3, dialect, monkeypatch)
    assert copies(begin + deep * 300, dialect, monkeypatch) == few
