"""The hot loops of the data path, compiled by numba, each with a twin as its oracle.

Plain Python loops over NumPy columns, compiled ahead with explicit signatures: the arguments are
one-dimensional, C-contiguous and read-only (memory maps are; writable arrays match as well), so
each kernel is compiled once for each signature and not again per caller. A strided column is
refused by numba with a TypeError; copy it first.

Traps that all modules here keep in mind: int64 with uint64 becomes float64, so hash arithmetic uses
``np.uint64`` only. Short parts with array arguments are ``fused``: as plain calls they cost ten
times more. numba's cache does not see changes in imported modules, so kernels carry a stamp of
their own (``stamp_of``); it does not tell bounds-checked code apart, so with
``NUMBA_BOUNDSCHECK=1`` nothing is cached. ``NUMBA_DISABLE_JIT=1`` runs the same loops as Python.

Cost: importing a kernel from a warm cache takes 2 to 6 ms, compiling it 0.1 to 1.3 s. ``warm()``
pays both, once.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = {"nogil": True, "error_model": "numpy"}
CACHE = not numba.config.BOUNDSCHECK


def _column(kind: Any, readonly: bool = True) -> Any:
    return types.Array(kind, 1, "C", readonly=readonly)


BOOL = _column(types.boolean)
U8, I8, I32, I64 = (
    _column(types.uint8),
    _column(types.int8),
    _column(types.int32),
    _column(types.int64),
)
U64, F64 = _column(types.uint64), _column(types.float64)
OUT_I32 = _column(types.int32, readonly=False)
INT = types.int64
FLAG = types.boolean


def kernel(*signatures: tuple[Any, ...]) -> Callable[[F], F]:
    """Compiles a function for these tuples of argument types, or takes it from the disk's cache."""

    def compiled(function: F) -> F:
        dispatcher = numba.njit(**OPTIONS)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT
            return function
        if CACHE:
            dispatcher.enable_caching()
            dispatcher._cache._cache_file._source_stamp = stamp_of(function)
        for signature in signatures:
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return cast(F, dispatcher)

    return compiled


def inlined(function: F) -> F:
    """A part of a kernel, typed by the call; LLVM inlines it where it is small."""
    return cast(F, numba.njit(**OPTIONS)(function))


def fused(function: F) -> F:
    """A part whose body replaces each call before compilation: for short parts with array arguments
    in a hot loop.

    A plain call with arrays costs up to ten times the work in it; but fusing many or long parts
    makes compilation slow.
    """
    return cast(F, numba.njit(inline="always", **OPTIONS)(function))


def stamp_of(function: Callable[..., Any]) -> str:
    """A digest of what a function's machine code is made of: this file, its own, those of its
    parts, its constants.

    numba's own stamp is the function's file alone, so that a change of a part in another module
    would go unseen.
    """
    digest = hashlib.sha256(_source(__file__))
    pending: list[Any] = [function]
    seen = set()
    while pending:
        code, known = (part := pending.pop()).__code__, part.__globals__
        if code in seen:
            continue
        seen.add(code)
        digest.update(_source(code.co_filename))
        for name in code.co_names:
            value = known.get(name)
            # a part; an intrinsic
            made_from = getattr(value, "py_func", None) or getattr(value, "_defn", None)
            if made_from is not None:
                pending.append(made_from)
            elif isinstance(value, int | float | bytes | tuple | np.generic):
                digest.update(f"{name}={value!r}".encode())
            elif isinstance(value, np.ndarray):
                digest.update(value.tobytes())
    return digest.hexdigest()


@functools.cache
def _source(path: str) -> bytes:
    return Path(path).read_bytes()


def warm() -> None:
    """Compiles or loads every kernel and calls the ``warm`` of modules that have one; Spark's
    daemon does it before it forks.
    """
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        loaded = importlib.import_module(module.name)
        if hasattr(loaded, "warm"):
            loaded.warm()
