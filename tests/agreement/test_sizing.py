"""Host settings that a path requires, against values computed by hand."""

from typing import Any

import pytest
import tcpcast
from tcpcast.engines.formula.path_requirements import (
    PathRequirements,
    compute_path_requirements,
    flows_to_fill_text,
    lossy_buffer_text,
    path_requirement_texts,
    time_for_amount_s,
    time_for_amount_text,
)
from tcpcast.scenario import Scenario


def path(
    *,
    rate: str = "10gbit",
    rtt: str = "138ms",
    loss: str = "0.001%",
    flows: int = 16,
    stack: str = "linux-cubic",
) -> Scenario:
    tables: dict[str, Any] = {
        "network": {"rtt": rtt, "bottleneck": {"rate": rate, "buffer": "1bdp", "loss": loss}},
        "traffic": {"kind": "bulk", "flows": flows},
        "tcp": {"stack": stack},
        "run": {"duration": "60s"},
    }
    return Scenario.from_dict(tables)


def sizing(**changes: Any) -> PathRequirements:
    result = compute_path_requirements(path(**changes))
    assert result is not None
    return result


def test_window_of_each_flow_is_its_part_of_the_bdp() -> None:
    result = sizing()
    assert result.bdp_bytes == pytest.approx(172.5e6)
    assert result.bdp_pkts == pytest.approx(115_000)
    assert result.window_pkts == 7188  # 7187.5
    assert result.window_bytes == 7188 * 1448


def test_socket_buffers_keep_the_link_full_after_reductions() -> None:
    result = sizing()
    # 7187.5/0.7 packets: CUBIC keeps 70 % of them (RFC 9438), which still fill the link.
    assert result.full_window_pkts == 10_268
    assert result.full_window_bytes == 10_268 * 1448
    assert result.socket_buffer_bytes == 2 * 10_268 * 1448
    assert sizing(stack="linux-reno").full_window_pkts == 14_375  # half remains
    assert sizing(stack="linux-bbr").full_window_pkts == 14_375  # two BDP in flight


def test_keys_are_at_least_the_defaults_of_linux_6_16() -> None:
    small = sizing(rate="20mbit", rtt="60ms", flows=1)
    assert small.tcp_rmem == (4096, 131_072, 33_554_432)
    assert small.tcp_wmem == (4096, 16_384, 4_194_304)
    large = sizing(flows=1)
    assert large.tcp_rmem[2] == large.tcp_wmem[2] == large.socket_buffer_bytes > 33_554_432


@pytest.mark.parametrize(
    ("rate", "wmem", "rmem"),
    [
        ("120mbit", None, None),  # 4.14 MB of socket buffers
        ("200mbit", 6_895_376, "before"),
        ("160mbit", 5_516_880, None),  # more than tcp_wmem allows and less than any tcp_rmem
        ("1gbit", 34_476_880, "always"),  # more than 32 MiB
    ],
)
def test_too_small_keys_are_named_with_the_version(
    rate: str, wmem: int | None, rmem: str | None
) -> None:
    result = sizing(rate=rate, rtt="100ms", flows=1)
    (message,) = path_requirement_texts(result)[1:]
    if wmem is None:
        assert "the defaults of tcp_rmem and tcp_wmem are large enough" in message
        return
    assert f": set {'net.ipv4.tcp_rmem' if rmem == 'always' else 'net.ipv4.tcp_wmem'}=" in message
    assert f"net.ipv4.tcp_wmem=4096 16384 {wmem}" in message
    assert ("net.ipv4.tcp_rmem" in message) == (rmem is not None)
    assert ("before Linux 6.16, also set net.ipv4.tcp_rmem" in message) == (rmem == "before")


def test_window_is_limited_to_one_gibibyte() -> None:
    """Regression: the recommended keys exceeded the 32 bits that Linux accepts."""
    result = sizing(rate="100gbit", rtt="100ms", flows=1, loss="0%")
    assert result.full_window_bytes == 1_190_477 * 1448
    assert result.socket_buffer_bytes == 2 * 65_535 * 2**14
    assert result.tcp_rmem[2] == result.tcp_wmem[2] == result.socket_buffer_bytes < 2**31
    # 1.207 GB fill the link, and 1.724 GB keep it full; the largest window has 1.0737 GB.
    assert result.cubic_flows == result.bbr_flows == 2
    windows, buffers = path_requirement_texts(result)
    assert "2 flows are needed to keep the link full after a loss, and 2 to fill it" in windows
    assert "For a window of 1 GiB, Linux needs socket buffers of 2.15 GB" in buffers
    assert f"net.ipv4.tcp_rmem=4096 131072 {2 * 65_535 * 2**14} and" in buffers
    more = path_requirement_texts(sizing(rate="200gbit", rtt="100ms", flows=3, loss="0%"))[0]
    assert more.endswith("At least 4 flows are needed to keep the link full after a loss.")
    assert "1 GiB" not in path_requirement_texts(sizing(rate="40gbit", flows=1))[0]


def test_defaults_allow_the_send_buffer_per_round_trip() -> None:
    """Regression: half of it, although a simulation with these buffers was twice as fast."""
    assert sizing().default_rate_bps == pytest.approx(16 * 8 * 4_194_304 / 0.138)
    link = 20e6 * 1448 / 1500
    assert sizing(rate="20mbit", rtt="60ms", flows=1).default_rate_bps == pytest.approx(link)


