"""Parts of kernels, which are code of the calling kernel and of nothing else.

For every function that another one calls, numba makes a library of its own: it links the callees
into it, optimizes the whole and makes machine code of it. For a kernel of sixty parts that was four
fifths of the work, and this machine code is never run: the kernel links all parts in and is
optimized as a whole. So a ``Part`` is lowered and no more.

A part has no machine code: a call from Python would call nothing. It is lowered once for the types
of its arguments: numba would lower it again for each constant argument, of which LLVM knows anyway
when it inlines. The code overrides two methods of numba's libraries, below its documented
``pipeline_class``; if these methods change, parts are compiled as numba does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

F = TypeVar("F", bound=Callable[..., Any])
_STEPS = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
KNOWN = all(hasattr(JITCodeLibrary, step) for step in _STEPS)


class _Codegen:
    """The code generator that a part's library refers to; it has no environment."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, env: object) -> None:
        """Nothing is there that would look at it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _Unoptimized(JITCodeLibrary):  # type: ignore[misc]
    """A library that is only linked into others."""

    @property
    def codegen(self) -> Any:
        return _Codegen(self._codegen)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class Part(Compiler):  # type: ignore[misc]
    """The compiler of a part."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """The part, lowered."""
        codegen = self.state.targetctx.codegen()
        self.state.library = _Unoptimized(codegen, func.__qualname__)
        return super().compile_extra(func)


_OPTIONS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
if KNOWN:
    _OPTIONS["pipeline_class"] = Part


def make_part(function: F, options: dict[str, Any]) -> F:
    """A function as a part."""
    part = njit(**options, **_OPTIONS)(function)
    if part is function:  # NUMBA_DISABLE_JIT
        return function
    template = part.get_call_template

    def select_function(args: Any, kws: Any) -> Any:
        return template([types.unliteral(each) for each in args], kws)

    part.get_call_template = select_function
    return cast(F, part)
