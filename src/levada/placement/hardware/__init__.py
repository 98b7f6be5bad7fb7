"""This machine as a machine file: where its processors are, and how far from each other."""
