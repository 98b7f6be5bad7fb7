"""Where caches are: given, in the home, or where else something can be written."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from levada import cache

LOOK = """
import warnings
warnings.simplefilter("always")
from levada.cache import kernel_folder
print(kernel_folder())
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cache.kernel_folder.cache_clear()
    cache.parser_file.cache_clear()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()


def unwritable(folder: Path) -> Path:
    """A place at which no folder can be made, for root either."""
    folder.write_text("a file")
    return folder / "cache"


def test_kernels_are_kept_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(tmp_path / "mine"))
    assert cache.kernel_folder() == tmp_path / "mine" / "kernels"


def test_what_cannot_be_written_is_replaced_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(unwritable(tmp_path / "file")))
    with pytest.warns(UserWarning, match=r"cannot be written; .* LEVADA_CACHE"):
        found = cache.kernel_folder()
    assert found == tmp_path / "tmp" / f"levada-cache-{os.getuid()}" / "kernels"
    assert cache.parser_file("grammar") == ""
    cache.kernel_folder.cache_clear()
    with pytest.warns(UserWarning, match="cannot be written"):
        assert cache.kernel_folder() == found, "the next run finds it"


def test_a_folder_that_others_may_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(unwritable(tmp_path / "file")))
    planted = tmp_path / "tmp" / f"levada-cache-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    with pytest.warns(UserWarning, match="cannot be written"):
        found = cache.kernel_folder()
    assert planted not in found.parents
    assert found.name.startswith("levada-kernels-")


def test_without_a_home_there_is_a_folder(tmp_path: Path) -> None:
    """A user whom the system does not know, as in a container."""
    script = "import pathlib\n\ndef no_home(cls):\n    raise RuntimeError('no home')\n"
    script += "pathlib.Path.home = classmethod(no_home)\n" + LOOK
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "LEVADA_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / f"levada-cache-{os.getuid()}" / "kernels")


def test_tables_of_a_parser_are_kept_by_the_grammar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(tmp_path))
    one, other = cache.parser_file("a: b"), cache.parser_file("a: c")
    assert Path(one).parent == tmp_path / "parsers"
    assert one != other


FULL = """
import resource, signal, warnings
import numpy as np
from levada.kernels.keyed.keyed import beside, mix

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # as on a full disk: files can be made
warnings.simplefilter("always")
one, at = np.ones(1, np.uint64), np.zeros(1, np.int64)
k, h = mix(one, one, np.zeros(1, np.int32))
print(len(beside(k, h, at, at)[0]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size is set")
def test_a_full_disk_is_said_once_and_kernels_are_kept_in_the_process(tmp_path: Path) -> None:
    environ = {**os.environ, "LEVADA_CACHE": str(tmp_path / "full")}
    environ.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", FULL]
    told = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300)
    assert told.stdout == "1\n", told.stderr
    assert told.stderr.count("cannot be written (File too large)") == 1
