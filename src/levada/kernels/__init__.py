"""The hot loops of the data path, compiled by numba, each with a twin as its oracle.

Plain Python loops over NumPy columns, compiled ahead with explicit signatures: the arguments are
one-dimensional, C-contiguous and read-only (memory maps are; writable arrays match as well), so
each kernel is compiled once for each signature and not again per caller. A strided column is
refused by numba with a TypeError; copy it first.

All modules here avoid these traps: int64 with uint64 becomes float64, so hash arithmetic uses
``np.uint64`` only. Short parts with array arguments are ``fuse``d: as plain calls they cost ten
times more. numba's cache does not see changes in imported modules, so kernels carry a stamp of
their own (``stamp_of``). The cache does not distinguish bounds-checked code, so with
``NUMBA_BOUNDSCHECK=1`` nothing is cached. ``NUMBA_DISABLE_JIT=1`` runs the same loops as Python.

A kernel is compiled, or read from the cache on disk, at its first call, for all of its signatures;
from then on a call costs the same as in numba. So a process pays for the kernels that it needs (2
to 6 ms each from the cache, 0.1 to 1.3 s without), and an import for none. ``warm()`` pays for all,
once. ``compiled`` is the number that were not in the cache, ``compiling`` the kernel that is being
compiled. The cache is in Levada's folder (``levada.core.cache_folder``) unless ``NUMBA_CACHE_DIR``
names another.
"""

from __future__ import annotations

import functools
import hashlib
import pkgutil
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import types

from levada.core.cache_folder import cache_compiled, warn_not_cached
from levada.core.code_loading import load_module
from levada.kernels import inline_functions

F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = {"nogil": True, "error_model": "numpy"}
CACHE = not numba.config.BOUNDSCHECK


def _column(kind: Any, readonly: bool = True) -> Any:
    return types.Array(kind, 1, "C", readonly=readonly)


BOOL = _column(types.boolean)
U8, I8, I16, I32, I64 = (
    _column(types.uint8),
    _column(types.int8),
    _column(types.int16),
    _column(types.int32),
    _column(types.int64),
)
U64, F64 = _column(types.uint64), _column(types.float64)
OUT_I32 = _column(types.int32, readonly=False)
INT = types.int64
FLAG = types.boolean


compiled = 0
compiling = ""
_BUILDING = threading.RLock()  # a kernel may call another


def kernel(*signatures: tuple[Any, ...]) -> Callable[[F], F]:
    """A function that is compiled for these tuples of argument types, or taken from the disk's
    cache, when it is first called.
    """

    def register(function: F) -> F:
        dispatcher = numba.njit(**OPTIONS)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT
            return function
        _KERNELS.append(_Kernel(dispatcher, signatures))
        return cast(F, dispatcher)

    return register


class _Kernel:
    """One kernel before it is built: the first request of numba for an unknown function builds it,
    and then continues as usual.
    """

    def __init__(self, dispatcher: Any, signatures: Sequence[tuple[Any, ...]]) -> None:
        self._dispatcher, self._signatures = dispatcher, signatures
        self._built = False
        dispatcher._compile_for_args = self._call
        dispatcher.get_call_template = self._called_by_a_kernel

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        self.build()
        return self._dispatcher  # numba calls it with the arguments

    def _called_by_a_kernel(self, args: Any, kwargs: Any) -> Any:
        self.build()
        return self._dispatcher.get_call_template(args, kwargs)

    def build(self) -> None:
        """Compiles or loads it for all signatures, once."""
        with _BUILDING:
            if self._built:
                return
            dispatcher = self._dispatcher
            self._enable_cache()
            for signature in self._signatures:
                self._compile(signature)
            del dispatcher._compile_for_args, dispatcher.get_call_template
            dispatcher.disable_compile()
            self._built = True

    def is_cached(self) -> bool:
        """Whether it need not be compiled."""
        with _BUILDING:
            return self._built or (
                self._enable_cache() and all(self._has(signature) for signature in self._signatures)
            )

    def _enable_cache(self) -> bool:
        """Makes the dispatcher read the cache; returns False without a cache."""
        dispatcher = self._dispatcher
        if CACHE and not hasattr(dispatcher._cache, "_cache_file"):
            cache_compiled(dispatcher, stamp_of(dispatcher.py_func))
            dispatcher._cache.save_overload = partial(_keep, dispatcher._cache.save_overload)
        return CACHE

    def _has(self, signature: tuple[Any, ...]) -> bool:
        cache = self._dispatcher._cache
        key = cache._index_key(signature, self._dispatcher.targetctx.codegen())
        return key in cache._cache_file._load_index()

    def _compile(self, signature: tuple[Any, ...]) -> None:
        global compiled, compiling
        dispatcher = self._dispatcher
        before = compiling
        if not (CACHE and self._has(signature)):
            compiling = dispatcher.py_func.__name__
        dispatcher.compile(signature)
        if compiling and not before:
            compiled += 1
        compiling = before


def _keep(save: Callable[[Any, Any], None], signature: Any, compiled: Any) -> None:
    """Writes compiled code into the cache; on a full disk it is kept only in memory."""
    try:
        save(signature, compiled)
    except OSError as error:
        warn_not_cached(error)


_KERNELS: list[_Kernel] = []


def is_there(function: Callable[..., Any]) -> bool:
    """Whether a kernel can be called without being compiled before; without a cache there is
    nothing to be looked at, and it is taken as if.
    """
    kernels_ = [one for one in _KERNELS if one._dispatcher is function]
    return not CACHE or all(one.is_cached() for one in kernels_)


def inline(function: F) -> F:
    """A part of a kernel, typed by the call; LLVM inlines it where it is small. It is not called
    from Python (``parts``).
    """
    return inline_functions.make_part(function, OPTIONS)


def part(function: F) -> F:
    """A part of a kernel that LLVM always inlines into it; it is not called from Python."""
    return inline_functions.make_part(function, {**OPTIONS, "forceinline": True})


def fuse(function: F) -> F:
    """Makes a part whose body replaces each call before compilation: for short parts with array
    arguments in a hot loop.

    A plain call with arrays costs up to ten times the work in it; but fusing many or long parts
    makes compilation slow.
    """
    return cast(F, numba.njit(inline="always", **OPTIONS)(function))


def stamp_of(function: Callable[..., Any]) -> str:
    """Returns a digest of the sources of a function's machine code: this file, its own, those of
    its parts, its constants.

    numba's own stamp is the function's file alone, which misses a change of a part in another
    module.
    """
    digest = hashlib.sha256(_source(__file__) + _source(inline_functions.__file__))
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


def warm(
    tell: Callable[[int, int], None] = lambda done, of: None, *, only_cached: bool = False
) -> None:
    """Compiles or loads every kernel and calls the ``warm`` of modules that have one. ``tell`` is
    called before each kernel, and at the end, with the number of finished kernels and of all.

    ``only_cached``: kernels that would have to be compiled are left out; Spark's daemon does so
    before it forks.
    """
    modules = [
        load_module(module.name) for module in pkgutil.walk_packages(__path__, f"{__name__}.")
    ]
    wanted = [one for one in _KERNELS if not only_cached or one.is_cached()]
    for done, one in enumerate(wanted):
        tell(done, len(wanted))
        one.build()
    tell(len(wanted), len(wanted))
    if len(wanted) == len(_KERNELS):
        for module in modules:
            if hasattr(module, "warm"):
                module.warm()
