"""Kernels over event times: intervals, reports, sliding panes."""
