"""Static files and tables that change in odd ways while the engine runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from levada.connectors.config.table_config import TableConfig
from levada.connectors.ingest.tables import static_table
from levada.runtime.driver import static_graphs, static_tables
from levada.runtime.driver.static_graphs import StaticGraphs
from levada.runtime.driver.static_tables import StaticTables
from support.polling import until

A, B = "<a:a> <a:b> <a:c> .\n", "<a:a> <a:b> <a:d> .\n"


@pytest.fixture
def graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StaticGraphs:
    """A file that fills two graphs, and is looked at each time."""
    monkeypatch.setattr(static_graphs, "LOOK", -1.0)
    (tmp_path / "d.nt").write_text(A)
    made = StaticGraphs(tmp_path / "static")
    for graph in ("a:1", "a:2"):
        made.add(tmp_path / "d.nt", graph, None, replaceable=True, reload=True)
    made.place()
    return made


def contents(graphs: StaticGraphs) -> list[str]:
    return [Path(file.path).read_text() for file in graphs.files]


def test_file_of_two_graphs_is_reloaded_into_both(graphs: StaticGraphs, tmp_path: Path) -> None:
    for text in (B, A + B):
        (tmp_path / "d.nt").write_text(text)
        graphs.reload()
        assert contents(graphs) == [text, text]
    graphs.replace(["<a:a> <a:b> <a:e>"], "a:1", None)
    (tmp_path / "d.nt").write_text(A)
    graphs.reload()
    assert contents(graphs) == ["<a:a> <a:b> <a:e> .\n", A] or contents(graphs) == [
        A, "<a:a> <a:b> <a:e> .\n",
    ]  # fmt: skip


def test_file_of_the_same_size_and_time_is_reloaded(graphs: StaticGraphs, tmp_path: Path) -> None:
    before = os.stat(tmp_path / "d.nt").st_mtime_ns
    (tmp_path / "d.nt").write_text(B)
    os.utime(tmp_path / "d.nt", ns=(before, before))
    graphs.reload()
    assert contents(graphs) == [B, B]


def test_file_that_goes_while_it_is_reloaded_keeps_its_content(
    graphs: StaticGraphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copied_and_gone(source: Path, folder: Path, copy: Callable[..., Path] = _COPY) -> Path:
        path = copy(source, folder)
        source.unlink()
        return path

    monkeypatch.setattr(static_graphs, "_copy", copied_and_gone)
    (tmp_path / "d.nt").write_text(B)
    graphs.reload()
    assert contents(graphs) == [A, A]


_COPY = static_graphs._copy


@pytest.fixture
def table(tmp_path: Path) -> Iterator[StaticTables]:
    (tmp_path / "d.csv").write_text("k\n1\n")
    tables = StaticTables(tmp_path / "static")
    config = TableConfig.from_options("D", tmp_path / "d.csv", every="1ms")
    tables.declare(config)
    tables.place()
    yield tables
    tables.close()


def test_table_whose_state_cannot_be_written_is_reported_and_read_again(
    table: StaticTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full while the table changes."""
    monkeypatch.setattr(static_tables, "RETRY", 0.01)
    states = tmp_path / "static-tables.json"
    states.unlink()
    states.mkdir()
    (states / "full").write_text("")
    with pytest.warns(UserWarning, match="Changes of the table D cannot be taken in") as warned:
        (tmp_path / "d.csv").write_text("k\n1\n2\n")
        table.watch()
        until(lambda: len(warned) > 0)
        assert table.take_changes() == {}
    (states / "full").unlink()
    states.rmdir()
    until(lambda: bool(table._changed))
    (copy,) = table.take_changes().values()
    assert '"2"' in Path(copy).read_text()


def test_table_that_becomes_a_pipe_keeps_its_rows(table: StaticTables, tmp_path: Path) -> None:
    (tmp_path / "d.csv").unlink()
    os.mkfifo(tmp_path / "d.csv")
    with pytest.warns(UserWarning, match="no regular file") as warned:
        table.watch()
        until(lambda: len(warned) > 0)
    os.unlink(tmp_path / "d.csv")
    (tmp_path / "d.csv").write_text("k\n3\n")
    until(lambda: bool(table._changed))


def test_table_of_too_many_triples_keeps_its_rows(
    table: StaticTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file of many rows becomes a hundred times its size."""
    monkeypatch.setattr(static_table, "MAX_TRIPLES", 10_000)
    (tmp_path / "d.csv").write_text("k\n" + "1\n" * 200)
    with pytest.warns(UserWarning, match="rows of the table .* are too many: 200") as warned:
        table.watch()
        until(lambda: len(warned) > 0)
    assert table.take_changes() == {}
