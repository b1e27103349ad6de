"""Homes under load: flent's measurements of a router with a shaper, compared with simulation.

``sets`` converts the lines of each table to scenarios of two links, with quantities and tolerances,
and ``description`` has the page. Simulation, intervals and sections
are those of :mod:`tcpcast_papers.published`.
"""
