"""The commands of ``levada machine``. Their implementation is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from levada.cli import options as o

machines = typer.Typer(no_args_is_help=True, help="Machine files: show one, write one.")


@machines.callback()
def _machines() -> None:
    """Look at machine files: places, cores and the distances between places."""


@machines.command("show", epilog="[bold]Example[/bold]\n\nlevada machine show server-a")
def _show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A machine file, or server-a or server-b.")
    ],
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Check a machine file and show its places."""
    from levada.cli.machine.show_machine import show

    show(file, as_json=as_json)


@machines.command("probe", epilog="[bold]Example[/bold]\n\nlevada machine probe --out here.yaml")
def _probe(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A file; else standard output.")
    ] = None,
    by: Annotated[
        Literal["node", "socket", "core"] | None,
        typer.Option(
            "--by", help="What a place is; else a NUMA node, or a socket if there is one."
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="Probe the executors of a Spark cluster: what a blob takes from each to each.",
        ),
    ] = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Write a machine file of this machine: the places of its processors, and the measured costs
    between them; or of a cluster's executors. A warning states each assumption.
    """
    if master is not None:
        from levada.cli.machine.probe_cluster import probe_cluster

        probe_cluster(out, master, as_json=as_json, by=by)
        return
    from levada.cli.machine.probe_machine import probe

    probe(out, as_json=as_json, by=by)
