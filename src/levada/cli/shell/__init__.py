"""``levada shell``: an interactive shell for queries."""
