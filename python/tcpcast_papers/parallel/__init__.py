"""*Extending the TCP Steady-State Throughput Equation for Parallel TCP Flows*, reproduced.

``published`` holds what is printed as data, ``points`` the paper's two set-ups as scenarios, with
what it leaves open; ``runs`` simulates and ``predictions`` feeds the models with what was measured.
``figures`` are the sections of Figures 3 to 13, 16 and 17, drawn by ``curves``; ``claims`` asks
what the paper says of them, ``loss_events`` counts losses as it does, ``open_choices`` varies what
it leaves open, ``appendix`` holds values of the algorithms.
"""
