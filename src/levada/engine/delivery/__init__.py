"""Reports of queries to targets: each output at its own pace, as a cursor on the index."""
