"""Sources of streams: the driver splits them, and tasks read the splits."""
