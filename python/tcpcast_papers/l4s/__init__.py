"""Measurements of L4S that others published, compared with engine ``packet``.

The sets are :class:`~tcpcast_papers.published.cells.CellSet`, as those of ``published``. ``data``
contains the tables that may be quoted; the others are read from folders (``--measurements``).
"""
