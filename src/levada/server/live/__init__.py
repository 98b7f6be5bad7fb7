"""Live results: one reader of the checkpoint serves many clients."""
