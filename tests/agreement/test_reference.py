"""The native engine, with one event per packet, against a simulator with one event per action.

All results must be equal to the nanosecond: sent packets, packets that enter, leave or are dropped
at the bottleneck, received packets, acks, losses and timeouts. Only simultaneous arrivals of two
sources are excluded, because their order is a convention.
"""

from collections import Counter, defaultdict
from functools import cache, partial
from itertools import islice, pairwise
from typing import Any

import pytest
from capture_file import CaptureFiles
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from reference_simulator import NEVER, Log, Network
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario
from tcpcast.scenario.classes import override_table

pytestmark = pytest.mark.usefixtures("punctual_hosts")

SECOND = 10**9
TAPS = ["sender", "bottleneck-in", "bottleneck-out", "receiver"]
SAME = {
    # Event of the reference: event in the native engine's trace or capture.
    "sent": "sent",
    "retransmitted": "retransmitted",
    "timeout": "timeout",
    "dropped": "dropped",
    "at bottleneck": "bottleneck-in",
    "left bottleneck": "bottleneck-out",
    "delivered": "receiver",
    "ack sent": "receiver, acks",
    "at return": "bottleneck-out, acks",
    "left return": "bottleneck-in, acks",
    "ack received": "sender, acks",
}
Numbers = Any
"""The plain data that the native module takes."""


def native_input(scenario: dict[str, Any], warmup_s: float = 0.0) -> Numbers:
    """Return the native module's input, with all flows traced and captured."""
    pcap = [{"link": tap, "file": f"{tap}.pcap"} for tap in TAPS]
    plain = Scenario.from_dict({"run": {"duration": "1000s"}, **scenario})
    flows = list(range(plain.senders))
    options = {"probes": {"flows": flows, "pcap": pcap}}
    scenario = {"run": {"duration": "1000s"}, **scenario, **options}
    return make_configuration(Scenario.from_dict(scenario), warmup_s)


def advance_run(run: _native.Simulation, until_s: float) -> Log:
    """Advance a run to a time and return its trace in the reference's format."""
    until_ns = round(until_s * SECOND)
    assert run.advance(transfers=None, until_ns=until_ns, threads=1) == "done"
    log: Log = defaultdict(list)
    trace = run.traces()
    assert trace["mark_bin_ns"] == 0
    columns = (trace[name].tolist() for name in ("mark_time_ns", "mark_flow", "mark_number"))
    for time, flow, number, mark in zip(*columns, trace["mark"], strict=True):
        log[mark].append((time, flow, number))
    return log


def first_transmissions(numbers: Numbers, until_s: float) -> list[tuple[int, int, int]]:
    """Return the native engine's first transmissions without captures."""
    uncaptured = numbers | {"probes": numbers["probes"] | {"captures": []}}
    return advance_run(_native.Simulation(uncaptured, 1), until_s)["sent"]


class Native:
    """A run of the native engine: trace and captures in the reference's format, and totals."""

    def __init__(self, numbers: Numbers, until_s: float) -> None:
        run = _native.Simulation(numbers, 1)
        files = CaptureFiles(run, len(TAPS))
        self.log = advance_run(run, until_s)
        for tap, packets in zip(
            TAPS, files.read(numbers["classes"][0]["packet_bytes"]), strict=True
        ):
            data, acks = self.log[tap], self.log[f"{tap}, acks"]
            for packet in packets:
                event = (packet.time_ns, packet.flow, packet.number)
                (data if packet.is_data else acks).append(event)
        last = run.counters()[0][-1].tolist()
        width = len(_native.CLASS_CELLS)
        self.link = dict(zip(_native.LINK_CELLS, last, strict=False))
        rows = [
            last[len(_native.LINK_CELLS) + index * width :]
            for index in range(len(numbers["classes"]))
        ]
        self.classes = [dict(zip(_native.CLASS_CELLS, row, strict=False)) for row in rows]
        self.totals = run.totals()
        cells, pairs = _native.LINK_CLASS_CELLS, run.link_classes()
        counts = iter(last[-len(pairs) * len(cells) :])
        self.by_link: dict[int, Counter[str]] = defaultdict(Counter)
        for link, _ in pairs:
            self.by_link[link].update(dict(zip(cells, islice(counts, len(cells)), strict=True)))

    def total(self, cell: str) -> int:
        return sum(row[cell] for row in self.classes)


