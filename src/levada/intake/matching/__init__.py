"""Triples and tuples -> rows of the plan's first nodes."""
