"""A checkpoint on an object store, with a local folder as its copy (docs/decisions/0064)."""
