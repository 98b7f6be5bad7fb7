"""Algebra -> physical operators of one query."""
