"""Measurements of a real kernel, Linux 6.18 over an emulated link, compared with simulation.

``cells`` holds the measurements as data, one cell per set of conditions. ``scenarios`` converts
cells to scenarios of engine ``packet``, ``agreement`` defines tolerances, and ``runs`` simulates.
``comparison`` compares the simulator with the kernel, and ``sections`` formats the results and
compares formulas.
"""
