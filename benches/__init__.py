"""Benchmarks of speed and size, compared with targets and other simulators."""
