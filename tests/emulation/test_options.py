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
    [path], [there, back] = config["classes"], config["links"]
    # Half of 60 ms minus the transmission of 1500 and 40 bytes at 20 Mbit/s, in each direction.
    assert path["delay_ns"] == path["back_delay_ns"] == 29_692_000
    assert (path["routes"], path["back"]) == ([[0]], [[1]])
    # Without a return link, both directions have the same rate, buffer and queue.
    assert (there["rate"], there["limit_pkts"]) == ({"constant": 20_000_000}, 100)
    assert back == there
    assert given["near"] == ["ping", "-c", "3", "x"]
    assert (given["mtu"], given["server"]) == (1500, "near")


def test_only_the_forward_path_has_jitter_and_loss_of_data(links: list[dict[str, Any]]) -> None:
    options = ["--rtt", "60ms", "--loss", "1%", "--ack-loss", "2%", "--jitter", "5ms"]
    config = link_config(links, *options, "--sender", "far", "--", "true")
    assert config["server"] == "far"
    [path], *_ = config["config"]["classes"], config
    there, back = (config["config"]["links"][path[key][0][0]] for key in ("routes", "back"))
    assert (there["loss"]["model"], back["loss"]["model"]) == (
        {"bernoulli": 0.01},
        {"bernoulli": 0.02},
    )
    assert (there["jitter"] is None, back["jitter"]) == (False, None)


def test_network_has_its_links_and_the_program_at_the_client(links: list[dict[str, Any]]) -> None:
    given = link_config(links, "home", "--set", "link.up.queue=cake", "--", "true")
    assert given["server"] == "far"
    [path, *_], [down, up] = given["config"]["classes"], given["config"]["links"]
    assert (path["routes"], path["back"]) == ([[0]], [[1]])
    assert (down["queue"], list(up["queue"])) == ("drop-tail", ["cake"])
    assert link_config(links, "home", "--sender", "near", "--", "true")["server"] == "near"


def test_single_word_is_a_shell_command(
    links: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/some-shell")
    assert link_config(links, "--rtt", "1ms", "--", "a | b")["near"] == ["/bin/sh", "-c", "a | b"]
    assert link_config(links, "--rtt", "1ms")["near"] == ["/bin/some-shell"]


def test_options_override_the_scenario(links: list[dict[str, Any]], tmp_path: Path) -> None:
    given = link_config(links, "web-10mbit", "--rtt", "80ms", "--set", "network.packet=1000B", "--")
    assert given["mtu"] == 1000
    [only], config_links = given["config"]["classes"], given["config"]["links"]
    rates = [config_links[at]["rate"]["constant"] for at in only["routes"][0]]
    assert rates == [100_000_000, 10_000_000, 2_000_000]
    # A packet and its ack take 80 ms; the links of sources and receivers only delay acks.
    on_links_ns = sum(1000 * 8e9 / rate for rate in rates) + 40 * 8e9 / 10_000_000
    delays_ns = only["delay_ns"] + only["back_delay_ns"]
    assert delays_ns + on_links_ns == pytest.approx(80e6, abs=4)
    trace = tmp_path / "t"
    trace.write_text("1\n2\n")
    traced = link_config(links, "--rtt", "80ms", "--trace", str(trace), "--seed", "5")["config"]
    assert traced["seed"] == 5
    assert [each["rate"]["opportunities"] for each in traced["links"]] == [[(1, 1), (2, 1)]] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--rtt: missing"),
        (["--rtt", "60"], "--rtt: "),
        (["--rtt", "60ms", "--rate", "20mbps"], "--rate: "),
        (["--rtt", "1ms", "--rate", "1mbit"], "--rtt: 1ms is less than the transmission times"),
        (["--rtt", "60ms", "--rate", "1mbit", "--trace", "x"], "--rate and --trace are mutually"),
        (["--rtt", "60ms", "--reorder"], "--reorder requires --jitter"),
        (["--rtt", "60ms", "--queue", "fq_codel"], "--rate: FQ-CoDel requires a limited rate"),
        (["--rtt", "60ms", "--jitter", "5"], "--jitter"),
        (
            ["--rtt", "60ms", "--set", "network.packet=9000B"],
            'network.packet: "9000B" is too large',
        ),
        (["parking-lot"], "the classes use several; keep only the classes that share a route"),
    ],
)
def test_invalid_options_are_rejected_by_name(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["link", *arguments, "--", "true"]) == 2
    err = capsys.readouterr().err
    assert message in err
