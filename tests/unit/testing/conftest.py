"""Makes the conformance suites' loaders importable here."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "conformance"))
