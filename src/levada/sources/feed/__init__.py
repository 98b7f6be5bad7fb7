"""Feeds: what was logged of them, read by tasks (``runtime.spool.feed`` is who listens)."""
