"""The delivery of reports to outputs, each at its pace."""
