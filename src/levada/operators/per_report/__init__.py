"""Operators on report rows: the report is one more key."""
