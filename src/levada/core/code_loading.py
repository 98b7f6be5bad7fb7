"""The only module that turns names or texts into code, or writes pickles.

A name or text that data, a query, a client, or a file of a checkpoint can write must never get
here: callers pass constants of the program, and names from the app file or the driver's program
(``user_functions``). ``ruff`` and ``tests/unit/test_code_loading.py`` forbid these calls elsewhere.
Nothing in Levada reads a pickle. numba and Lark do, from folders that ``levada.core.cache_folder``
has checked; Spark's workers do, from the driver.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def load_module(name: str) -> ModuleType:
    """Imports a module by a name that the program holds.

    >>> load_module("levada.errors").LevadaError.__name__
    'LevadaError'
    """
    return importlib.import_module(name)


def load_function(name: str) -> Callable[..., Any]:
    """Imports the function that ``module:function`` names.

    >>> load_function("levada.core.code_loading:load_module") is load_module
    True
    """
    module, _, function = name.partition(":")
    loaded: Callable[..., Any] = getattr(load_module(module), function)
    return loaded


def compile_function(text: str, name: str, names: Mapping[str, object]) -> Callable[..., Any]:
    """Compiles the function that a text of the program defines.

    >>> compile_function("def double(x):\\n return factor * x", "double", {"factor": 2})(3)
    6
    """
    scope = dict(names)
    exec(text, scope)
    compiled: Any = scope[name]
    return compiled  # type: ignore[no-any-return]


def write_command(task: object) -> bytes:
    """A pickle of a task for Spark's workers, which read nothing else."""
    return pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
