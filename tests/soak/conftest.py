"""The modules of a soak lie beside its test; tests that kill use the tools of ``tests/cluster``."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "cluster")]
