"""Which driver may commit: takeovers, heartbeats, rollback, and files that no manifest names."""
