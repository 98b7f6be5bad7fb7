"""The driver's part of an epoch: decide, write ahead, run, commit."""
