"""Parameters and rules that the paper leaves open: columns of the tables after one change each.

Each line of ``variants.csv`` simulates a column of Table 3 or 6 with one change. The sections
compare all values of these columns with the printed values.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import MAX_RTT_S, QUANTITY_LABELS, measure_quantity
from tcpcast_papers.fixed_point.published import published_table
from tcpcast_papers.fixed_point.runs import WHOLE, Job, fixed_point_job, reference_flows
from tcpcast_papers.fixed_point.settings import LocalLoop
from tcpcast_papers.fixed_point.tables import SPREADS, THRESHOLD_USERS
from tcpcast_papers.printed import QUICK as QUICK_RUNS
from tcpcast_papers.printed import WHOLE as WHOLE_RUNS
from tcpcast_papers.printed import lines_of_runs
from tcpcast_papers.reproduction import NotSelected, Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import Runs
    from tcpcast_papers.printed import Line


def _published_lines(runs: Runs) -> tuple[Line, ...]:
    of = WHOLE_RUNS if runs.sample_sizes == WHOLE else QUICK_RUNS
    return lines_of_runs("tcpcast_papers.fixed_point", "variants.csv", of)


def _variant_job(line: Line, runs: Runs) -> Job:
    """Return the simulation of a line; an empty cell is the default."""
    spread = SPREADS.get(line["sources"])
    setting = LocalLoop(THRESHOLD_USERS if spread else int(line["sources"]), rule=line["rule"])
    if spread:
        setting = replace(setting, size_spread=spread[0], think_spread=spread[1])
    if line["tick"]:
        setting = replace(setting, tick_s=float(line["tick"]))
    if line["head_of_line"]:
        setting = replace(setting, head_of_line=line["head_of_line"])
    if line["rounding"]:
        setting = replace(setting, rounding=line["rounding"])
    job = Job(setting, runs.sample_sizes.scanned)
    return fixed_point_job(job, runs.sample_sizes, line["reading"]) if line["reading"] else job


def request(runs: Runs) -> None:
    """Request every line."""
    for line in _published_lines(runs):
        runs.request(_variant_job(line, runs))


def _section(runs: Runs, _: Path, *, title: str) -> Section:
    section = runs.section(title, ("quantity", "column", "variant"))
    lines = [line for line in _published_lines(runs) if line["section"] == title]
    if not lines:
        raise NotSelected
    quantities = dict.fromkeys(
        each["quantity"] for line in lines for each in published_table(_table_number(line))
    )
    for quantity, line in product(quantities, lines):
        label = (QUANTITY_LABELS[quantity][0], line["sources"], line["variant"])
        section.rows += runs.row(label, _variant_row, quantity, line, runs)
    section.remarks = [_REMARKS[title]]
    return section


def _table_number(line: Line) -> int:
    return int(line["table"])


def _variant_row(quantity: str, line: Line, runs: Runs) -> Row | None:
    job = _variant_job(line, runs)
    metric = measure_quantity(quantity, reference_flows(runs[job]), job.setting.flows)
    printed = (
        published_table(_table_number(line)).line_with(quantity=quantity).printed(line["sources"])
    )
    if metric is None or printed is None:
        return None
    label = (QUANTITY_LABELS[quantity][0], line["sources"], line["variant"])
    return Row.from_metric(label, QUANTITY_LABELS[quantity][1], printed, metric)


_REMARKS = {
    "Head of the line": (
        "The aggregated service time of section 5.2 begins when a packet is the first of its own "
        "flow. In buffer: every packet in the router occupies the buffer, so Little's law limits "
        f"the RTT to {MAX_RTT_S:.3f} s. In service: the first packet of each flow occupies no "
        "buffer, so an active flow holds one packet more. In overload, loss and RTT of every flow "
        "are then closer to the printed values, and scheme 2 gives the RTT at 10000 users, the "
        "goodputs and the send rates. Against this reading, scheme 2 loses too few packets, "
        "timeouts almost vanish at 10000 users, and most values of section 6 are further away."
    ),
    "Retransmission after a timeout": (
        "In the paper, 1 - goodput/send rate equals losses plus timeouts: see the section on rates "
        "and losses. A timeout thus retransmits a packet that is not lost. The copies fill the "
        "buffer and cause more timeouts."
    ),
    "Timer granularity": (
        "The paper lists TCPtick as a parameter of the protocol, without its value. The "
        "retransmission timeout is srtt + max(TCPtick, 4 rttvar), but at least one second."
    ),
    "Rounding of file sizes": (
        "Sizes are drawn from a continuous distribution. If they are rounded down, files are half "
        "a packet shorter on average, and the load is lower."
    ),
    "Readings of scheme 1": (
        "Scheme 1 delays the packets of a cross flow so that its queue has the distribution of the "
        "reference flow's queue. *delay*: a delayed packet does not delay later packets, so the "
        "rate is unchanged. *cap*: a delay postpones all later packets. *fill*: a flow also sends "
        "whenever its queue is below a random length. The engine and the tables use *delay*, "
        "because the losses and timeouts of this rule are closest to the paper's at 7500 users, "
        "and because it depends least on the number of reference flows. No rule gives the paper's "
        "RTTs."
    ),
}


SECTIONS = tuple(partial(_section, title=title) for title in _REMARKS)
