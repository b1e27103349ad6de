"""Reproduction of the fixed point: settings, measures, and the columns of Table 3."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_parts import own
from tcpcast.answer import Answer, Metric, Status
from tcpcast_papers.fixed_point import implied_loss, littles_law
from tcpcast_papers.fixed_point.measures import (
    MAX_RTT_S,
    WITHOUT_OWN_LINK,
    SettingAnswers,
    failed_test_remarks,
    measure_quantity,
    tolerance_of_value,
)
from tcpcast_papers.fixed_point.published import CONGESTED, IDLE_RTT_S, POPULATIONS
from tcpcast_papers.fixed_point.runs import (
    PAGE_SCHEMES,
    IteratedLength,
    Job,
    Runs,
    SampleSizes,
    fixed_point_job,
    reference_flows,
)
from tcpcast_papers.fixed_point.schemes import mean_over_seeds
from tcpcast_papers.fixed_point.settings import NOISES, Ftp, Length, LocalLoop, Noise
from tcpcast_papers.fixed_point.tables import (
    HEADS_IN_SERVICE,
    case_section,
    heads_in_service_job,
    loop_job,
)
from tcpcast_papers.page import further_value_texts
from tcpcast_papers.reproduction import Printed, Verdict
from tcpcast_papers.runner import known_differences

SHORT = Length(20.0, 20.0, 2)
SMALL = SampleSizes(
    checked=Length(25.0, 45.0, 2),
    varied=Length(10.0, 40.0, 1),
    variance=Length(20.0, 20.0, 1),
    ftp=Length(500.0, 100.0, 2),
    fixed_loop=IteratedLength(Length(15.0, 5.0, 1), steps=5, step_s=4, reference_flows=50),
    fixed_ftp=IteratedLength(Length(250.0, 50.0, 1), steps=5, step_s=40, reference_flows=2),
    schemes=PAGE_SCHEMES,
    curve=(2500, 7500, 10_000),
    blocks_pkts=(5, 20),
    traced_s=40.0,
    seeds=(1, 2),
    scheme_tables={1: PAGE_SCHEMES, 3: PAGE_SCHEMES},
    scanned=Length(10.0, 40.0, 1),
)


def nothing(_: float) -> None:
    """Ignore progress."""


def test_local_loop_has_the_paper_s_parameters() -> None:
    scenario = LocalLoop(5000).scenario(SHORT, {})
    (people,) = scenario.populations
    assert people.count == 5000
    # Except for the 0.13 ms of two routers without a queue.
    assert people.rtt_s == pytest.approx(IDLE_RTT_S, abs=1e-4)
    assert scenario.buffer_pkts == 10_000
    assert scenario.network.bottleneck.rate_bps == 100e6
    assert scenario.tcp.receiver_window == 40
    assert scenario.run.replications == 2
    assert scenario.run.duration_s == 40.0


def test_backbone_router_has_the_printed_rate_buffer_and_load() -> None:
    scenario = LocalLoop(2500, noise=NOISES[3]).scenario(SHORT, {})
    assert scenario.network.buffer_pkts(scenario.network.hops[0]) == 10_000
    assert scenario.network.hops[0].rate_bps == 80e6
    assert NOISES[3] == Noise(100)


@pytest.mark.parametrize("runs", ["quick", "whole"])
def test_differences_of_table_5_have_no_known_cause(runs: str) -> None:
    known = known_differences("tcpcast_papers.fixed_point", runs)
    reasons = {
        each.reason
        for each in known
        if each.section == "Table 5" and each.label not in {("RTT", "7500"), ("RTT", "10000")}
    }
    assert len(reasons) == 1
    assert reasons.pop().startswith("the cause is not known")


def test_rates_of_tables_3_to_6_imply_losses_plus_timeouts() -> None:
    (compute,) = implied_loss.SECTIONS
    part = compute(Runs(SMALL), Path())
    wrong = {row.label[1] for row in part.rows if row.verdict is Verdict.INCONSISTENT}
    assert wrong == {"FPWI-5", "FPWI-10", "NSFS-150"}
    assert [row.verdict for row in part.rows[8:]] == [Verdict.AGREES] * 16
    assert "disagrees in 5" in part.remarks[0]
    assert implied_loss.contradiction_text(1, "FPWI-5") == "the send rate implies 2.80 to 3.26 %"


def test_means_over_seeds_have_intervals() -> None:
    answers = [answer(loss_ratio=loss) for loss in (0.04, 0.05, 0.06)]
    metric = mean_over_seeds("loss", answers, 100)
    assert metric is not None
    assert metric.value == pytest.approx(5.0)
    # Student's t with two degrees of freedom: 4.303 / sqrt(3).
    assert metric.high == pytest.approx(5.0 + 4.303 / math.sqrt(3), rel=1e-3)
    single = mean_over_seeds("loss", answers[:1], 100)
    assert single is not None
    assert single.value == pytest.approx(4.0)
    assert single.low is None
    assert mean_over_seeds("rtt", answers, 100) is None


def answer(**metrics: float) -> Answer:
    levels = {
        "share": np.array([0.95, 0.9, 0.8, 0.5]),
        "goodput_bps": np.array([35e3, 36e3, 37e3, 38e3]),
        "low": np.array([34e3, 35e3, 36e3, np.nan]),
        "high": np.array([36e3, 37e3, 38e3, np.nan]),
    }
    result = {name: Metric(figure, 0.9 * figure, 1.1 * figure) for name, figure in metrics.items()}
    return Answer("packet", metrics=result, tables={"file_goodput": levels})


FOUND = answer(
    loss_ratio=0.04,
    timeout_ratio=0.002,
    idle_restart_ratio=0.016,
    rtt_mean_s=1.2,
    connection_rate_bps=40e3,
    send_rate_pps=8800.0,
    goodput_pps=8000.0,
    queue_mean_pkts=8000.0,
)


@pytest.mark.parametrize(
    ("quantity", "figure"),
    [
        ("loss", 4.0),
        ("timeouts", 0.2),
        ("idleness", 1.6),
        ("rtt", 1.2),
        ("goodput", 40.0),
        ("send_rate", 44.0),
        ("goodput_each", 80.0),
        ("send_rate_each", 88.0),
        ("g_95", 35.0),
        ("g_50", 38.0),
    ],
)
def test_measures_are_in_the_paper_s_units(quantity: str, figure: float) -> None:
    metric = measure_quantity(quantity, FOUND, 100)
    assert metric is not None
    assert metric.value == pytest.approx(figure)
    if quantity == "g_50":
        assert metric.missing_interval == "too few observations"
    elif quantity != "g_95":
        assert (metric.low, metric.high) == pytest.approx((0.9 * figure, 1.1 * figure))
    else:
        assert (metric.low, metric.high) == pytest.approx((34, 36))


def test_loss_includes_all_links() -> None:
    links = {
        "link": np.array(["ingress", "backbone", "loop"]),
        "packets": np.array([201, 200, 190]),
        "loss_ratio": np.array([0.0, 10 / 200, 4 / 190]),
    }
    metric = measure_quantity("loss", replace(FOUND, tables={"by_link": links}), 100)
    assert metric is not None
    assert metric.value == pytest.approx(7.0)
    assert metric.missing_interval == "the loss is a sum over two routers"


def test_other_values_agree_within_share_or_digits() -> None:
    assert tolerance_of_value("goodput", Printed("41.9"), 0.05).admits(39.9, Printed("41.9"))
    assert not tolerance_of_value("goodput", Printed("41.9"), 0.05).admits(39.7, Printed("41.9"))
    assert tolerance_of_value("loss", Printed("0.00"), 0.05).admits(0.004, Printed("0.00"))


def test_rtt_difference_is_explained_by_own_link() -> None:
    figures = SettingAnswers(replace_intervals(FOUND), 100, has_one_queue=True)
    row = figures.row("rtt", ("100",), Printed("1.10"), relative=0.03)
    assert row.verdict is Verdict.EXPLAINED
    assert row.cause is not None
    assert row.cause.reason == WITHOUT_OWN_LINK
    more = replace(figures, has_one_queue=False)
    assert more.row("rtt", ("100",), Printed("1.10"), relative=0.03).cause is None


def test_cause_requires_the_printed_value() -> None:
    figures = SettingAnswers(replace_intervals(FOUND), 100, has_one_queue=True)
    row = figures.row("rtt", ("100",), Printed("1.00"), relative=0.03)
    assert row.cause is None
    assert row.verdict is Verdict.DIFFERS
    assert figures.row("loss", ("100",), Printed("1.10"), relative=0.03).explained_by is None


def test_withheld_fixed_points_are_in_brackets() -> None:
    other = answer(loss_ratio=0.08)
    withheld = replace(other, status=Status.PARTIAL, reason="no fixed point was reached")
    figures = SettingAnswers(
        replace_intervals(FOUND), 100, others=(other, withheld, Answer("packet"))
    )
    row = figures.row("loss", ("100",), Printed("6.00"), relative=0.05)
    assert row.verdict is Verdict.DIFFERS
    assert row.others[:2] == pytest.approx((8.0, 8.0))
    assert further_value_texts(row) == ("8.00", "(8.00)", "–")
    assert figures.row("loss", ("100",), Printed("6.00"), relative=None).verdict is Verdict.SHOWN


def replace_intervals(result: Answer) -> Answer:
    bare = {name: Metric(metric.value) for name, metric in result.metrics.items()}
    return replace(result, metrics=bare)


def test_failed_reference_flows_report_their_tests() -> None:
    columns = {"metric": ["rtt_mean_s", "loss_ratio"], "value": [2.0, 0.1]}
    ends = {"low": [1.9, math.nan], "high": [2.1, math.nan]}
    table = {name: np.array(column) for name, column in (columns | ends).items()}
    why = "no fixed point was reached (failed tests: own queue differs by +122 %)"
    tests = {"what": np.array(["loss", "own queue"]), "passed": np.array([True, False])}
    tables = {"reference_flows": table, "convergence": tests}
    result = Answer("fixed-point", tables=tables, status=Status.PARTIAL, reason=why)
    flows = reference_flows(result)
    assert flows.metrics["rtt_mean_s"] == Metric(2.0, 1.9, 2.1)
    assert flows.metrics["loss_ratio"].value == 0.1
    assert flows.metrics["loss_ratio"].missing_interval == "too few observations"
    assert reference_flows(FOUND) is FOUND
    short = Answer("fixed-point", status=Status.PARTIAL, reason="run.max_wall was reached")
    (reason,) = failed_test_remarks(
        {
            "Scheme 2": {"N = 5000": flows, "N = 2500": FOUND, "N = 7500": short},
            "Scheme 1": {"N = 2500": FOUND},
        }
    )
    assert reason.endswith("Scheme 2: N = 5000: own queue; N = 7500: run.max_wall was reached.")
    assert failed_test_remarks({"Scheme 1": {"N = 2500": FOUND}}) == []


@pytest.fixture(scope="module")
def measured() -> Runs:
    """Only the columns of Table 3, long enough to give the paper's values."""
    runs = Runs(SMALL)
    for sources in POPULATIONS:
        job = loop_job(1, sources, SMALL)
        runs.request(job)
        for scheme in PAGE_SCHEMES:
            runs.request(fixed_point_job(job, SMALL, scheme))
    for sources in CONGESTED:
        runs.request(heads_in_service_job(sources, SMALL))
    runs.simulate()
    return runs


