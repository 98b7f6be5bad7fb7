"""The commands ``place`` and ``graph``, and their options. Their implementation is imported when
they run, so that ``levada --help`` loads no NumPy code of placers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from levada.cli import options as o

FormatName = Literal["json", "metis"]

Slices = Annotated[
    list[Path],
    typer.Argument(
        metavar="GRAPH...",
        help="A send graph; with --learn the slices in their order, of which the last is scored.",
    ),
]
Machines = Annotated[int, typer.Option(min=1, metavar="N", help="How many machines there are.")]
Learn = Annotated[
    int,
    typer.Option(min=0, max=3, help="Place by so many slices before the one that is scored."),
]
Bound = Annotated[
    str | None,
    typer.Option(
        metavar="RSD",
        help="The greatest RSD that the placer refined may have, such as 2.4%; else 5 %, or the "
        "least that is possible if that is more.",
    ),
]
UnitName = Annotated[
    Literal["rows", "bytes"], typer.Option("--unit", help="What is counted across machines.")
]
LoadName = Annotated[
    Literal["rows", "bytes", "cpu"], typer.Option("--load", help="What machines are compared by.")
]
Distance = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JSON: how far each machine is from each, a list a machine."),
]
Before = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="The placement that there is: start from it."),
]
Moves = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="With --from: the most tasks that go elsewhere."),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same placements.")]
PlacerName = Annotated[
    str, typer.Option("--placer", metavar="NAME", help="Whose placement --out gets.")
]
PlacementOut = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write a placement to this file.")
]
GraphFormat = Annotated[
    FormatName | None,
    typer.Option("--format", help="The other format; else that of the file's ending."),
]
GraphFile = Annotated[Path, typer.Argument(metavar="GRAPH", help="A send graph.")]
GraphOut = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="A file; else standard output.")
]
Placed = Annotated[
    Path | None,
    typer.Option("--placement", metavar="FILE", help="A placement: bands across machines are red."),
]


def place(
    graphs: Slices,
    machines: Machines,
    learn: Learn = 0,
    bound: Bound = None,
    unit: UnitName = "rows",
    load: LoadName = "rows",
    distance: Distance = None,
    before: Before = None,
    moves: Moves = None,
    seed: Seed = 0,
    placer: PlacerName = "refined",
    out: PlacementOut = None,
    as_json: o.AsJson = False,
    debug: o.Debug = False,
) -> None:
    """Place the tasks of a send graph on machines. For every placer show the share that would cross
    machines and how even the load is, as predicted from the graph: nothing is run.
    """
    from levada.cli.placement.place import Wish, place

    place(
        Wish(
            tuple(graphs), machines, learn, bound, unit, load, distance, before, moves, seed, placer
        ),
        out=out,
        as_json=as_json,
    )


graph = typer.Typer(
    name="graph", help="Send graphs: other formats, and a picture.", no_args_is_help=True
)


@graph.command("export")
def _export(
    file: Annotated[
        Path, typer.Argument(metavar="GRAPH", help="A send graph, or the checkpoint of a run.")
    ],
    format_: GraphFormat = None,
    out: GraphOut = None,
    slice_: Annotated[
        str | None,
        typer.Option(
            "--slice", metavar="NAME", help="Of a checkpoint: such as 2004-08-11; else the last."
        ),
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of a checkpoint: with groups of keys as tasks, so many (65536: all there are), "
            "for levada run --place.",
        ),
    ] = None,
    debug: o.Debug = False,
) -> None:
    """Write a send graph (JSON), or the graph measured by a run with --slice, in another format.
    METIS' weights are symmetric.
    """
    from levada.cli.placement.graph import export

    export(file, format_, out, slice_, groups)


@graph.command("import")
def _import(
    file: GraphFile, format_: GraphFormat = None, out: GraphOut = None, debug: o.Debug = False
) -> None:
    """Write a graph of another format as a send graph (JSON)."""
    from levada.cli.placement.graph import import_

    import_(file, format_, out)


@graph.command("sankey")
def _sankey(
    file: GraphFile,
    placement: Placed = None,
    machines: Annotated[int, typer.Option(min=1, metavar="N", help="Of the placement.")] = 12,
    by: Annotated[
        Literal["task", "operator"],
        typer.Option(help="What stands for itself: a task, or a stream's or stage's tasks as one."),
    ] = "task",
    out: GraphOut = None,
    debug: o.Debug = False,
) -> None:
    """Draw the traffic between tasks as a page (HTML)."""
    from levada.cli.placement.graph import sankey

    sankey(file, placement, machines, out, by)
