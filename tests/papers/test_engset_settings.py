"""The paper's names of settings are converted to scenarios."""

from dataclasses import replace

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario.traffic import OnOff
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.engset.theory import solve_model, with_load


def test_setting_parses_the_name_in_table_7() -> None:
    parsed = read_setting("F12-N134-10M2M-R50-EE(7)-W44-B150")
    assert parsed.name == "F12-N134-10M2M-R50-EE(7)-W44-B150"
    assert parsed.connections == 800_000
    scenario = parsed.scenario()
    (people,) = scenario.populations
    assert people.count == 134
    assert people.rtt_s == pytest.approx(0.0498048)
    assert people.ingress.rate_bps == 100e6
    assert scenario.network.bottleneck.rate_bps == 10e6
    assert people.egress.rate_bps == 2e6
    assert scenario.network.buffer_pkts(scenario.network.bottleneck) == 150
    assert scenario.tcp.receiver_window == 44
    assert scenario.tcp.initial_window == 2
    assert not scenario.tcp.delayed_acks
    assert scenario.tcp.min_rto_s == 1
    assert scenario.tcp.rules.timer_restart == "send"
    assert scenario.tcp.rules.slow_start_at_ssthresh
    assert isinstance(people.traffic, OnOff)
    assert people.traffic.off.mean_value() == 1
    assert people.traffic.size.mean_value() == 12
    assert scenario.run.transfers == 800_000


@pytest.mark.parametrize("name", ["10M2M-R50", "2M10M100M-R50"])
def test_every_10m2m_has_one_base_rtt_without_the_transmission_of_acks(name: str) -> None:
    parsed = read_setting(f"F12-N134-{name}")
    assert parsed.simulated_rtt_ms == pytest.approx(50 - 0.16 - 0.032 - 0.0032, abs=1e-9)
    assert replace(parsed, base_rtt_ms=49.999).scenario().populations[0].rtt_s == 0.049999
    # The model keeps RTT0: 180 ms for 12 packets.
    assert solve_model(parsed).on_time_s > 0.18


@pytest.mark.parametrize(("load", "sources"), [(0.8, 66), (1.0, 82), (1.2, 98), (1.4, 115)])
def test_at_load_gives_sources_of_table_6_and_figure_13(load: float, sources: int) -> None:
    assert with_load(read_setting("F12-N1-10M2M-R50"), load).sources == sources


def test_at_load_gives_sources_and_load_of_table_4() -> None:
    parsed = with_load(read_setting("F12-N1-10M1G-R50"), 1.0)
    assert parsed.sources == 80
    assert round(100 * solve_model(parsed).offered_load, 1) == 99.7


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("F12-N134-10M2M-R50-L6.3%", "cannot read 'L6.3%'"),
        ("F12-N134-10M2M-R50-F13", "mean_size_pkts twice"),
        ("N134-10M2M-R50", "lacks mean_size_pkts; add a token such as F12"),
        ("F12-10M2M-R50", "lacks sources"),
        ("F12-N134-10M-R50", "needs the rates of bottleneck and egress"),
        ("F12-N134-10M2M", "needs either R"),
        ("F12-N134-10M2M-R50-D300", "needs either R"),
    ],
)
def test_invalid_settings_report_the_reason(name: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_setting(name)
    assert complaint in str(error.value)
