"""Registered sizes (``levada.core.size_thresholds``) with other values."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from hypothesis import strategies as st

import levada
from levada.core.size_thresholds import SIZES

PACKAGES = ("checkpoint", "kernels.terms", "operators", "plan", "runtime")


@functools.cache
def registered() -> dict[str, int]:
    """The least value of each size of all modules, by name."""
    for package in PACKAGES:
        parent = importlib.import_module(f"levada.{package}")
        for module in pkgutil.walk_packages(parent.__path__, f"{parent.__name__}."):
            importlib.import_module(module.name)
    return dict(sorted(SIZES.items()))


@functools.cache
def _readers() -> dict[str, list[tuple[str, str]]]:
    """The modules that import each size, and its name there."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == levada.__name__ and getattr(module, "__file__", None):
            for node in ast.walk(ast.parse(inspect.getsource(module))):
                for alias in node.names if isinstance(node, ast.ImportFrom) else ():
                    size = f"{getattr(node, 'module', '')}.{alias.name}"
                    if size in SIZES:
                        found.setdefault(size, []).append((name, alias.asname or alias.name))
    return found


@contextmanager
def drawn(sizes: Mapping[str, int]) -> Iterator[None]:
    """Has sizes these values, wherever they are read."""
    with ExitStack() as stack:
        for size, value in sizes.items():
            for module, name in (size.rsplit(".", 1), *_readers().get(size, ())):
                stack.enter_context(patch(f"{module}.{name}", value))
        yield


def some_sizes() -> st.SearchStrategy[dict[str, int]]:
    """Up to thirty of the sizes, each between its least and five more."""
    names = st.lists(st.sampled_from(list(registered())), max_size=30, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries(
            {name: st.integers(registered()[name], registered()[name] + 5) for name in chosen}
        )
    )
