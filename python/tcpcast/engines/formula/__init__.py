"""Engines that are formulas, which compute the results of a model immediately.

Every formula has an entry in :data:`FORMULAS`, with the name of its engine as the key.
:mod:`.engset` is for shared links, :mod:`.local_loop` for links of very many users.
:mod:`.path_formulas` and :mod:`.parallel` are for bulk flows on one path:
:mod:`.collect_inputs` provides their inputs, and :mod:`.rate_answers` converts their rate to an
answer.
"""

from __future__ import annotations

from tcpcast.engines.registry import PATH_FAMILY, TRANSFERS_FAMILY, USERS_FAMILY, Formula

_PACKAGE = "tcpcast.engines.formula"
_PATH_MODULE = f"{_PACKAGE}.path_formulas"
_PARALLEL_MODULE = f"{_PACKAGE}.parallel"
_LOCAL_LOOP_MODULE = f"{_PACKAGE}.local_loop"
_NEEDS_TRANSFERS = "one class of isolated transfers, with a specified or measured loss"
_NEEDS_USERS = "one class of on/off sources; runs by default only with stack max-plus-reno"
_NEEDS_RATE = "{} on a link with a rate, with Reno or NewReno and without random loss"
_NEEDS_BULK = "one class of bulk flows with a specified or measured loss"

