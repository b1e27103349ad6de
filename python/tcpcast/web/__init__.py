"""The local web page: questions with sliders, all models, simulation and captures.

``server`` binds the port and prints the start URL; ``app`` contains the routes, ``guard`` the
access control. Calculations run in separate processes (``worker``, started by ``processes``), so
that they can be stopped immediately and the server stays small. ``jobs`` manages long calculations.
``questions`` defines the questions, ``evaluation`` computes the answers, and ``copies`` writes
equivalent commands and programs.
"""
