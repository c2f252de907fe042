"""Mutators."""
def for_cpu(target):
    return {}