def assert_equal_events(
    numbers: Numbers, until_s: float, *, unseen_s: float = 1.0
) -> tuple[Network, Native]:
    """Run both simulators and compare them event by event.

    Events in the last ``unseen_s`` are not compared, because the native engine computes them later,
    nor events after the first tie.
    """
    network = Network(numbers)
    network.run(round(until_s * SECOND))
    return network, compare_with_reference(network, numbers, until_s, unseen_s=unseen_s)


def compare_with_reference(
    network: Network, numbers: Numbers, until_s: float, *, unseen_s: float = 1.0
) -> Native:
    """Run the native engine and compare it with a reference that has run for the same time."""
    expected, native = network.log, Native(numbers, until_s)
    end = min(round((until_s - unseen_s) * SECOND), network.first_tie - 1)
    for native_kind, reference_kind in SAME.items():
        if native_kind == "dropped" and expected["dropped on access"]:
            continue
        assert until(native.log[reference_kind], end) == until(expected[native_kind], end), (
            native_kind
        )
    return native


def until(events: list[tuple[int, int, int]], end: int) -> list[tuple[int, int, int]]:
    return sorted(event for event in events if event[0] <= end)


def bulk(flows: int, first_s: float, gap_s: float) -> dict[str, Any]:
    """Bulk flows that start one by one."""
    starts = [f"{first_s + gap_s * index:.9f}s" for index in range(flows)]
    return {"kind": "bulk", "flows": flows, "start": starts}


def file_each(packets: int, off: str) -> dict[str, Any]:
    """One source with constant file sizes and OFF times."""
    distribution = {"distribution": "constant", "value": f"{packets}pkt"}
    return {
        "kind": "on-off",
        "sources": 1,
        "off": {"distribution": "constant", "value": off},
        "size": distribution,
    }


DROP_TAIL = {
    "network": {
        "rtt": "61.3ms",
        "ingress": {"rate": "97mbit"},
        "bottleneck": {"rate": "7.3019mbit", "buffer": "17pkt"},
        "egress": {"rate": "6.7713mbit"},
    },
    "traffic": bulk(4, 0.0131, 0.3517),
    "tcp": {"stack": "rfc-newreno", "receiver_window": 60},
}


@pytest.mark.parametrize("timer", ["ack", "send"])
@pytest.mark.parametrize("stack", ["rfc-reno", "rfc-newreno", "rfc-newreno-patient"])
def test_every_stack_is_equal_on_a_drop_tail_queue(stack: str, timer: str) -> None:
    tcp = {"stack": stack, "receiver_window": 60, "rules": {"timer_restart": timer}}
    network, native = assert_equal_events(native_input(DROP_TAIL | {"tcp": tcp}), 6.0)
    assert network.first_tie == NEVER
    assert len(native.log["dropped"]) > 30
    assert len(native.log["timeout"]) > 0


@pytest.mark.parametrize("at_threshold", [False, True])
@pytest.mark.parametrize("stack", ["rfc-reno", "rfc-newreno", "rfc-newreno-patient"])
def test_windows_in_fractions_of_packets_are_equal(stack: str, at_threshold: bool) -> None:
    rules = {"slow_start_at_ssthresh": at_threshold}
    tcp = {"stack": stack, "receiver_window": 60, "rules": rules}
    whole = first_transmissions(native_input(DROP_TAIL | {"tcp": tcp}), 6.0)
    scenario = DROP_TAIL | {"tcp": tcp | {"rules": rules | {"window_unit": "bytes"}}}
    network, native = assert_equal_events(native_input(scenario), 6.0)
    assert network.first_tie == NEVER
    assert len(native.log["dropped"]) > 30
    assert native.log["sent"] != whole


def test_delayed_acks_with_losses_are_equal() -> None:
    tcp = {
        "stack": "rfc-newreno",
        "receiver_window": 60,
        "delayed_acks": True,
        "ack_timeout": "93ms",
    }
    network, native = assert_equal_events(native_input(DROP_TAIL | {"tcp": tcp}), 8.0)
    assert network.first_tie == NEVER
    assert len(native.log["dropped"]) > 30
    assert 0 < len(native.log["sender, acks"]) < 0.75 * len(native.log["receiver"])


