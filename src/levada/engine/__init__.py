"""The engine: streams, static data and queries in, results out; behind ``levada.Engine``."""
