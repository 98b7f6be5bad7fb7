"""``levada machine``: probes this machine or a cluster, and shows machine files."""
