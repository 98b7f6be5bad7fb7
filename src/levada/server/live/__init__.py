"""Results as they come: one reader of the checkpoint, many clients."""
