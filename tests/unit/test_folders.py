"""Folders say what their tests need: unit tests mirror ``src`` and start no engine, no process."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGES = TESTS.parent / "src" / "levada"
STARTED = {"Engine", "LocalExecutor", "Popen"}
STARTERS = {
    "subprocess", "pexpect", "levada.engine.engine", "support.cql_answers",
    "support.dynamic_queries", "support.http_server", "support.kafka_broker", "support.mqtt_broker",
    "support.poison_files", "support.postgres_server", "support.query_dsl", "support.s3_server",
    "support.stepped_runs",
}  # fmt: skip
FOLDERS = {
    "browser", "cluster", "conformance", "connectors", "counts", "fuzz", "integration", "oracle",
    "property", "soak", "support", "unit",
}  # fmt: skip
NO_PACKAGE = {"bench"}
"""Tests of what lies beside ``src``."""
UNIT = sorted((TESTS / "unit").rglob("test_*.py"))


def test_there_are_no_other_folders() -> None:
    assert {path.parts[len(TESTS.parts)] for path in TESTS.glob("*/**/*.py")} == FOLDERS


def test_folders_of_unit_tests_are_packages_of_src() -> None:
    folders = {path.parent.relative_to(TESTS / "unit") for path in UNIT} - {Path(".")}
    assert [f for f in folders if not (PACKAGES / f).is_dir() and str(f) not in NO_PACKAGE] == []


@pytest.mark.parametrize("path", UNIT, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_a_unit_test_starts_no_engine_and_no_process(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not STARTERS & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module not in STARTERS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            assert name not in STARTED