def test_cubic_streams_follow_the_response_function() -> None:
    # A window of 115,000 packets; one CUBIC flow has 1.17 (RTT/p)^(3/4) with RFC 9438's beta.
    window = (0.4 * 3.7 / (4 * 0.3)) ** 0.25 * (0.138 / 1e-5) ** 0.75
    result = sizing()
    assert result.cubic_flows == pytest.approx(115_000 / window, abs=1)
    assert result.bbr_flows == 1
    assert (
        flows_to_fill_text(result)
        == f"To fill the link, use {result.cubic_flows} flows of CUBIC or 1 of BBR."
    )


def test_number_of_flows_respects_the_windows_of_the_scenario() -> None:
    """Regression: "use 2 flows" of 4 packets each filled a fifth of a link with a BDP of 39."""
    lossy = path(rate="5.617mbit", rtt="81.59ms", flows=1, loss="0.2%")
    wide = compute_path_requirements(lossy)
    small = compute_path_requirements(lossy.with_changes({"tcp.receiver_window": 4}))
    assert wide is not None
    assert small is not None
    assert (wide.cubic_flows, wide.bbr_flows) == (2, 1)
    assert small.allowed_window_bytes == 4 * 1448
    assert small.cubic_flows == small.bbr_flows == 10  # 38.2 packets in flight, 4 of each flow
    text = "To fill the link with windows of at most 5.79 KB, use 10 flows of CUBIC or 10 of BBR."
    assert flows_to_fill_text(small) == text
    buffers = lossy.with_changes({"tcp.socket_buffers": {"send": "40KB", "receive": "64KB"}})
    limited = compute_path_requirements(buffers)
    assert limited is not None
    assert limited.allowed_window_bytes == buffers.populations[0].tcp.max_window_bytes[0] == 40_000
    # Of a tenth of the link's rate, four packets are the cause here, not loss.
    assert lossy_buffer_text(wide, lossy, 540e3) is not None
    assert lossy_buffer_text(small, lossy, 540e3) is None


def test_time_of_an_amount_is_not_derived_from_a_run_of_slow_start() -> None:
    """Regression: 1 GB took 179 s at the goodput of a first second, but 451 s when simulated."""
    start = path(rate="171mbit", rtt="15ms", flows=1, loss="0.24%").with_changes(
        {"run.duration": "0.84s", "run.warmup": "0s", "run.replications": 2}
    )
    amounts = {}
    for name, scenario in {
        "start": start,
        "steady": start.with_changes({"run.warmup": "0.2s"}),
    }.items():
        answers = tcpcast.run(scenario, ["packet"])
        amounts[name] = answers.to_json()["sizing"]["amount_s"]
        assert ("1 GB takes" in str(answers)) == (amounts[name] is not None)
    assert amounts["start"] is None
    assert amounts["steady"] > 100


def test_bbr_does_not_fill_the_link_above_20_percent_loss() -> None:
    result = sizing(loss="25%")
    assert result.bbr_flows is None
    assert "BBR does not fill the link, because the loss is above 20 %" in flows_to_fill_text(
        result
    )


def test_transfer_time_of_an_amount_excludes_start_up_if_classic() -> None:
    classic = path(stack="rfc-newreno")
    assert (
        time_for_amount_text(classic, 1e9, 1e9)
        == "1 GB over 16 flows takes 8 s at this goodput, not including the start-up."
    )
    assert time_for_amount_text(classic, 1e9, float("nan")) == ""


def test_transfer_time_of_an_amount_includes_linux_slow_start() -> None:
    # 100 Mbit/s of payload are 8632 packets/s, 863 in 100 ms: windows of 10, 20, ... 640. From the
    # eighth round on the link is busy: (6906 - 1270) packets and a round trip for the last.
    one = path(rate="1gbit", rtt="100ms", flows=1)
    pps = 100e6 / 8 / 1448
    expected = 0.7 + (10e6 / 1448 - 1270 - 1) / pps + 0.1
    assert time_for_amount_s(one, 10e6, 100e6) == pytest.approx(expected, rel=1e-6)
    assert time_for_amount_text(one, 10e6, 100e6).endswith(
        ", including slow start from 10 packets."
    )
    # Four flows have a quarter of the data each, and a separate slow start.
    assert time_for_amount_s(
        path(rate="1gbit", rtt="100ms", flows=4), 40e6, 400e6
    ) == pytest.approx(expected)


def test_transfer_time_of_an_amount_is_limited_by_the_link() -> None:
    """Regression: the initial windows of a million flows carried 1 GB in one round trip."""
    many = path(rate="1gbit", rtt="100ms", flows=10**6)
    payload_bps = 1e9 * 1448 / 1500
    expected = 0.1 + 8 * (1e9 - 1448) / payload_bps
    assert time_for_amount_s(many, 1e9, payload_bps) == pytest.approx(expected)


def test_streams_are_unknown_where_timeouts_lower_the_rate() -> None:
    """With 10 % loss, CUBIC's formula gave 22 flows, which use 60 % of the link."""
    lossy = sizing(rate="20mbit", rtt="50ms", flows=1, loss="10%")
    assert lossy.cubic_flows is None
    assert flows_to_fill_text(lossy) == "To fill the link, use 1 flow of BBR."
