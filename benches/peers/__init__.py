"""Other simulators, given the same question."""
