"""The check at the end of a run that each element was counted, late, dead or cut."""

from __future__ import annotations

from levada.checkpoint.manifest import Manifest
from levada.core.count_text import count_text
from levada.core.names import display_name
from levada.errors import EngineError


def check_accounts(manifest: Manifest) -> None:
    """Raises ``EngineError`` if elements have vanished: neither counted nor late, dead or cut."""
    for name, record in manifest.streams.items():
        if record.unaccounted_elements:
            elements = count_text(record.unaccounted_elements, "element is", "elements are")
            raise EngineError(
                f"Of the stream {display_name(name)} {elements} unaccounted for: the results may "
                "be wrong.",
                hint="This is a fault of Levada; please report it with the stream's data.",
            )
