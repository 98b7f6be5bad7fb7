"""The checkpoint: intentions, manifests, plans, state files."""
