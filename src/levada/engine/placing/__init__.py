"""A placement as an engine goes by it."""
