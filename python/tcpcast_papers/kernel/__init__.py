"""Measurements of a real kernel, answered again: Linux 6.18 over an emulated link.

``cells`` holds the measurements as data, which ``first_series`` and ``second_series`` read from
their original files (``originals``). ``scenarios`` makes of each what engine packet is asked,
``agreement`` says what agrees, ``runs`` simulates; ``comparison`` and ``models`` lay simulator and
formulas beside the kernel, ``sections`` shows them.
"""
