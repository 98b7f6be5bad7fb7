"""Optional libraries: a missing one raises an error with the command that installs it."""

from __future__ import annotations

from types import ModuleType

from levada.core.code_loading import load_module
from levada.core.distribution import install_command
from levada.errors import UsageError


def pandas_module(what: str) -> ModuleType:
    """Imports pandas. Raises ``UsageError`` if it is missing. ``what``: the feature that needs
    it.
    """
    return _module("pandas", what, "pandas")


def rdflib_module(what: str) -> ModuleType:
    """Imports RDFLib. Raises ``UsageError`` if it is missing."""
    return _module("rdflib", what, "rdflib")


def notebook_module(what: str) -> ModuleType:
    """Imports IPython's display. Raises ``UsageError`` if it is missing."""
    return _module("IPython.display", what, "notebook")


def _module(name: str, what: str, extra: str) -> ModuleType:
    try:
        return load_module(name)
    except ModuleNotFoundError as error:
        library = name.partition(".")[0]
        raise UsageError(
            f"{what} needs {library}, which is not installed.",
            hint=install_command(extra),
        ) from error
