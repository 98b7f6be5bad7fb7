"""KATTS' fig. 5: files that are cut as groups are send to few tasks."""

from __future__ import annotations

from bench.papers import katts, layouts

STATIONS = 24


def test_files_cut_by_the_same_hash_send_to_few_tasks() -> None:
    """A station's rows go to one task; so do those of its file, four tasks a file."""
    ends = {}
    for layout in layouts.LAYOUTS:
        graph = layouts.by_tasks(layouts.counted(layout, STATIONS))
        names = [
            (graph.tasks[a], graph.tasks[b])
            for a, b in zip(graph.source, graph.target, strict=True)
        ]
        ends[layout] = {(int(a[2:4]), int(b.split()[1])) for a, b in names}
    each = layouts.TASKS // layouts.FILES
    assert all(task // each == file for file, task in ends["same hash"])
    assert len(ends["another hash"]) > len(ends["same hash"])


def test_each_figure_says_what_became_of_it() -> None:
    known = {"quoted", "re-derived", "predicted", "measured", "not measurable here"}
    assert all(known >= set(told.split(", ")) for told, _ in katts.FIGURES.values())
    assert katts.QUOTED_RSD.keys() == katts.QUOTED_TABLE_1.keys() == katts.SETS.keys()
