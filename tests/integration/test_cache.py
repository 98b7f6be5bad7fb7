"""Where caches are: given, in the home, or where else something can be written."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from levada.core import cache_folder

LOOK = """
import warnings
warnings.simplefilter("always")
from levada.core.cache_folder import kernel_folder
print(kernel_folder())
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forget()
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()


def forget() -> None:
    """Has the folders looked at again, as a new process does."""
    cache_folder.kernel_folder.cache_clear()
    cache_folder._code_folder.cache_clear()


def unwritable(folder: Path) -> Path:
    """A place at which no folder can be made, for root either."""
    folder.write_text("a file")
    return folder / "cache"


def test_kernels_are_kept_where_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(tmp_path / "mine"))
    assert cache_folder.kernel_folder() == tmp_path / "mine" / "kernels"


def test_what_cannot_be_written_is_replaced_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(unwritable(tmp_path / "file")))
    with pytest.warns(UserWarning, match=r"cannot be written\. .* LEVADA_CACHE"):
        found = cache_folder.kernel_folder()
    assert found == tmp_path / "tmp" / f"levada-cache-{os.getuid()}" / "kernels"
    assert Path(cache_folder.parser_file("grammar")).parent == found.with_name("parsers")
    forget()
    with pytest.warns(UserWarning, match="cannot be written"):
        assert cache_folder.kernel_folder() == found, "the next run finds it"


def test_a_folder_that_others_may_write_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(unwritable(tmp_path / "file")))
    planted = tmp_path / "tmp" / f"levada-cache-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    with pytest.warns(UserWarning, match="is not used: "):
        found = cache_folder.kernel_folder()
    assert planted not in found.parents
    assert found.parent.name.startswith("levada-cache-")


def kernels_below(root: Path) -> Path:
    """An index file of a kernel in a new cache folder, as numba lays it out."""
    index = root / "kernels" / "keyed_0a1b" / "keyed.mix-30.py311.nbi"
    index.parent.mkdir(parents=True)
    index.write_bytes(b"index")
    for folder in (root, *root.rglob("*")):
        folder.chmod(0o755 if folder.is_dir() else 0o644)
    return index


@pytest.mark.parametrize("place", ["root", "kernels", "module", "index", "above"])
def test_code_is_not_loaded_from_a_cache_that_others_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root = tmp_path / "shared" / "cache"
    index = kernels_below(root)
    monkeypatch.setenv("LEVADA_CACHE", str(root))
    assert cache_folder.kernel_folder() == root / "kernels"
    forget()
    open_to_all = {
        "root": root,
        "kernels": root / "kernels",
        "module": index.parent,
        "index": index,
        "above": root.parent,
    }[place]
    open_to_all.chmod(0o777)
    with pytest.warns(UserWarning, match=f"is not used: other users can write {open_to_all}"):
        folder = cache_folder.kernel_folder()
    assert root not in folder.parents
    assert root not in Path(cache_folder.parser_file("grammar")).parents
    assert root not in cache_folder.code_folder().parents


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("place", ["root", "kernels", "index"])
def test_code_of_another_user_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    root = tmp_path / "cache"
    index = kernels_below(root)
    foreign = {"root": root, "kernels": root / "kernels", "index": index}[place]
    os.chown(foreign, 65534, 65534)
    monkeypatch.setenv("LEVADA_CACHE", str(root))
    with pytest.warns(UserWarning, match=f"is not used: {foreign} belongs to another user"):
        assert root not in cache_folder.kernel_folder().parents


def test_a_link_below_a_cache_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "kernels").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("LEVADA_CACHE", str(tmp_path / "cache"))
    with pytest.warns(UserWarning, match="kernels is a link"):
        assert cache_folder.kernel_folder() != tmp_path / "cache" / "kernels"


def test_a_cache_made_under_an_open_umask_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(tmp_path / "mine"))
    before = os.umask(0)
    try:
        folder = cache_folder.kernel_folder()
        (folder / "keyed_0a1b").mkdir()
        (folder / "keyed_0a1b" / "keyed.nbi").write_bytes(b"index")
    finally:
        os.umask(before)
    forget()
    assert cache_folder.kernel_folder() == folder


def test_the_folder_that_numba_is_given_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_folder.kernel_folder() == tmp_path / "numba"
    (tmp_path / "numba").chmod(0o777)
    forget()
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR .* is not used: other users can write"):
        assert cache_folder.kernel_folder() == tmp_path / "mine" / "kernels"


def test_all_compiled_functions_are_kept_in_the_checked_folder(tmp_path: Path) -> None:
    script = """
import importlib, pkgutil
from numba.core.registry import CPUDispatcher
import levada.placement
from levada.core.cache_folder import kernel_folder

names = ["bench.papers.throughput_simulator", *(
    module.name for module in pkgutil.walk_packages(levada.placement.__path__, "levada.placement.")
)]
cached = [
    value._cache.cache_path
    for module in map(importlib.import_module, names)
    for value in vars(module).values()
    if isinstance(value, CPUDispatcher) and value._cache.cache_path
]
assert all(path.startswith(str(kernel_folder())) for path in cached), cached
print(len(cached))
"""
    environ = {**os.environ, "LEVADA_CACHE": str(tmp_path / "mine")}
    environ.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environ
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3


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
    one, other = cache_folder.parser_file("a: b"), cache_folder.parser_file("a: c")
    assert Path(one).parent == tmp_path / "parsers"
    assert one != other


FULL = """
import resource, signal, warnings
import numpy as np
from levada.kernels.keyed.bucket_layout import combine_instants, mix

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))  # as on a full disk: files can be made
warnings.simplefilter("always")
one, at = np.ones(1, np.uint64), np.zeros(1, np.int64)
k, h = mix(one, one, np.zeros(1, np.int32))
print(len(combine_instants(k, h, at, at)[0]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a file's size is set")
def test_a_full_disk_is_said_once_and_kernels_are_kept_in_the_process(tmp_path: Path) -> None:
    environ = {**os.environ, "LEVADA_CACHE": str(tmp_path / "full")}
    environ.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", FULL]
    told = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=300)
    assert told.stdout == "1\n", told.stderr
    assert told.stderr.count("cannot be written (File too large)") == 1


@pytest.mark.parametrize(
    ("module", "call"),
    [("sparql", "parse('SELECT * WHERE { ?s ?p ?o }')"), ("cql", "parse_cql('Select * From S')")],
)
def test_tables_of_a_grammar_are_built_once(tmp_path: Path, module: str, call: str) -> None:
    said = f"import levada.language.{module}.parser as p; p.{call}"
    environment = os.environ | {"LEVADA_CACHE": str(tmp_path)}
    stamps = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", said], env=environment, check=True)
        (tables,) = (tmp_path / "parsers").iterdir()
        stamps.append(tables.stat().st_mtime_ns)
    assert stamps[0] == stamps[1]
