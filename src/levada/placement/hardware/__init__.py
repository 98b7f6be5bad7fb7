"""This machine as a machine file: its processors and its memory latencies."""
