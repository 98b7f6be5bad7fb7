"""``--help`` speaks to people: groups, words for types, lines that are full."""

from __future__ import annotations

import re

import pytest
import typer
from typer.core import TyperGroup

from levada.cli.help.help_layout import GROUPS, fill
from levada.cli.main import app, main

TYPES = re.compile(r"<(bool|int|float|str|path|list)|list\[|<\w+\|")
NAMES = [name for names in GROUPS.values() for name in names]


def test_each_command_is_in_one_group() -> None:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    assert sorted(NAMES) == sorted(command.commands)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_has_words_and_whole_lines(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*filter(None, [name]), "--help"]) == 0
    out = capsys.readouterr().out
    assert not TYPES.search(out)
    assert " -h " in out
    assert all(panel in out for panel in GROUPS) or name


def test_a_paragraph_is_a_line() -> None:
    assert fill("a\n    b\n\nc\nd") == "a b\n\nc d"
