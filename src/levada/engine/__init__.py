"""The engine: streams, static data and queries in, results out; what stands behind
``levada.Engine``.
"""
