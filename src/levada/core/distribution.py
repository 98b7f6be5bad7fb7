"""The distribution of Levada that is installed: ``levada``, or ``levada-core``, which has the same
code and needs neither PySpark nor pandas.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from levada.errors import UsageError

FULL, CORE = "levada", "levada-core"


def installed_version(package: str) -> str:
    """Returns the version of an installed package; "": it is not installed.

    >>> installed_version("no-such-package")
    ''
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def install_command(extra: str) -> str:
    """Returns the command that installs an optional part of Levada.

    >>> install_command("kafka")
    "pip install 'levada[kafka]'"
    """
    is_core = installed_version(CORE) and not installed_version(FULL)
    return f"pip install '{CORE if is_core else FULL}[{extra}]'"


def require_pyspark(master: str) -> None:
    """Raises ``UsageError`` if PySpark is not installed. ``master``: the URL that needs it."""
    if find_spec("pyspark") is None:
        raise UsageError(
            f"The master {master} needs Spark, and PySpark is not installed: {CORE} does without.",
            hint=f"Run pip install {FULL} ({CORE} with PySpark), or use --master none or "
            "Engine(spark=False).",
        )
