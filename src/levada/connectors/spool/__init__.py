"""Spools rows that do not come from files: they are written as files before an epoch reads them."""
