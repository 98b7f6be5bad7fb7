"""Physical operators to operators of the shared plan: names become slots, constants parameters."""
