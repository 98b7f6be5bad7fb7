"""Packages of npm for tests: fetched into Levada's cache folder, once, by
``tests/parts.sh`` or where ``make conformance`` asks for them; their scripts do not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from levada.core.cache_folder import cache_folder
from support.polling import PATIENCE


def packages(*wanted: str) -> Path:
    """A folder in which Node finds packages (``NAME@VERSION``); skips the test, and says why, if
    they cannot be had.
    """
    folder = cache_folder() / ("npm-" + "-".join(wanted).replace("/", "-"))
    npm = shutil.which("npm")
    if shutil.which("node") is None:
        pytest.skip(f"{wanted[0]} is NOT tested: there is no Node (node and npm).")
    if folder.is_dir():
        return folder
    if npm is None or not os.environ.get("LEVADA_CONFORMANCE"):
        pytest.skip(f"{wanted[0]} is NOT tested: make parts asks npm for it.")
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    part.mkdir(parents=True)
    (part / "package.json").write_text("{}")
    flags = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    done = subprocess.run(
        [npm, "install", *flags, *wanted],
        cwd=part, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        shutil.rmtree(part)
        pytest.skip(f"{wanted[0]} is NOT tested: npm does not give it: {done.stderr[-500:]}")
    try:
        part.rename(folder)
    except OSError:  # another test was faster
        shutil.rmtree(part)
    return folder


def started(folder: Path, script: str, *arguments: str) -> subprocess.Popen[str]:
    """A script (CommonJS) that runs where the packages are; ``process.argv[1]`` is its first
    argument.
    """
    return subprocess.Popen(
        ["node", "-e", script, *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def said(folder: Path, script: str, *arguments: str) -> str:
    """What a script prints until it ends."""
    process = started(folder, script, *arguments)
    out, wrong = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, wrong[-2000:]
    return out
