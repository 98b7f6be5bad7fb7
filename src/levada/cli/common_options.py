"""The options that all commands over queries share: the queries, their streams and data, and the
meaning of queries. A command receives them as ``arguments``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter
from typing import Any

from levada.cli import options as o
from levada.cli.app_builder import CommandArguments
from levada.cli.placement import options as w
from levada.plan.logical.query_options import WORDS as OPTION_WORDS


def _parameter(name: str, annotation: Any, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_SOURCES = {
    "queries": o.Queries,
    "app_file": o.AppFile,
    "stream": o.Streams,
    "static": o.Static,
    "table": o.Tables,
    "dialect": o.Dialect,
}
WORDS: dict[str, Any] = {
    "bounds": o.Bounds,
    "t0": o.T0,
    "report": o.Report,
    "empty_reports": o.EmptyReports,
    "until": o.Until,
    "lifetime": o.Lifetime,
    "entailment": o.Entailment,
    "region": w.Region,
}
"""The options that set the meaning of queries, by the words of
``plan.logical.query_options.WORDS``.
"""
assert tuple(WORDS) == OPTION_WORDS, "each word is an option"
_MEANING = {**WORDS, "ontology": o.OntologyFiles}
_FLAGS = ("empty_reports",)
_BEFORE = [_parameter(name, annotation) for name, annotation in _SOURCES.items()]
_BEHIND = [
    *(_parameter(name, said, False if name in _FLAGS else None) for name, said in _MEANING.items()),
    _parameter("debug", o.Debug, False),
]


def takes_queries(command: Callable[..., None]) -> Callable[..., None]:
    """Returns the command with a signature for Typer: the shared options in place of ``arguments``,
    around the options of the command itself. Every command has ``--debug`` on the command line; a
    command with a parameter ``debug`` also receives the value.
    """
    asked = inspect.signature(command, eval_str=True).parameters
    extra = [one for name, one in asked.items() if name not in ("arguments", "debug")]

    @wraps(command)
    def run_command(**values: Any) -> None:
        arguments = _parse_arguments(values)
        names = [one.name for one in extra] + ["debug"] * ("debug" in asked)
        command(arguments, **{name: values[name] for name in names})

    shown = inspect.Signature([*_BEFORE, *extra, *_BEHIND])
    run_command.__signature__ = shown  # type: ignore[attr-defined]
    run_command.__annotations__ = {name: one.annotation for name, one in shown.parameters.items()}
    return run_command


def _parse_arguments(values: dict[str, Any]) -> CommandArguments:
    options = {name: values[name] for name in _MEANING}
    return CommandArguments(
        tuple(values["queries"] or ()),
        values["app_file"],
        tuple(values["stream"] or ()),
        tuple(values["static"] or ()),
        values["dialect"],
        {**options, "ontology": _files(options["ontology"])},
        tables=tuple(values["table"] or ()),
    )


def _files(paths: Sequence[str] | None) -> tuple[str, ...] | None:
    """Returns the files of a repeated option; None if the option is absent."""
    return tuple(map(os.path.expanduser, paths)) if paths else None
