"""Rules."""
def for_cpu(target):
    return []
