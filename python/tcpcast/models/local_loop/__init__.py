"""Mean values of many HTTP users on one access link: section 10 of INRIA report 4154.

Baccelli, Hong, Liu: "Fixed Point Methods for the Simulation of the Sharing of a Local Loop by a
Large Number of Interacting TCP Connections", 2001. Each of N users alternately thinks, for I
seconds on average, and fetches a file of B packets on average over a link of C packets/s.

:mod:`.square_root` is equation (1), :mod:`.fair_share` (2), :mod:`.overload` (3), and
:mod:`.threshold` the number of users from which the link is full.
"""

from tcpcast.models.local_loop.fair_share import fair_send_rate_pps, mean_user_rate_pps
from tcpcast.models.local_loop.overload import overload_goodput_pps
from tcpcast.models.local_loop.square_root import restarting_goodput_pps
from tcpcast.models.local_loop.threshold import open_loop_load, threshold_sources

__all__ = [
    "fair_send_rate_pps",
    "mean_user_rate_pps",
    "open_loop_load",
    "overload_goodput_pps",
    "restarting_goodput_pps",
    "threshold_sources",
]