LOSS_RULES: dict[str, dict[str, Any]] = {
    "limited transmit": {"limited_transmit": True},
    "two packets on the second": {
        "limited_transmit": True,
        "rules": {"limited_transmit_on": "second"},
    },
    "the proposal": {"limited_transmit": True, "rules": {"last_packets_threshold": 1}},
    "a threshold of 1": {"duplicate_threshold": 1},
    "a threshold of 2": {"duplicate_threshold": 2, "limited_transmit": True},
    "a threshold of 6": {"duplicate_threshold": 6, "limited_transmit": True},
    "6, and 2 at the end": {"duplicate_threshold": 6, "rules": {"last_packets_threshold": 2}},
}


@pytest.mark.parametrize("timer", ["ack", "send"])
@pytest.mark.parametrize("stack", ["rfc-reno", "rfc-newreno", "rfc-newreno-patient"])
@pytest.mark.parametrize("name", LOSS_RULES)
def test_every_loss_detection_rule_is_equal(name: str, stack: str, timer: str) -> None:
    # Files of 5 to 26 packets with a buffer of 5: losses in small windows and at the ends of files.
    files = [file_each(size, f"{0.1 + 0.0137 * size:.4f}s") for size in (5, 9, 14, 26)]
    few = {
        "network": {
            "rtt": "61.3ms",
            "ingress": {"rate": "97mbit"},
            "bottleneck": {"rate": "1.3019mbit", "buffer": "5pkt"},
            "egress": {"rate": "6.7713mbit"},
        },
        "class": [{"name": f"n{index}", "traffic": traffic} for index, traffic in enumerate(files)],
        "traffic": {"kind": "on-off", "off": files[0]["off"], "size": files[0]["size"]},
    }
    plain = {"stack": stack, "receiver_window": 60, "rules": {"timer_restart": timer}}
    network, native = assert_equal_events(
        native_input(few | {"tcp": override_table(plain, LOSS_RULES[name])}), 6.0
    )
    assert network.first_tie == NEVER
    assert len(native.log["dropped"]) > 10
    assert native.log["sent"] != first_transmissions(native_input(few | {"tcp": plain}), 6.0)


@pytest.mark.parametrize("stack", ["rfc-reno", "rfc-newreno", "rfc-newreno-patient"])
def test_doubled_timeout_ends_with_a_sample_or_an_ack(stack: str) -> None:
    # The buffer has three packets, and the first of four users fills it for the others.
    files = [file_each(size, f"{0.05 + 0.0137 * size:.4f}s") for size in (5, 9, 14, 26)]
    others = {
        "network": {
            "rtt": "61.3ms",
            "ingress": {"rate": "97mbit"},
            "bottleneck": {"rate": "0.3019mbit", "buffer": "3pkt"},
            "egress": {"rate": "6.7713mbit"},
        },
        "class": [{"name": f"n{index}", "traffic": traffic} for index, traffic in enumerate(files)],
        "traffic": {"kind": "on-off", "off": files[0]["off"], "size": files[0]["size"]},
    }
    timeouts = []
    for until in ("sample", "ack"):
        tcp = {"stack": stack, "min_rto": "200ms", "rules": {"backoff_until": until}}
        network, native = assert_equal_events(native_input(others | {"tcp": tcp}), 12.0)
        assert network.first_tie == NEVER
        timeouts.append(len(native.log["timeout"]))
    assert timeouts[1] > timeouts[0] > 30


def test_acks_that_queue_on_a_return_link_are_equal() -> None:
    # The return link needs longer for an ack than the bottleneck for a packet.
    scenario = {
        "network": {
            "rtt": "31.7ms",
            "packet": "1000B",
            "bottleneck": {"rate": "3.31mbit", "buffer": "17pkt"},
            "return": {"rate": "118.3kbit", "buffer": "9pkt"},
        },
        "traffic": bulk(5, 0.0131, 0.7517),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44, "initial_window": 12},
    }
    network, native = assert_equal_events(native_input(scenario), 6.0)
    assert network.first_tie == NEVER
    assert len(network.log["dropped"]) > 30
    between = [
        next_time - time
        for flow in range(5)
        for time, next_time in pairwise(event_times(native.log["sender, acks"], flow))
    ]
    # In a queue, acks are 40 x 8 / 118.3 ms apart.
    assert sum(gap == round(320 / 118.3e3 * SECOND) for gap in between) > 100


