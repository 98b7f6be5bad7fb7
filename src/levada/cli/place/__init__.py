"""``levada place`` and ``levada graph``: send graphs, and which machine each task goes to."""
