"""Measurements of real TCP that others published, compared with engine ``packet``.

A **set** (:class:`~.cells.CellSet`) is one publication: its citation, its set-up, and a function
that converts lines of its table to **cells**, each with a scenario and measured values. ``data``
contains tables or parts of them, with sources and licences in ``data/README.md``; other tables are
read from folders (``--measurements``). ``runs`` simulates the cells, and ``sections`` compares.
"""