def event_times(events: list[tuple[int, int, int]], flow: int) -> list[int]:
    return [time for time, event_flow, _ in events if event_flow == flow]


def test_overlapping_bursts_on_slow_ingress_links_are_equal() -> None:
    # Each burst takes 10 x 1.3 ms on its own link; sources start 1.7 ms apart.
    network, native = assert_equal_events(
        native_input(
            {
                "network": {
                    "rtt": "47.9ms",
                    "ingress": {"rate": "9.1mbit"},
                    "bottleneck": {"rate": "103mbit"},
                },
                "traffic": bulk(12, 0.0113, 0.001731),
                "tcp": {"stack": "rfc-newreno", "receiver_window": 30, "initial_window": 10},
            }
        ),
        1.2,
        unseen_s=0.2,
    )
    assert network.first_tie == NEVER
    assert not native.log["timeout"]
    assert not native.log["retransmitted"]


CLASSES: dict[str, Any] = {
    "network": {
        "rtt": "50ms",
        "ingress": {"rate": "100mbit"},
        "bottleneck": {"rate": "6.3171mbit", "buffer": "23pkt"},
        "egress": {"rate": "10mbit"},
    },
    "traffic": file_each(90, "0.7s"),
    "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
    "class": [
        {"name": "near", "rtt": "13.1ms", "traffic": file_each(61, "0.3011s")},
        {
            "name": "slow-uplink",
            "ingress": {"rate": "2.3mbit"},
            "traffic": file_each(83, "0.4127s"),
        },
        {"name": "far", "rtt": "203.7ms", "traffic": file_each(152, "0.2239s")},
        {
            "name": "thin",
            "egress": {"rate": "1.1mbit", "buffer": "9pkt"},
            "ingress": {"rate": "31mbit", "buffer": "7pkt"},
            "traffic": file_each(120, "0.5171s"),
        },
        {"name": "flows", "rtt": "71.9ms", "traffic": bulk(2, 1.0037, 1.3091)},
    ],
}


def test_classes_with_access_links_are_equal() -> None:
    network, native = assert_equal_events(native_input(CLASSES), 10.0)
    assert network.first_tie == NEVER
    assert native.classes[3]["access_drops"] > 10
    for index in (0, 1, 2, 3, 4):
        assert native.classes[index]["queue_drops"] > 0
    assert all(native.classes[index]["transfers"] > 1 for index in range(4))


def test_drop_on_an_access_link_is_recorded_at_its_time() -> None:
    for link in ("ingress", "egress"):
        other = {"ingress": "egress", "egress": "ingress"}[link]
        scenario = {
            "network": {
                "rtt": "59.3ms",
                link: {"rate": "2.1371mbit", "buffer": "6pkt"},
                other: {"rate": "41.37mbit"},
                "bottleneck": {"rate": "17.031mbit"},
            },
            "traffic": bulk(1, 0.0137, 0.4711),
            "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
        }
        network, native = assert_equal_events(native_input(scenario), 5.0)
        assert network.first_tie == NEVER
        assert native.total("queue_drops") == 0
        assert native.total("access_drops") > 10
        end = 4 * SECOND
        result, expected = native.log["dropped"], network.log["dropped on access"]
        assert until(result, end) == until(expected, end), link


