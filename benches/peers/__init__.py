"""Other simulators with equivalent workloads."""
