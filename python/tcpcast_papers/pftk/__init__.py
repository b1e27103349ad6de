"""*Modeling TCP throughput*, reproduced: Tables 2 and 3, Figures 7 to 21.

``published`` holds the paper's figures as data and ``predictions`` what the models say of them;
``paths`` makes simulated paths that resemble the paper's, ``traces`` cuts what is sent over them as
the paper cuts its traces, ``rounds`` takes single round trips; ``runs`` simulates. ``summaries``,
``hours``, ``connections``, ``bottlenecks`` and ``chain_gap`` are the sections.
"""
