"""The modules of a soak lie beside its test."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
