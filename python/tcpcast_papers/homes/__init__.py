"""Homes under load: flent's measurements of a router with a shaper, compared with simulation.

``scenarios`` converts the lines of a table to scenarios of two links, ``sets`` has the tables with
their quantities and tolerances, and ``description`` the page. Simulation, intervals and sections
are those of :mod:`tcpcast_papers.published`.
"""
