"""A checkpoint on an object store, worked on in a local folder (docs/decisions/0064)."""
