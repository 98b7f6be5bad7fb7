"""Topology -> placed topology. Nothing is placed yet: partition-groups are dealt round robin (``runtime.stage.group_table``)."""
