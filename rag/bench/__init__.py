"""Benchmarks: run systems over questions, compare the runs and report them."""
