"""State of groups that have come from other partitions: what is listed, and what is read of it."""
