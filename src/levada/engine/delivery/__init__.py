"""Delivers reports to outputs, each at its own pace."""
