"""Reproduction of *Modeling TCP throughput*: Tables 1 to 3, Figures 7 to 21.

``published`` holds the paper's values as data, and ``predictions`` the models' results for them.
``paths`` defines simulated paths similar to the paper's, ``simulated_traces`` divides
traces on them into pieces as the paper does, and ``runs`` simulates and measures round trips.
``summaries``, ``senders``, ``hours``, ``connections``, ``bottlenecks`` and ``chain_gap`` are the
sections.
"""
