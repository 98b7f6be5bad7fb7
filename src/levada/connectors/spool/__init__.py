"""Spools: rows that do not come from files, written as files before an epoch reads them."""
