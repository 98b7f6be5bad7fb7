"""``levada place`` and ``levada graph``: the send graph, and the machine of each task."""