OTHERS: dict[str, dict[str, Any]] = {
    "a buffer in bytes": {
        "network": {
            "rtt": "61.3ms",
            "packet": "1000B",
            "ingress": {"rate": "97mbit"},
            "bottleneck": {"rate": "7.3mbit", "buffer": "12999B"},
        },
        "traffic": bulk(3, 0.0131, 0.3517),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
    },
    "links without a rate": {
        "network": {"rtt": "61.3ms", "bottleneck": {"rate": "3.7mbit", "buffer": "9pkt"}},
        "traffic": bulk(3, 0.0131, 0.3517),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
    },
    "no rate at all": {
        "network": {"rtt": "61.3ms"},
        "traffic": bulk(3, 0.0131, 0.3517),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 20, "delayed_acks": True},
    },
    "a fraction of a nanosecond a packet": {
        "network": {
            "rtt": "3.1ms",
            "ingress": {"rate": "10gbit"},
            "bottleneck": {"rate": "746mbit", "buffer": "60pkt"},
            "egress": {"rate": "777mbit"},
        },
        "traffic": bulk(3, 0.0131, 0.003517),
        "tcp": {
            "stack": "rfc-newreno",
            "receiver_window": 100,
            "initial_ssthresh": 40,
            "min_rto": "100ms",
        },
    },
    "delays link by link": {
        "network": {
            "ingress": {"rate": "97mbit", "delay": "3.3ms"},
            "bottleneck": {"rate": "7.3mbit", "buffer": "17pkt", "delay": "11.7ms"},
            "egress": {"rate": "9.1mbit", "delay": "7.9ms"},
        },
        "traffic": bulk(4, 0.0131, 0.3517),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44, "initial_window": 4},
    },
    "timeouts of less than a second": {
        "network": {
            "rtt": "23.7ms",
            "ingress": {"rate": "97mbit"},
            "bottleneck": {"rate": "2.3mbit", "buffer": "5pkt"},
        },
        "traffic": bulk(6, 0.0131, 0.0517),
        "tcp": {
            "stack": "rfc-newreno",
            "receiver_window": 44,
            "min_rto": "1ms",
            "rto_granularity": "3ms",
        },
    },
    "slow start at the threshold too": {
        "network": {
            "rtt": "31.7ms",
            "ingress": {"rate": "97mbit"},
            "bottleneck": {"rate": "3.31mbit", "buffer": "13pkt"},
        },
        "traffic": bulk(3, 0.0131, 0.0517),
        "tcp": {
            "stack": "rfc-newreno",
            "receiver_window": 44,
            "rules": {"slow_start_at_ssthresh": True},
        },
    },
    "acks as long as the data": {
        "network": {
            "rtt": "91.7ms",
            "packet": "100B",
            "ack": "80B",
            "ingress": {"rate": "0.8731mbit"},
            "bottleneck": {"rate": "0.4313mbit", "buffer": "11pkt"},
            "egress": {"rate": "0.3713mbit"},
        },
        "traffic": bulk(2, 0.0131, 0.1517),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
    },
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_networks_are_equal(name: str) -> None:
    short = "nanosecond" in name
    span = {"until_s": 0.12, "unseen_s": 0.01} if short else {"until_s": 6.0}
    network, native = assert_equal_events(native_input(OTHERS[name]), **span)
    assert network.first_tie == NEVER
    assert len(native.log["receiver"]) > 300


@pytest.mark.parametrize(("size", "number"), [(54, 54), (106, 90)])
def test_spurious_timeouts_of_the_special_case_are_equal(size: int, number: int) -> None:
    # Engset report, section 4.2: a queue on the last link outgrows a timeout that RTT samples,
    # taken once per flight, keep at its minimum. It requires a timer that acknowledgements do not
    # restart.
    special: dict[str, Any] = {
        "network": {
            "packet": "576B",
            "ingress": {"rate": "100mbit"},
            "bottleneck": {"rate": "1.5mbit", "delay": "150ms"},
            "egress": {"rate": "128kbit"},
        },
        "traffic": file_each(size, "1s"),
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44, "rules": {"timer_restart": "send"}},
    }
    _, native = assert_equal_events(native_input(special), 12.0)
    assert native.total("transfers") >= 1
    assert native.log["timeout"][0][2] == number
    assert not native.log["dropped"]


@cache
def quiet_end() -> tuple[Network, Native]:
    """Return sources with one file each, all of which end long before the run does."""
    traffic = [
        {**entry, "traffic": file_each(70 + 30 * index, f"{10.0037 + 0.1791 * index:.4f}s")}
        for index, entry in enumerate(CLASSES["class"])
    ]
    return assert_equal_events(native_input(CLASSES | {"class": traffic}), 19.5)


