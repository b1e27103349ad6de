"""``tcpcast link``: refusals before anything runs, and interpretation of its options."""

from pathlib import Path
from typing import Any

import pytest
from tcpcast.cli import link, main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the list of links that would run; none is started."""
    result: list[dict[str, Any]] = []

    def _run(link_config: dict[str, Any], *_: object, **__: object) -> None:
        result.append(link_config)
        raise SystemExit(0)

    monkeypatch.setattr(link, "_run_program", _run)
    return result


def link_config(links: list[dict[str, Any]], *arguments: str) -> dict[str, Any]:
    with pytest.raises(SystemExit):
        main(["link", *arguments])
    return links.pop()


def test_link_has_the_simulator_configuration(links: list[dict[str, Any]]) -> None:
    given = link_config(links, "--rtt", "60ms", "--rate", "20mbit", "--", "ping", "-c", "3", "x")
    config = given["config"]
    # Half of 60 ms minus the transmission of 1500 and 40 bytes at 20 Mbit/s, in each direction.
    assert config["classes"][0]["forward_ns"] == config["classes"][0]["back_ns"] == 29_692_000
    assert (config["bottleneck_bps"], config["buffer_pkts"]) == (20_000_000, 100)
    assert given["near"] == ["ping", "-c", "3", "x"]
    assert (given["both_ways"], given["mtu"], given["sender"]) == (True, 1500, "near")


def test_single_word_is_a_shell_command(
    links: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/some-shell")
    assert link_config(links, "--rtt", "1ms", "--", "a | b")["near"] == ["/bin/sh", "-c", "a | b"]
    assert link_config(links, "--rtt", "1ms")["near"] == ["/bin/some-shell"]


def test_options_override_the_scenario(links: list[dict[str, Any]], tmp_path: Path) -> None:
    given = link_config(links, "web-10mbit", "--rtt", "80ms", "--set", "network.packet=1000B", "--")
    assert given["config"]["bottleneck_bps"] == 10_000_000
    assert given["mtu"] == 1000
    # The links of sources and receivers become delays: a packet and its ack still take 80 ms.
    (only,) = given["config"]["classes"]
    there_and_back = only["forward_ns"] + only["back_ns"] + (1040 * 8 * 100)
    assert there_and_back == pytest.approx(80e6, abs=4)
    trace = tmp_path / "t"
    trace.write_text("1\n2\n")
    traced = link_config(links, "--rtt", "80ms", "--trace", str(trace), "--seed", "5")["config"]
    assert traced["seed"] == 5
    assert traced["queue"]["managed"]["rate"]["opportunities"] == [(1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--rtt: missing"),
        (["--rtt", "60"], "--rtt: "),
        (["--rtt", "60ms", "--rate", "20mbps"], "--rate: "),
        (["--rtt", "1ms", "--rate", "1mbit"], "--rtt: 1ms is less than the transmission times"),
        (["--rtt", "60ms", "--rate", "1mbit", "--trace", "x"], "--rate and --trace are both"),
        (["--rtt", "60ms", "--reorder"], "--reorder requires --jitter"),
        (["--rtt", "60ms", "--queue", "fq_codel"], "--rate: FQ-CoDel needs a limited rate"),
        (["--rtt", "60ms", "--jitter", "5"], "--jitter"),
        (
            ["--rtt", "60ms", "--set", "network.packet=9000B"],
            'network.packet: "9000B" is too large',
        ),
        (
            ["--rtt", "60ms", "--set", "network.ingress.loss=1%"],
            "network.ingress.loss: a link loses",
        ),
    ],
)
def test_invalid_options_are_rejected_by_name(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["link", *arguments, "--", "true"]) == 2
    err = capsys.readouterr().err
    assert message in err
