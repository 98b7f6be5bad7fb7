"""Which files manifests name: how that is written, told by tasks, and kept in memory."""
