"""Incremental operators on rows with event times: joins, count windows, sessions."""
