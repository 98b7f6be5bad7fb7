"""Settings that no person writes, but fuzzing does, are refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.cli.app.app_file import read_query
from levada.connectors.config.mapping_file import load_mapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.yaml_file import read_yaml
from levada.engine.engine import Engine
from levada.errors import UsageError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 2013-13-45", "is not YAML: month must be in"),
        ("a: 2013-02-30T00:00:00Z", "is not YAML: day is out of range"),
        ("a: !!int x", "is not YAML: invalid literal"),
        ("a: " + "[" * 3000, "is nested too deeply"),
    ],
)
def test_yaml(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_yaml(path, "app file")


def test_yaml_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="cannot be read: it has more than 8,000,000"):
        read_yaml(path, "app file")


def test_a_query_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.rq"
    path.symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="cannot be read: it has more than 64,000,000 bytes"):
        read_query(path)


@pytest.mark.parametrize("keys", ["{a: 1, b: 2, a: 3}", "{1: a, 1.0: b}"])
def test_yaml_with_a_repeated_key_is_refused(tmp_path: Path, keys: str) -> None:
    (path := tmp_path / "x.yaml").write_text(keys)
    with pytest.raises(UsageError, match=r"line 1, column \d+: the key \S+ is there twice"):
        read_yaml(path, "app file")


def test_yaml_with_a_list_as_a_key_is_refused(tmp_path: Path) -> None:
    (path := tmp_path / "x.yaml").write_text("{[a]: 1, [a]: 2}")
    with pytest.raises(UsageError, match="found unhashable key"):
        read_yaml(path, "app file")


def test_formulas(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    path = tmp_path / "m.yaml"
    for formula in ("1if a else 2", "-" * 100_000 + "a", "(" * 1000):
        path.write_text(f"let: {{ts: '{formula}'}}\ntriples: ['<a:{{a}}> <a:b> <a:c>']\n")
        with pytest.raises(UsageError, match="formula"):
            load_mapping(path).types()
    assert not recwarn.list


def test_a_regular_expression_that_is_too_deep() -> None:
    with pytest.raises(UsageError, match="is not a regular expression"):
        StreamConfig.from_options("S", "a.nt", time="filename:" + "(" * 5000 + ")" * 5000)


def test_a_static_file_of_a_name_that_no_system_takes() -> None:
    with Engine(spark=False) as engine, pytest.raises(UsageError, match="There is no static file"):
        engine.static("x" * 300 + ".nt")
