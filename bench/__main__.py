"""``python -m bench NAME [--json] [--scale X] [--stepped] [--targets]``, and
``python -m bench against [COMMIT] [NAME..]`` (``bench.against``).
"""

from __future__ import annotations

import importlib
import sys
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console

from bench.apart import SideError
from bench.result import CountError, Result


class Name(StrEnum):
    """The benchmarks, each the module of its name."""

    PARSE = "parse"
    JOIN = "join"
    AGGREGATE = "aggregate"
    SRBENCH_Q3 = "srbench_q3"
    EPOCH = "epoch"
    QUERIES = "queries"
    KERNELS = "kernels"
    GROWTH = "growth"
    OPERATORS = "operators"
    YABENCH = "yabench"
    ENTAILMENT = "entailment"
    STATIC = "static"
    PLANNING = "planning"
    START = "start"
    LATENCY = "latency"
    KAFKA_LATENCY = "kafka_latency"
    KATTS = "katts"
    RLAS = "rlas"
    SHARING = "sharing"
    FORMS = "forms"
    STREAMREUSE = "streamreuse"
    SLICES = "slices"
    LSBENCH = "lsbench"
    MULTIWAY = "multiway"
    REGISTER = "register"
    KAFKA = "kafka"
    SERVE = "serve"
    PUSH = "push"
    DELIVER = "deliver"
    APPLICATIONS = "applications"
    BRISKSTREAM = "briskstream"
    EDGES = "edges"
    FACTORS = "factors"
    MAPPINGS = "mappings"
    PLACED = "placed"
    FLOOR = "floor"
    ELASTIC = "elastic"
    BALANCE = "balance"
    WINDOWED = "windowed"
    MOVING = "moving"
    CHOICE = "choice"
    DEGREE = "degree"
    COUNTING = "counting"
    DELAY = "delay"
    MEMORY = "memory"
    OVERLOAD = "overload"
    FORMATS = "formats"
    TABLES = "tables"
    ISOLATION = "isolation"


def main(
    name: Name,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output.")
    ] = False,
    scale: Annotated[
        float, typer.Option(min=0.001, help="Of the data; docs/benchmarks.md has the figures of 1.")
    ] = 1.0,
    stepped: Annotated[
        bool, typer.Option(help="Levada without Spark, in one process (for profiles).")
    ] = False,
    targets: Annotated[
        bool, typer.Option(help="Of kernels: each compiled for several processors.")
    ] = False,
) -> None:
    """Runs one benchmark and its baseline, counts checked first."""
    if targets and name is not Name.KERNELS:
        raise typer.BadParameter("--targets goes with kernels only.")
    try:
        result: Result = _run(name, scale, stepped, targets)
    except (CountError, SideError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from error
    if as_json:
        print(result.to_json())
    else:
        result.show(Console())


def _run(name: Name, scale: float, stepped: bool, targets: bool) -> Result:
    if targets:
        compared: Result = importlib.import_module("bench.kernel_targets").run(scale)
        return compared
    found: Result = importlib.import_module(f"bench.{name.value}").run(scale, stepped)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["against"]:
        del sys.argv[1]
        from bench import against

        typer.run(against.main)
    else:
        typer.run(main)