def test_totals_of_a_finished_run_are_equal() -> None:
    network, native = quiet_end()
    log, count = network.log, len
    assert network.first_tie == NEVER
    assert native.total("transfers") == count(log["on time"]) == 5
    assert native.total("on_time_ns") == sum(entry[2] for entry in log["on time"])
    assert native.total("sent") == count(log["sent"]) + count(log["retransmitted"])
    assert native.total("retransmitted") == count(log["retransmitted"]) > 0
    assert native.total("delivered") == count(log["distinct"])
    assert native.total("arrived") == count(log["at bottleneck"])
    assert native.total("queue_drops") == count(log["dropped"]) > 0
    assert native.total("access_drops") == count(log["dropped on access"]) > 0
    assert native.total("timeouts") == count(log["timeout"]) > 0
    assert native.total("rtt_samples") == count(log["rtt"])
    assert native.total("rtt_sum_ns") == sum(entry[2] for entry in log["rtt"])
    in_flight = times_in_flight(log)
    assert native.total("acked") == count(in_flight) == native.total("transfer_packets")
    assert native.total("in_flight_ns") == sum(in_flight)
    for index, row in enumerate(native.classes):
        assert row["on_time_ns"] == sum(entry[2] for entry in log["on time"] if entry[1] == index)
        assert row["queue_drops"] == sum(entry[1] == index for entry in log["dropped"])


def times_in_flight(log: Log) -> list[int]:
    """Return the time from each packet's first transmission to the ack that covers it."""
    first: dict[tuple[int, int], int] = {}
    for time, source, number in sorted(log["sent"]):
        first.setdefault((source, number), time)
    times, covered = [], Counter[int]()
    for time, source, expected in sorted(log["ack received"]):
        for number in range(covered[source] + 1, expected):
            times.append(time - first[source, number])
        covered[source] = max(covered[source], expected - 1)
    return times


def test_queue_of_a_finished_run_is_equal() -> None:
    network, native = quiet_end()
    log = network.log
    dropped = Counter(log["dropped"])
    entered = [entry[0] for entry in log["at bottleneck"] if not dropped[entry]]
    left = [entry[0] for entry in log["left bottleneck"]]
    assert native.link["queue_integral"] == sum(left) - sum(entered)
    length, since, times = 0, 0, Counter[int]()
    for time, step in sorted(
        [(moment, -1) for moment in left] + [(moment, 1) for moment in entered]
    ):
        times[length] += time - since
        length, since = length + step, time
    assert native.link["busy_ns"] == sum(times.values()) - times[0]
    result = Counter(entry[2] for entry in log["queue length"])
    queue_counts = native.totals["queue_seen"].tolist()
    assert queue_counts == [result[queue] for queue in range(len(queue_counts))]
    at_length = native.totals["queue_time_ns"].tolist()
    assert at_length[1:] == [times[queue] for queue in range(1, len(at_length))]


@cache
def run_reference(until_s: float) -> Network:
    """Return the reference simulator of the classes; it has no warm-up."""
    network = Network(native_input(CLASSES))
    network.run(round(until_s * SECOND))
    return network


@pytest.mark.parametrize("warmup_s", [0.0, 1.4031, 2.7013, 4.3])
def test_active_sources_are_equal_after_any_warm_up(warmup_s: float) -> None:
    # A source is active from its first packet's arrival at the bottleneck to the last
    # acknowledgement.
    until_s, start = 9.0, round(warmup_s * SECOND)
    numbers = native_input(CLASSES, warmup_s)
    network = run_reference(until_s)
    native = compare_with_reference(network, numbers, until_s)
    steps = births_and_deaths(network.log)
    expected, active, since = Counter[int](), 0, 0
    for time, step in [*steps, (round(until_s * SECOND), 0)]:
        expected[active] += max(0, time - max(since, start))
        active, since = active + step, time
    result = native.totals["states_time_ns"].tolist()
    assert result == [expected[active] for active in range(len(result))]
    assert sum(result) == round(until_s * SECOND) - start


def births_and_deaths(log: Log) -> list[tuple[int, int]]:
    steps = []
    for source in {entry[1] for entry in log["at bottleneck"]}:
        arrivals = [entry[0] for entry in log["at bottleneck"] if entry[1] == source]
        deaths = [entry[0] for entry in log["on time"] if entry[1] == source]
        begins = [
            end - entry[2] for end, entry in zip(deaths, filter_log(log, source), strict=True)
        ]
        began = [entry[0] for entry in log["sent"] if entry[1] == source and entry[2] == 1]
        assert began[: len(begins)] == begins
        births = [next(time for time in arrivals if time >= start) for start in began]
        steps += [(time, 1) for time in births] + [(time, -1) for time in deaths]
    return sorted(steps)


