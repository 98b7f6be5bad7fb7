"""The benchmarks lie beside the sources, in the root of the checkout."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3]))
