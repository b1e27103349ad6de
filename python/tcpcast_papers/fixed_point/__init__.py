"""Many TCP connections on one local loop: the fixed point of the paper, and a full simulation.

F. Baccelli, D. Hong and Z. Liu, *Fixed point methods for the simulation of the sharing of a local
loop by a large number of interacting TCP connections*. The authors simulated one flow exactly and
approximated the others by it, because a simulation of all flows was not feasible. This package
simulates every flow, and compares it with both.
"""