def filter_log(log: Log, source: int) -> list[tuple[int, int, int]]:
    return [entry for entry in log["on time"] if entry[1] == source]


def test_synchronised_sources_have_equal_totals() -> None:
    # Ten sources start in the same nanosecond: their order of service may differ, but not their
    # total throughput.
    distribution = {"distribution": "constant", "value": "40pkt"}
    traffic = {"kind": "on-off", "sources": 10, "off": {"distribution": "constant", "value": "1s"}}
    numbers = native_input(
        {
            "network": {
                "rtt": "50ms",
                "ingress": {"rate": "100mbit"},
                "bottleneck": {"rate": "10mbit"},
            },
            "traffic": traffic | {"size": distribution},
            "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
        }
    )
    network, native = assert_equal_events(numbers, 1.99)
    assert network.first_tie < NEVER
    assert native.total("transfers") == len(network.log["on time"]) == 10
    assert native.total("delivered") == len(network.log["distinct"]) == 400
    times = [time for time, _, _ in network.log["left bottleneck"]]
    assert [time for time, _, _ in native.log["bottleneck-out"]] == times


def rates(minimum: int, maximum: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(minimum, maximum)


def link(rate_bps: int | None, **changes: Any) -> dict[str, Any]:
    """Return a link of a native input."""
    plain: dict[str, Any] = {
        "rate": {"constant": rate_bps},
        "policer": None,
        "delay_ns": 0,
        "limit_pkts": None,
        "limit_bytes": None,
        "queue": "drop-tail",
        "loss": None,
        "jitter": None,
        "remark": None,
        "each": "all",
        "changes": [],
    }
    return plain | changes


@st.composite
def access_links(draw: st.DrawFn) -> dict[str, Any]:
    return link(
        draw(rates(500_000, 100_000_000)),
        delay_ns=draw(st.integers(0, 30_000_000)),
        limit_pkts=draw(st.none() | st.integers(2, 30)),
        each="sender",
    )


@st.composite
def groups(draw: st.DrawFn, first_link: int, common: dict[str, Any]) -> dict[str, Any]:
    """Return a class behind link 0, with the access links from ``first_link``."""
    seconds = st.floats(0.001, 1.5, allow_nan=False)
    group: dict[str, Any] = {
        "site": None,
        "flows": 1,
        "routes": [[first_link, 0, first_link + 1]],
        "back": [[]],
        "delay_ns": draw(st.integers(1_000_000, 50_000_000)),
        "back_delay_ns": draw(st.integers(1_000_000, 150_000_000)),
        "tso": False,
        "gro": True,
        "sends": "server",
        "host_noise_ns": 0,
        "host": None,
        "dscp": 0,
        "reading": None,
        "writing": None,
        "scale": None,
        **common,
    }
    if draw(st.booleans()):
        files = {
            "off": {"distribution": "constant", "value": draw(seconds)},
            "size": {"distribution": "constant", "value": float(draw(st.integers(1, 200)))},
            "rounding": "nearest",
            "persistent": False,
            "coupling": 0.0,
            "begin": "off",
        }
        group["traffic"] = {"files": {"on-off": files}}
    else:
        times = draw(st.lists(seconds, min_size=1, max_size=10, unique=True))
        group["traffic"] = {"files": {"bulk": {"start": {"times": times}, "stop": None}}}
        group["flows"] = len(times)
    return group


def newreno(restart_timer: bool) -> dict[str, Any]:
    return {"newreno": {"restart_timer": restart_timer}}


@st.composite
def small_runs(draw: st.DrawFn) -> Numbers:
    window = draw(st.sampled_from([1, 2, 8, 44, 100]))
    threshold = draw(st.sampled_from([3, 3, 1, 2, 5]))
    tcp = {
        "recovery": draw(st.sampled_from(["reno", newreno(True), newreno(False)])),
        "timer_restart": draw(st.sampled_from(["ack", "send"])),
        "backoff_until": draw(st.sampled_from(["sample", "ack"])),
        "duplicate_threshold": threshold,
        "last_packets_threshold": draw(st.integers(1, threshold)),
        "limited_transmit": draw(st.sampled_from(["off", "each-duplicate", "on-second"])),
        "max_burst": 1 << 20,
        "window_unit": draw(st.sampled_from(["packets", "bytes"])),
        "initial_window": draw(st.sampled_from([1, 2, 4, 10])),
        "initial_ssthresh": window,
        "slow_start_at_ssthresh": draw(st.booleans()),
        "receiver_window": window,
        "delayed_acks": draw(st.booleans()),
        "ack_timeout_ns": draw(st.integers(10_000_000, 300_000_000)),
        "min_rto_ns": draw(st.sampled_from([200_000_000, SECOND])),
        "initial_rto_ns": SECOND,
        "max_rto_ns": 64 * SECOND,
        "rto_granularity_ns": 0,
        "idle_restart": "never",
        "instant": None,
    }
    packet_bytes = draw(st.sampled_from([576, 1000, 1500]))
    common = {"packet_bytes": packet_bytes, "ack_bytes": 40, "tcp": {"packets": tcp}}
    rate, limit = draw(st.integers(500_000, 20_000_000)), draw(st.none() | st.integers(1, 60))
    links, classes = [link(rate, limit_pkts=limit)], []
    for _ in range(draw(st.integers(1, 4))):
        classes.append(draw(groups(len(links), common)))
        links += [draw(access_links()), draw(access_links())]
    return {
        "seed": 1,
        "links": links,
        "sites": [],
        "classes": classes,
        "cross": [],
        "round_loss": None,
        "rtt_spread": 0.0,
        "headline": 0,
        "warmup_ns": 0,
        "probes": {
            "size_bounds": [2, 6, 14, 30],
            "traced": list(range(sum(group["flows"] for group in classes))),
            "trace_points": None,
            "course": False,
            "captures": [(tap, 10**6) for tap in TAPS],
            "goodput_packets": 0,
            "goodput_least": 0,
            "report_at_ns": [],
        },
    }


PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
"""No shrinking, which takes minutes; the unshrunk example also names the event that differs."""

without_deadline = partial(
    settings, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck)
)


