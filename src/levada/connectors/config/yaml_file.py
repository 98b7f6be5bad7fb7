"""Reads YAML files of users: without repeated keys, and with errors that name the place."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from levada.core.durable_files import read_bounded
from levada.errors import UsageError

MAX_BYTES = 8_000_000
"""The most bytes of a file. Its parser takes two seconds of CPU for a million."""


class _Loader(yaml.SafeLoader):
    """Loads YAML without repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        seen = set[Hashable]()
        for key, (where, _) in zip(keys, node.value, strict=True):
            if not isinstance(key, Hashable):
                break  # it is refused below
            if key in seen:
                problem = f"the key {key} is there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, where.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path, kind: str) -> Any:
    """Reads the document of a file; ``kind`` is its name for people. Raises ``UsageError``."""
    try:
        loader = _Loader(read_bounded(path, MAX_BYTES).decode())
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"The {kind} {path} cannot be read: {reason}.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"The {kind} {path}{place}: {error.problem}.") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # such as an invalid date
        raise UsageError(f"The {kind} {path} is not YAML: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"The {kind} {path} is nested too deeply.") from error
