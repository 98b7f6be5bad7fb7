"""``levada profile``: what each operator of queries costs on a sample."""
