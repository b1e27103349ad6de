"""DCTCP through two bottlenecks, measured by its authors and simulated by engine ``packet``."""