@without_deadline(max_examples=10, derandomize=True)
@given(small_runs())
def test_small_random_runs_are_equal(numbers: Numbers) -> None:
    assert_equal_events(numbers, 4.0)


@pytest.mark.long
@without_deadline(max_examples=1000)
@given(small_runs())
def test_many_small_random_runs_are_equal(numbers: Numbers) -> None:
    assert_equal_events(numbers, 4.0)


def with_off_times(rule: str, connection: str) -> dict[str, Any]:
    """Four users with a persistent connection each and OFF times from 0.2 to 1.8 s."""
    files = [(11, "0.2117s"), (26, "0.7013s"), (37, "1.3219s"), (64, "1.8031s")]
    traffics = [file_each(size, off) | {"connection": connection} for size, off in files]
    return {
        "network": {
            "rtt": "61.3ms",
            "ingress": {"rate": "97mbit"},
            "bottleneck": {"rate": "2.3019mbit", "buffer": "11pkt"},
            "egress": {"rate": "6.7713mbit"},
        },
        "class": [
            {"name": f"n{index}", "traffic": traffic} for index, traffic in enumerate(traffics)
        ],
        "traffic": traffics[0],
        "tcp": {"stack": "rfc-newreno", "receiver_window": 30, "idle_restart": rule},
    }


@pytest.mark.parametrize("unit", ["packets", "bytes"])
@pytest.mark.parametrize("rule", ["never", "rto", "700ms"])
def test_connections_that_outlive_off_times_are_equal(rule: str, unit: str) -> None:
    scenario = with_off_times(rule, "persistent")
    scenario["tcp"]["rules"] = {"window_unit": unit}
    network, native = assert_equal_events(native_input(scenario), 20.0)
    assert network.first_tie > 15 * SECOND
    assert len(native.log["dropped"]) > 30
    assert max(number for _, _, number in native.log["sent"]) > 300
    # Each rule gives a different run, and none equals the run with new connections.
    others = [with_off_times(other, "persistent") for other in {"never", "rto", "700ms"} - {rule}]
    for other in [*others, with_off_times(rule, "new")]:
        other["tcp"]["rules"] = {"window_unit": unit}
        assert first_transmissions(native_input(other), 20.0) != native.log["sent"]
