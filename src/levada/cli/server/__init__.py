"""``levada serve`` and ``levada token``."""
