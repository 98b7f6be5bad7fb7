"""Triples and tuples to rows: matches patterns."""
