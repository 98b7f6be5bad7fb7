"""The options of commands about the place of work, and about the amount of work at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from levada.cli.options import MEANING, RUNNING
from levada.plan.execution.joins import join_form_of


def _join(word: str) -> str:
    """Checks the word of a form of joins. Raises ``UsageError`` with the nearest word."""
    return str(join_form_of(word))


Slice = Annotated[
    str | None,
    typer.Option(
        "--slice",
        metavar="1d|1mo[,groups=N]",
        help="Count what tasks send each other, by days or months of event time, and by 4,096 "
        "groups of keys, or up to 65536.",
        rich_help_panel=RUNNING,
    ),
]
Place = Annotated[
    str | None,
    typer.Option(
        "--place",
        metavar="FILE|learn|off",
        help="Which executor has which work: a placement of levada place, or one that is learned "
        "(learn:N, on N machines); else Spark's choice.",
        rich_help_panel=RUNNING,
    ),
]
Balance = Annotated[
    str | None,
    typer.Option(
        "--balance",
        metavar="MODE[,key=value...]",
        help="Whether work moves to where there is time, and by which thresholds: on, off or "
        "windowed-joins. Without it, on a cluster work moves between executors.",
        rich_help_panel=RUNNING,
    ),
]
Join = Annotated[
    str | None,
    typer.Option(
        "--join",
        parser=_join,
        metavar="WAY",
        help="How three and more parts are joined. binary: two at a time (default); multiway: in "
        "one step where all have one variable in common; auto: as costs less, which is measured; "
        "replicated: chains and circles in one step, with the parts that are apart at all "
        "partitions.",
        rich_help_panel=RUNNING,
    ),
]
Region = Annotated[
    str | None,
    typer.Option(
        metavar="NAME[+NAME...]",
        help="Where results of queries go, and with queries of which regions they share operators "
        "(east, east+west, east+any); else with all.",
        rich_help_panel=MEANING,
    ),
]
Regions = Annotated[
    str | None,
    typer.Option(
        "--regions",
        metavar="FILE|NAME,NAME...",
        help="Which regions there are: the places of a machine file, or names; else those of "
        "--stream NAME=PATH,region=NAME.",
        rich_help_panel=RUNNING,
    ),
]
PlacementOf = Annotated[
    Path | None,
    typer.Option(
        "--placement",
        metavar="CHECKPOINT",
        help="How a run's epochs were spread, and what was predicted.",
    ),
]
SharedOf = Annotated[
    Path | None,
    typer.Option(
        "--shared",
        metavar="CHECKPOINT",
        help="What the queries on a checkpoint share, with what was measured, and what was chosen.",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--picture",
        metavar="FILE.svg",
        help="With --placement: draw it, each operator as predicted beside as measured.",
    ),
]
