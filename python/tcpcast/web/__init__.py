"""The local page: questions with sliders, every model at once, simulation, captures.

``server`` binds and prints the start URL, ``app`` has the routes and ``guard`` who may use them.
Whatever is calculated runs in processes of their own (``worker``, started by ``processes``), so
that it can be stopped at once and the server stays small; ``jobs`` counts those that take long.
``questions`` says what can be asked, ``evaluation`` answers it, ``copies`` writes it down.
"""
