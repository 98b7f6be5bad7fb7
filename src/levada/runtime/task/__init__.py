"""The task's side of epochs: intake and stages over blobs."""
