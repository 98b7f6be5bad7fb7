"""Source trees of earlier commits: worktrees in the cache folder, which later runs use again.

``XDG_CACHE_HOME/levada-bench/COMMIT``, or below ``~/.cache``. Kernels of a tree are compiled before
anything is measured, once for each commit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WARM = "from levada.kernels import warm; warm()"
_WARMED = ".levada-bench-warm"


class TreeError(Exception):
    """There is no such commit, or its tree cannot be used."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where earlier trees are kept.

    >>> cache_folder({"XDG_CACHE_HOME": "/tmp/cache"}).as_posix()
    '/tmp/cache/levada-bench'
    """
    given = environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if given else Path.home() / ".cache") / "levada-bench"


def resolve_commit(commit: str, root: Path = ROOT) -> str:
    """The full hash of a commit, tag or branch."""
    return _git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", what=commit)


def tree_of(commit: str, environ: Mapping[str, str] = os.environ, root: Path = ROOT) -> Path:
    """A worktree of a commit (by its full hash), made if there is none."""
    tree = cache_folder(environ) / commit
    if not (tree / ".git").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        # --force: git may still know a folder that somebody has deleted
        _git(root, "worktree", "add", "--force", "--detach", str(tree), commit, what=commit)
    return tree


def warm_kernels(tree: Path) -> None:
    """Compiles the kernels of a tree; of an earlier commit once for each Python and processor."""
    note, target = tree / _WARMED, f"{sys.version} {os.environ.get('NUMBA_CPU_NAME', '')}"
    is_earlier = tree != ROOT
    if is_earlier and note.exists() and note.read_text() == target:
        return
    done = subprocess.run(
        [sys.executable, "-c", WARM], env=environment(tree), stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise TreeError(f"The kernels of {tree} cannot be compiled.")
    if is_earlier:
        note.write_text(target)


def choose_processor(environ: MutableMapping[str, str], machine: str) -> None:
    """Has kernels compiled for registers of 32 bytes, unless a processor is named: kernels before
    decision 13 are slow with larger ones, and would be easy to beat.

    >>> environ = {}
    >>> choose_processor(environ, "x86_64")
    >>> environ
    {'NUMBA_CPU_NAME': 'haswell', 'NUMBA_CPU_FEATURES': ''}
    """
    if machine == "x86_64" and not environ.get("NUMBA_CPU_NAME"):
        environ.update(NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="")


def environment(tree: Path) -> dict[str, str]:
    """The environment of a process that runs a tree's engine under today's harness."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT)])}


def _git(root: Path, *arguments: str, what: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise TreeError(f"git has no tree of {what}: {done.stderr.strip() or 'no such commit'}.")
    return done.stdout.strip()
