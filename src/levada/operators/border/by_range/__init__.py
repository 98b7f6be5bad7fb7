"""IStreams of the same rows over windows that differ in their ranges."""
