"""The cache of this folder's compiled loops on disk.

numba's cache checks only a function's own file. Here the stamp of each function covers all files of
the folder, since the search calls the models. ``NUMBA_DISABLE_JIT=1`` runs the same loops as
Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from levada.core.cache_folder import cache_compiled

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _stamp() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def compile_function(function: F) -> F:
    """Returns the function with compilation at its first call."""
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    if dispatcher is not function and not numba.config.BOUNDSCHECK:
        cache_compiled(dispatcher, _stamp())
    return cast(F, dispatcher)
