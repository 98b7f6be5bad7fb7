"""The checkpoint folder on disk: intentions, manifests, plans, state files, leadership."""
