"""How many examples a property tries: few in CI, as many as ``LEVADA_CASES`` says elsewhere."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("LEVADA_CASES", "0"))
PATIENCE = 0 if EXAMPLES else 600  # s that a property may take, 0: any


def examples(few: int) -> settings:
    """A sixth of so many examples in ``make test``. A slow machine is no failure."""
    return settings(
        max_examples=EXAMPLES or max(few // 6, 3),
        deadline=None,
        print_blob=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.filter_too_much,
        ],
    )
