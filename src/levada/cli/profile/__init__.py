"""``levada profile``: shows the cost of each operator."""
