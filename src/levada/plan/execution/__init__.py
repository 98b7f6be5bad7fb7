"""The execution plan that tasks read. Imports ``core`` only, so that tasks load no planner."""
