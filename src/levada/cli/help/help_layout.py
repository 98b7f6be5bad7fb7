"""Lays out ``--help`` for people: commands in groups, words in place of Python's types, and
paragraphs that fill the lines of the terminal.
"""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

GROUPS = {
    "Run queries": ("run", "serve", "shell", "demo", "test"),
    "Look at queries and data": ("check", "explain", "profile", "sample", "map"),
    "Talk to a running engine": (
        "status", "ps", "add", "drop", "add-stream", "drop-stream", "tail", "results",
    ),
    "Operate": ("verify", "backup", "rollback", "token", "warm", "help", "version"),
    "Place operators on machines": ("place", "graph", "machine"),
}  # fmt: skip
HELP_NAMES = ["-h", "--help"]
WORDS = {"bool": "", "int": "N", "float": "N", "path": "PATH", "str": "TEXT"}
_BREAK = re.compile(r"(?<!\n)\n(?!\n)[ \t]*")


class PlainArgument(TyperArgument):
    """An argument whose metavar says all about its type."""

    def display_type_rich(self, ctx: Any) -> str | None:
        """Returns nothing in place of the type."""
        return None


def lay_out(command: Any) -> None:
    """Lays out the help of a command of Typer, and of all commands of a group, before it is
    printed.
    """
    assert isinstance(command, TyperCommand | TyperGroup), "Typer makes no other"
    command.help = fill(command.help or "")
    context = typer.Context(command, help_option_names=HELP_NAMES)
    help_option = command.get_help_option(context)
    for parameter in [*command.params, *([help_option] if help_option else [])]:
        _describe(parameter)
    if not isinstance(command, TyperGroup):
        return
    panels = {name: panel for panel, names in GROUPS.items() for name in names}
    if command.commands.keys() == panels.keys():
        command.commands = {name: command.commands[name] for name in panels}
    for name, each in command.commands.items():
        lay_out(each)
        each.rich_help_panel = panels.get(name)  # type: ignore[attr-defined]


def fill(text: str) -> str:
    r"""Joins the lines of each paragraph.

    >>> fill("A line\n  that goes on.\n\nAnother.")
    'A line that goes on.\n\nAnother.'
    """
    return _BREAK.sub(" ", text.strip())


def _describe(parameter: Any) -> None:
    """Replaces the type of an option or argument by a word; lists the words of a choice."""
    if isinstance(parameter, TyperArgument):
        parameter.__class__ = PlainArgument
    elif parameter.metavar is None:
        kind = parameter.type_descriptor
        name = parameter.display_type(None).strip("<>").removesuffix(" range")
        parameter.metavar = WORDS.get(name, "WORD")
        if kind.is_choice:
            words = ", ".join(map(str, kind.choices))
            parameter.metavar, parameter.help = "WORD", f"{parameter.help} One of: {words}."
