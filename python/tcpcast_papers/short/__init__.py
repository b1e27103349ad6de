"""Latency of short transfers: the paper's tables and figures, and the errors of its model.

U. Ayesta and K. Avrachenkov, *The effect of the initial window size and limited transmit algorithm
on the transient behavior of TCP transfers*. Its figures are reproduced with its model, with an
extended model, and with packets.
"""
