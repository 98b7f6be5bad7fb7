"""Integrations with Python: DataFrames, RDFLib, asyncio, notebooks."""
