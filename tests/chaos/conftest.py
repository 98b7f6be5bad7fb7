"""The chaos tests use the tools of ``tests/spark``."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "spark"))
