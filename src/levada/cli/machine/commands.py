"""The commands of ``levada machine``; what they do is imported when they do it."""

from __future__ import annotations

from typing import Annotated

import typer

from levada.cli import options as o

machines = typer.Typer(no_args_is_help=True, help="Look at machine files.")


@machines.callback()
def _machines() -> None:
    """Look at machine files: places, cores, how far these are from each other."""


@machines.command("show", epilog="[bold]Example[/bold]\n\nlevada machine show server-a")
def _show(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A machine file, or server-a or server-b.")
    ],
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Check a machine file and show its places."""
    from levada.cli.machine.show import show

    show(file, as_json=as_json)
