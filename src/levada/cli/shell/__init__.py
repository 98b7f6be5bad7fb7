"""``levada shell``: queries that are typed, over streams that are there."""
