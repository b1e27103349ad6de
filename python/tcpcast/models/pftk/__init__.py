"""PFTK: throughput of one bulk TCP flow (Padhye, Firoiu, Towsley, Kurose, 1998).

Equation numbers are the paper's. p is the loss indication ratio: triple duplicates and timeout
sequences per packet sent. b is the number of packets per ACK. Rates include retransmissions. The
formulas have no recovery time and no slow start.

``closed_form`` contains the formulas, their inverses (the loss at a given rate) and RFC 5348's
equation, ``timeouts`` the probabilities and durations of timeouts. ``chain`` is the future work of
the paper: the window as a Markov chain, independent losses within a round, and fast recovery; and
its comparison with the closed form.

Misprints: the sum of (22) ends at k = w - 1, as its closed form (23) shows; the E[X] mentioned
below (28) is (15), not (16); in the first branch of (31) E[W] is E[W_u].

The branches of (31) differ at E[W_u] = W_max unless b = 2. A window-limited period counts W_max
packets per round; a growing period counts by (8) to (12), in which the window increases after b
full rounds and the last round is half full. The two E[X] differ by (2 - b)/4 rounds there, so for
b = 1 the rate jumps *up* as p grows across the boundary: by 4.4 % at W_max = 6, 3.6 % at 10 and
1.1 % at 44 (T0 = 2 RTT); for b above 2 it jumps down. ``continuous=True`` also counts the
window-limited period by (8) to (12), which replaces the 1 in E[X] by 1/2 + b/4; for b = 2 this
equals (31).
"""

from tcpcast.models.pftk.chain import (
    AfterTimeout,
    ClosedFormError,
    FastRecovery,
    LaterLosses,
    WindowChain,
    closed_form_error,
    window_chain,
)
from tcpcast.models.pftk.closed_form import (
    TIMEOUTS_REGIME,
    TRIPLE_DUPLICATES_REGIME,
    WINDOW_REGIME,
    Throughput,
    approximate_rate_pps,
    tcp_friendly_loss_event_ratio,
    tcp_friendly_rate_pps,
    td_only_leading_rate_pps,
    td_only_rate_pps,
    throughput,
    tolerated_loss_ratio,
    tolerated_loss_ratio_approximate,
    unlimited_rounds,
    unlimited_window_pkts,
    window_limit_loss_ratio,
)
from tcpcast.models.pftk.path_domain_values import path_domain_values
from tcpcast.models.pftk.timeouts import (
    LINUX_MIN_RTO_MINUS_RTT_S,
    timeout_probability,
    timeout_probability_approximate,
    timeout_sequence_s,
)

__all__ = [
    "LINUX_MIN_RTO_MINUS_RTT_S",
    "TIMEOUTS_REGIME",
    "TRIPLE_DUPLICATES_REGIME",
    "WINDOW_REGIME",
    "AfterTimeout",
    "ClosedFormError",
    "FastRecovery",
    "LaterLosses",
    "Throughput",
    "WindowChain",
    "approximate_rate_pps",
    "closed_form_error",
    "path_domain_values",
    "tcp_friendly_loss_event_ratio",
    "tcp_friendly_rate_pps",
    "td_only_leading_rate_pps",
    "td_only_rate_pps",
    "throughput",
    "timeout_probability",
    "timeout_probability_approximate",
    "timeout_sequence_s",
    "tolerated_loss_ratio",
    "tolerated_loss_ratio_approximate",
    "unlimited_rounds",
    "unlimited_window_pkts",
    "window_chain",
    "window_limit_loss_ratio",
]
