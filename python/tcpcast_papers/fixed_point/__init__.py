"""Many TCP connections on one local loop: the fixed point of the paper, and every flow beside it.

F. Baccelli, D. Hong and Z. Liu, *Fixed point methods for the simulation of the sharing of a local
loop by a large number of interacting TCP connections*. The authors had one flow exact and the
others in its image, because all of them could not be simulated; here they are, beside both.
"""
