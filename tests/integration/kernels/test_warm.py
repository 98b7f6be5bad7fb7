"""Warming up, caching, and what a kernel refuses."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

from levada import kernels


def test_warm_imports_every_module_and_calls_its_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_plain.py").write_text("LOADED = True\n")
    (tmp_path / "sample_warm.py").write_text("calls = []\n\n\ndef warm():\n    calls.append(1)\n")
    monkeypatch.setattr(kernels, "__path__", [str(tmp_path)])
    kernels.warm()
    plain, warmed = (sys.modules.pop(f"levada.kernels.sample_{name}") for name in ("plain", "warm"))
    assert plain.LOADED and warmed.calls == [1]


def test_a_strided_column_is_refused() -> None:
    from levada.kernels.keyed.bucket_layout import bucket_order

    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("plain Python takes any array")
    with pytest.raises(TypeError, match="No matching definition"):
        bucket_order(np.zeros(10, np.uint64)[::2], 4)


def test_nothing_is_cached_with_bounds_checks() -> None:
    script = "import levada.kernels as k; print(k.CACHE)"
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


PART = "from levada.kernels import inline\n\n\n@inline\ndef part(x):\n    return x + {}\n"
WHOLE = """
from levada.kernels import INT, kernel
from part import part
from limits import LIMIT


@kernel((INT,))
def whole(x):
    return part(x) + LIMIT


print(whole(0), sum(whole.stats.cache_hits.values()))
"""


@pytest.mark.long
def test_the_cache_sees_changes_in_imported_parts_and_constants(tmp_path: Path) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or not kernels.CACHE:
        pytest.skip("nothing is cached")

    def run(part: int, limit: int) -> str:
        (tmp_path / "part.py").write_text(PART.format(part))
        (tmp_path / "limits.py").write_text(f"LIMIT = {limit}\n")
        (tmp_path / "whole.py").write_text(WHOLE)
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tmp_path)}
        script = [sys.executable, "-c", "import whole"]
        return subprocess.run(
            script, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert [run(1, 0), run(1, 0), run(2, 0), run(2, 5)] == ["1 0", "1 1", "2 0", "7 0"]


TARGET = """
from levada.kernels import INT, kernel


@kernel((INT,))
def plus(x):
    return x + 1


target = plus.targetctx.codegen().magic_tuple()[1:]
print(plus(1), sum(plus.stats.cache_hits.values()), *target)
"""


def compiled_for(folder: Path, **variables: str) -> tuple[str, str, list[str]]:
    """What a process of its own says: the result, the hits of its cache, the processor and its
    features.
    """
    (folder / "target.py").write_text(TARGET)
    clean = {name: v for name, v in os.environ.items() if not name.startswith("NUMBA_CPU_")}
    environment = clean | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder)} | variables
    command = [sys.executable, "-c", "import target"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result, hits, *target = run.stdout.split()
    return result, hits, target


@pytest.mark.long
def test_kernels_are_for_this_processor_in_every_process_unless_the_user_names_one(
    tmp_path: Path,
) -> None:
    """Docs: decision 13. The cache on disk tells processors apart, so workers find what is
    theirs.
    """
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or not kernels.CACHE:
        pytest.skip("nothing is cached")
    host = [get_host_cpu_name(), get_host_cpu_features().flatten()]
    assert compiled_for(tmp_path) == ("2", "0", host)
    assert compiled_for(tmp_path) == ("2", "1", host)
    named = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert compiled_for(tmp_path, **named) == ("2", "0", ["generic"])
    assert compiled_for(tmp_path, **named) == ("2", "1", ["generic"])
    assert compiled_for(tmp_path) == ("2", "1", host)


LAZY = """
from levada import kernels
from levada.kernels.keyed.bucket_layout import bucket_order, mix
import numpy as np

print(kernels.compiled)
mix(np.zeros(3, np.uint64), np.zeros(3, np.uint64), np.zeros(3, np.int32))
print(kernels.compiled, kernels.compiling)
told = []
kernels.warm(lambda done, of: told.append((done, of)), only_cached=True)
print(kernels.compiled, told[-1])
"""


def test_a_kernel_is_compiled_by_its_first_call_and_no_other(tmp_path: Path) -> None:
    if os.environ.get("NUMBA_DISABLE_JIT") == "1" or not kernels.CACHE:
        pytest.skip("nothing is compiled")

    def run() -> list[str]:
        environment = {**os.environ, "LEVADA_CACHE": str(tmp_path)}
        environment.pop("NUMBA_CACHE_DIR", None)
        command = [sys.executable, "-c", LAZY]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert run() == ["0", "1 ", "1 (1, 1)"]
    assert list((tmp_path / "kernels").iterdir()), "they are in Levada's folder"
    assert run() == ["0", "0 ", "0 (1, 1)"]
