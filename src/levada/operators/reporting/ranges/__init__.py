"""ISTREAMs of the same rows over windows of different ranges."""
