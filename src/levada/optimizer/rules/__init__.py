"""The optimizer's rules, a file each: algebra in, equivalent algebra out."""
