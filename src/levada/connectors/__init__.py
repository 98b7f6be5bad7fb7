"""Data in and out: stream configuration, sources, parsing, spools, serialization, sinks."""
