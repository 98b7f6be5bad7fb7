"""Rows by slots: moving along edges, columns for expressions, filters and computed columns."""
