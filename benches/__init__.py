"""Benchmarks: how fast, how large, beside targets and beside other simulators."""
