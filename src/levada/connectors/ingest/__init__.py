"""Bytes to rows: parses lines, identifies terms, assigns event times, groups elements."""
