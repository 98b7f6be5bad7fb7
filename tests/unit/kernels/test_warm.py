"""Warming up, caching, and what a kernel refuses."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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
    from levada.kernels.keyed.keyed import bucket_order

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


PART = "from levada.kernels import inlined\n\n\n@inlined\ndef part(x):\n    return x + {}\n"
WHOLE = """
from levada.kernels import INT, kernel
from part import part
from limits import LIMIT


@kernel((INT,))
def whole(x):
    return part(x) + LIMIT


print(whole(0), sum(whole.stats.cache_hits.values()))
"""


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