def test_per_flow_overload_has_measured_goodput_and_rtt_bound(measured: Runs) -> None:
    part = case_section(measured, case=1)
    assert own(part, "goodput", "7500") == pytest.approx(40.0, rel=0.04)
    assert 1.2 < own(part, "RTT", "7500") <= MAX_RTT_S
    assert own(part, "loss", "7500") > 3
    assert own(part, "loss", "2500") == 0
    (row,) = [r for r in part.rows if r.label == ("RTT", "7500")]
    assert row.verdict is not Verdict.AGREES
    assert "at most 1.303 s" in row.note


@pytest.mark.parametrize("sources", CONGESTED)
def test_rtt_in_overload_exceeds_littles_law_only_if_first_packets_occupy_no_buffer(
    measured: Runs, sources: int
) -> None:
    (row,) = [r for r in case_section(measured, case=1).rows if r.label == ("RTT", str(sources))]
    assert row.explained_by is not None
    assert row.explained_by.reason == HEADS_IN_SERVICE
    assert row.own is not None
    assert row.own <= MAX_RTT_S < row.explained_by.own


def test_every_flow_obeys_littles_law(measured: Runs) -> None:
    (compute,) = littles_law.SECTIONS
    part = compute(measured, Path())
    for sources in POPULATIONS:
        result, distribution = (
            own(part, name, str(sources)) for name in ("measured", "by Little's law")
        )
        # Within the wait at a source's own link, and the length of the run. Packets that are pushed
        # out, and those retransmitted after a timeout, have waited, but have no round trip.
        assert distribution - 0.05 < result < distribution + 0.025


def test_job_runs_its_named_scheme() -> None:
    length = IteratedLength(Length(2.0, 1.0, 1), steps=2, step_s=1, reference_flows=3)
    for scheme, number, conditional in (("2", 2, False), ("1, conditional", 1, True)):
        result = Job(LocalLoop(100), length, scheme).run(nothing)
        assert result.engine == "fixed-point"
        reported = (result.provenance["scheme"], result.provenance["conditional"])
        assert reported == (number, conditional)
        assert (result.provenance["references"], result.provenance["iterations"]) == ([3], 2)


def test_unsupported_scenarios_report_the_reason() -> None:
    length = IteratedLength(Length(2.0, 1.0, 1), steps=2, step_s=1, reference_flows=3)
    result = Job(LocalLoop(100, rule="C", traced=True), length, "2").run(nothing)
    assert result.not_applicable is None
    newreno = Job(Ftp("individual", 5, "rfc-newreno"), length, "2").run(nothing)
    assert newreno.not_applicable is not None
    assert "the packet engine" in newreno.not_applicable
