"""Reproduction of *Extending the TCP Steady-State Throughput Equation for Parallel TCP Flows*.

``published`` holds the printed values as data; ``points`` converts the paper's two set-ups to
scenarios. ``runs`` simulates, and ``predictions`` evaluates the models with measured inputs.
``settings`` lists the points of the figures, ``figures`` are the sections of Figures 3 to 17,
drawn by ``curves``. ``model_errors``
compares models at the points of the paper's claims, ``loss_events`` counts losses as the paper
does, ``open_choices`` varies unspecified parameters, and ``appendix`` has the values in the text
and compares the algorithms with the equations.
"""
