"""Rows of CSV, NDJSON and Parquet to typed columns with event times, or to triples by a mapping."""
