"""Send rates, goodputs and losses of the paper's tables: the two rates imply the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import QUANTITY_LABELS
from tcpcast_papers.fixed_point.published import printed_cells
from tcpcast_papers.reproduction import Printed, Row, Section, Tolerance, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.fixed_point.runs import Runs

TABLES = (1, 2, 3, 4, 5, 6)


def implied_loss_percent(sent: Printed, delivered: Printed) -> tuple[float, float, float]:
    """Return 1 - goodput/send rate in %, and its lower and upper limit by rounding in print."""
    values = (
        (sent.value, delivered.value),
        (sent.value - sent.half_digit, delivered.value + delivered.half_digit),
        (sent.value + sent.half_digit, delivered.value - delivered.half_digit),
    )
    value, low, high = (100 * (1 - goodput / rate) for rate, goodput in values)
    return value, low, high


def _section(runs: Runs, _: Path) -> Section:
    section = runs.section("Rates and losses", ("table", "column"), others=("loss alone",))
    section.rows = [
        row
        for number in TABLES
        for row in [_implied_loss_row(number, column) for column in printed_cells(number)["loss"]]
    ]
    outside = sum(
        not low - 0.005 <= alone <= high + 0.005
        for row in section.rows
        if row.label[0] not in {"Table 1", "Table 2"}
        for alone, low, high in [(row.others[0] or 0.0, row.low or 0.0, row.high or 0.0)]
    )
    section.remarks = [
        "tcpcast computes 1 - goodput/send rate from the printed rates; the interval contains "
        "their rounding errors. Published values are the sum of the printed losses and timeouts. "
        "In Tables 3 to 6, this sum agrees in every column. The loss alone disagrees in "
        f"{outside}, because each timeout also retransmits a packet. In columns FPWI-5, FPWI-10 "
        "and NSFS-150 of Tables 1 and 2, the losses contradict the rates.",
    ]
    return section


def contradiction_text(number: int, column: str) -> str:
    """Return the contradiction between rates and losses of a column; "" if there is none."""
    row = _implied_loss_row(number, column)
    if row.verdict is not Verdict.INCONSISTENT:
        return ""
    return f"the send rate implies {row.low:.2f} to {row.high:.2f} %"


def _implied_loss_row(number: int, column: str) -> Row:
    rates = ("send_rate_each", "goodput_each") if number in {1, 2} else ("send_rate", "goodput")
    sent, goodput, loss, timeouts = (
        printed_cells(number)[name][column] for name in (*rates, "loss", "timeouts")
    )
    value, low, high = implied_loss_percent(sent, goodput)
    total = Printed(f"{loss.value + timeouts.value:.2f}")
    rounding = Tolerance(absolute=max(high - value, value - low) + 2 * loss.half_digit)
    wrong = not rounding.admits(value, total)
    return Row(
        (f"Table {number}", column),
        QUANTITY_LABELS["loss"][1],
        total,
        value,
        low,
        high,
        tolerance=rounding,
        fixed_verdict=Verdict.INCONSISTENT if wrong else None,
        note="the rates contradict the loss" * wrong,
        others=(loss.value,),
    )


SECTIONS = (_section,)
