"""Reproduction of *Extending the TCP Steady-State Throughput Equation for Parallel TCP Flows*.

``published`` holds the printed values as data; ``points`` converts the paper's two set-ups to
scenarios. ``runs`` simulates, and ``predictions`` evaluates the models with measured inputs.
``figures`` are the sections of Figures 3 to 13, 16 and 17, drawn by ``curves``. ``model_errors``
compares models at the points of the paper's claims, ``loss_events`` counts losses as the paper
does, ``open_choices`` varies unspecified parameters, and ``appendix`` holds values of the
algorithms.
"""
