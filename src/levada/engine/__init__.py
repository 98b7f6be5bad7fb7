"""The Python API: streams, static data and queries in, results and status out."""
