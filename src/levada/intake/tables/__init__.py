"""Rows of CSV, NDJSON and Parquet -> typed columns with event times, or triples by a mapping."""
