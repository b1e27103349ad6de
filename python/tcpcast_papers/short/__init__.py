"""The latency of short transfers: the paper's tables, its figures, and where its model is off.

U. Ayesta and K. Avrachenkov, *The effect of the initial window size and limited transmit algorithm
on the transient behavior of TCP transfers*. Its figures are drawn again by its model, by the model
with what it leaves out, and by packets.
"""