FORMULAS: dict[str, Formula] = {
    "engset": Formula(
        f"{_PACKAGE}.engset",
        "engset",
        "revised TCP-Engset model: closed form for on/off sources that share a link",
        _NEEDS_RATE.format("on/off sources"),
        family=USERS_FAMILY,
        trust="rates if the mean file sizes of the classes differ by at most a factor of 3; "
        "queue and RTT if the mean queue is below the buffer; loss if, in addition, it is at most "
        "1 %",
        source="TCP-Engset, revisited: eq. 1 to 12",
        plot_style=("vermilion", 0),
    ),
    "engset-sizes": Formula(
        f"{_PACKAGE}.file_sizes",
        "engset_sizes",
        "TCP-Engset for one class, with the distribution of file sizes, the buffer and "
        "retransmissions",
        _NEEDS_RATE.format("on/off sources"),
        family=USERS_FAMILY,
        source="TCP-Engset, revisited: section 4.3; reflected Brownian motion",
        runs_by_default=False,
        plot_style=("purple", 2),
    ),
    "mathis": Formula(
        _PATH_MODULE,
        "mathis",
        "square-root law, limited to the receiver window per RTT",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="Mathis, Semke, Mahdavi, Ott 1997; PFTK (20)",
        accepts_measured=True,
        plot_style=("green", 3),
    ),
    "td-only": Formula(
        _PATH_MODULE,
        "td_only",
        "PFTK's model without timeouts and receiver window",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="PFTK (18), (19)",
        accepts_measured=True,
        plot_style=("black", 1),
    ),
    "pftk-approx": Formula(
        _PATH_MODULE,
        "pftk_approximate",
        "PFTK's approximate model, with timeouts and the receiver window",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="PFTK (32)",
        accepts_measured=True,
        controls=("reno", "tfrc"),
        plot_style=("vermilion", 3),
    ),
    "pftk": Formula(
        _PATH_MODULE,
        "pftk",
        "PFTK's full model, with timeouts and the receiver window",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="PFTK (31), Q of (23)",
        accepts_measured=True,
        plot_style=("vermilion", 0),
    ),
    "cubic-response": Formula(
        _PATH_MODULE,
        "cubic_response_function",
        "CUBIC's response function, whichever stack the scenario names, limited to the receiver "
        "window",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="RFC 9438, sections 4.3 and 5",
        accepts_measured=True,
        stack="cubic",
        plot_style=("purple", 1),
    ),
    "bbr-bound": Formula(
        f"{_PACKAGE}.bbr",
        "bbr",
        "upper bound for BBR version 1, whichever stack the scenario names: link rate times the "
        "share of delivered packets",
        "one class of bulk flows, a link with a rate",
        family=PATH_FAMILY,
        source="Cardwell et al. 2017; Hock et al. 2017",
        stack="bbr",
        is_upper_bound=True,
        plot_style=("orange", 2),
    ),
    "parallel": Formula(
        _PARALLEL_MODULE,
        "parallel",
        "rate of n parallel flows without a receiver window, from the loss events of each flow",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="Damjanovic, Welzl, Telek, Heiss 2008: algorithm 1",
        accepts_measured=True,
        plot_style=("sky", 4),
    ),
    "parallel-cumulative": Formula(
        _PARALLEL_MODULE,
        "parallel_from_aggregate_losses",
        "rate of n parallel flows without a receiver window, from the loss events of the aggregate",
        _NEEDS_BULK,
        family=PATH_FAMILY,
        source="Damjanovic, Welzl, Telek, Heiss 2008: algorithm 2",
        accepts_measured=True,
        plot_style=("sky", 5),
    ),
    "cardwell": Formula(
        f"{_PACKAGE}.cardwell",
        "cardwell",
        "latency of transfers: slow start, one recovery, and the remaining data at PFTK's rate",
        _NEEDS_TRANSFERS,
        family=TRANSFERS_FAMILY,
        source="Cardwell, Savage, Anderson 2000: eq. 25 without eq. 4",
        accepts_measured=True,
        plot_style=("purple", 1),
    ),
    "erlang": Formula(
        f"{_PACKAGE}.file_sizes",
        "erlang",
        "TCP-Erlang: processor sharing of transfers that arrive at random, with a limit per flow",
        _NEEDS_RATE.format("one class of transfers with arrivals"),
        family=TRANSFERS_FAMILY,
        trust="for sizes that vary no more than an exponential distribution, up to a load of 90 "
        "%; the error is within 15 %",
        source="Erlang 1917; Riedl, Bauschert, Perske, Probst 2000 (M/G/R-PS)",
        runs_by_default=False,
        plot_style=("vermilion", 1),
    ),
    "short": Formula(
        f"{_PACKAGE}.short_transfers",
        "short",
        "latency of short transfers for each number of losses; for a loss of at most 50 %, and "
        "30 losses per transfer on average",
        _NEEDS_TRANSFERS,
        family=TRANSFERS_FAMILY,
        source="Ayesta, Avrachenkov: eq. 1 and the recursion of section 2",
        accepts_measured=True,
        controls=("reno", "cubic"),
        plot_style=("vermilion", 0),
    ),
    "restart-sqrt": Formula(
        _LOCAL_LOOP_MODULE,
        "restart_sqrt",
        "square-root law, in which p counts losses and timeouts, or restarts after idle times "
        "if these are more frequent",
        _NEEDS_USERS,
        family=USERS_FAMILY,
        trust="if losses are rare; each answer warns about its limits",
        source="Baccelli, Hong, Liu 2001: eq. 1",
        accepts_measured=True,
        stack="max-plus-reno",
        plot_style=("purple", 1),
    ),
    "fair-share": Formula(
        _LOCAL_LOOP_MODULE,
        "fair_share",
        "equal shares of a link that users with think times fill",
        _NEEDS_USERS,
        family=USERS_FAMILY,
        trust="if the link is full and shared equally",
        source="Baccelli, Hong, Liu 2001: eq. 2",
        accepts_measured=True,
        stack="max-plus-reno",
        plot_style=("orange", 2),
    ),
    "overload-bound": Formula(
        _LOCAL_LOOP_MODULE,
        "overload_bound",
        "upper bound for the rate of a user of a full link",
        _NEEDS_USERS,
        family=USERS_FAMILY,
        trust="only as an upper bound",
        source="Baccelli, Hong, Liu 2001: eq. 3",
        accepts_measured=True,
        stack="max-plus-reno",
        is_upper_bound=True,
        plot_style=("black", 3),
    ),
}
"""Every formula engine, in the order of the report's columns."""
