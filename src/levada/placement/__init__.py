"""Topology -> placed topology. Nothing is placed yet: partition-groups are dealt round robin (``runtime.context.group_table``)."""
