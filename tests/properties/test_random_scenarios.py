"""Random valid scenarios end in time, with an answer or a reason."""

import itertools
import math
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from random import Random

import jsonschema
import pytest
import tcpcast
from answer_properties import find_violations
from generated_scenarios import BASES, Generator
from random_scenarios import Limits, run_once, run_random
from tcpcast import cli
from tcpcast.engines.formula.short_transfers import MAX_LOSS, MAX_MEAN_LOSSES
from tcpcast.models.short import first_negligible_loss_count
from tcpcast.report.json import encode
from tcpcast.scenario import Scenario, load, make_scenario_schema
from tcpcast.scenario.classes import get_ack_bytes


# Several long tests, so that they share the processors.
@pytest.mark.parametrize(
    "runs",
    [
        range(4),
        *(pytest.param(range(n, n + 250), marks=pytest.mark.long) for n in range(0, 2000, 250)),
    ],
    ids=lambda runs: f"{runs.start}-{runs.stop - 1}",
)
def test_random_scenarios_end_at_max_wall(runs: range, tmp_path: Path) -> None:
    result = run_random(runs, seed=1, folder=tmp_path, limits=Limits())
    assert not [str(failure) for _, _, failure in result if failure is not None]


@pytest.mark.parametrize(
    "runs",
    [
        range(24),
        *(pytest.param(range(n, n + 500), marks=pytest.mark.long) for n in range(0, 5000, 500)),
    ],
    ids=lambda runs: f"{runs.start}-{runs.stop - 1}",
)
def test_answers_to_combinations_of_features_are_consistent(runs: range, tmp_path: Path) -> None:
    limits = Limits(max_wall_s=2.0, combines=True)
    result = run_random(runs, seed=1, folder=tmp_path, limits=limits)
    assert not [str(failure) for _, _, failure in result if failure is not None]


CONTRADICTIONS = Path(__file__).parent / "contradictions"


@pytest.mark.parametrize("file", sorted(CONTRADICTIONS.glob("*.toml")), ids=lambda file: file.stem)
def test_combination_that_once_had_contradictions(file: Path) -> None:
    assert find_violations(load(file)) == []


PATH = {"network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit"}}}
LONG = {"duration": "1e8s", "max_wall": "1s"}
BULK = PATH | {"traffic": {"kind": "bulk", "flows": 4}, "run": LONG}
LARGE_WINDOWS = {"traffic.flows": 10_000, "tcp": {"stack": "rfc-sack", "initial_window": 1_000_000}}
TRANSFERS = {"kind": "transfers", "size": "100kB", "count": 349_730}
SHORT_FLOW = {"name": "short", "stop": "50ms", "traffic": {"kind": "bulk", "flows": 1}}


@pytest.mark.parametrize(
    ("tables", "changes"),
    [
        (BULK, {"network.bottleneck.queue": {"kind": "pie", "update": "1ns"}}),
        (BULK, {"network.bottleneck": {"rate": "1bit", "queue": "pie"}, "network.rtt": "1e8s"}),
        (BULK, LARGE_WINDOWS),
        (
            BULK | {"probes": {"pcap": [{"link": "bottleneck-in", "file": "dd"}]}},
            {"tcp": {"stack": "linux-cubic", "initial_window": 1_000_000}},
        ),
        (
            BULK | {"network": {"ingress": {"delay": "1h"}, "bottleneck": {"rate": "10mbit"}}},
            LARGE_WINDOWS,
        ),
        (BULK, {"run.replications": 181, "run.precision": {"goodput_bps": 0.0001}}),
        (
            PATH | {"class": [SHORT_FLOW], "run": LONG | {"duration": "10s"}},
            {"run.precision": {"goodput_bps": 0.0001}},
        ),
        (PATH | {"traffic": TRANSFERS, "run": {"max_wall": "1s"}}, {}),
    ],
)
def test_run_stops_at_max_wall(
    tables: dict[str, object], changes: dict[str, object], tmp_path: Path
) -> None:
    changed = Scenario.from_dict(tables).with_changes(changes).resolved()
    code, reason = run_once(changed, ["--engine", "packet"], folder=tmp_path, limits=Limits())
    assert reason is None
    assert code in {0, 1}


LOSSY_TRANSFERS = {
    "network": {"rtt": "20ms", "bottleneck": {"rate": "30mbit", "loss": "50%"}},
    "traffic": {"kind": "transfers", "size": 20, "count": 20},
    "run": {"max_wall": "2s"},
}


@pytest.mark.parametrize("stack", ["rfc-reno", "linux-cubic"])
@pytest.mark.parametrize("loss", ["50%", "90%", "96%"])
def test_short_takes_few_steps_with_many_losses(stack: str, loss: str) -> None:
    sizes = [1] if loss == "96%" else [20]
    changes = {"network.bottleneck.loss": loss, "tcp.stack": stack, "traffic.size": sizes}
    scenario = Scenario.from_dict(LOSSY_TRANSFERS).with_changes(changes)
    (answer,) = tcpcast.run(scenario, ["short"])
    if loss == "50%":
        assert answer["completion_time_s"] > 0.5
        largest = MAX_MEAN_LOSSES / MAX_LOSS
        assert first_negligible_loss_count(size_pkts=largest, loss=MAX_LOSS) < 200
        # The SYN-ACK is lost as often, and the expected time until it arrives is infinite.
        assert "total_time_s" not in answer.metrics
    else:
        # Even one packet would take more than a thousand steps, and seconds.
        assert answer.reason.startswith(f"the loss is {loss[:2]} %, but the model")


def test_distribution_of_a_long_queue_has_few_rows() -> None:
    network = {"rtt": "270ms", "bottleneck": {"rate": "3.738mbit"}}
    tables = {
        "network": network,
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"stack": "parallel-newreno"},
        "run": {"duration": "100s", "warmup": "0s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
    largest, table = answer["queue_max_pkts"], answer.tables["queue"]
    assert largest > 20_000
    lengths, above = table["queue_pkts"].tolist(), table["time_above"].tolist()
    assert len(lengths) <= 10_000
    assert lengths[:5000] == list(range(5000))
    assert lengths[-1] == largest
    assert max(b / a for a, b in itertools.pairwise(lengths[4999:])) < 1.001
    # The tail probabilities are those of the complete distribution: their sum is the mean.
    widths = [b - a for a, b in itertools.pairwise(lengths)]
    mean = sum(share * width for share, width in zip(above, widths, strict=False))
    assert mean == pytest.approx(answer["queue_mean_pkts"], rel=0.001)


def test_too_many_sources_are_refused_immediately(tmp_path: Path) -> None:
    changed = Scenario.from_dict(BULK).with_changes({"traffic.flows": 10_000_000}).resolved()
    code, reason = run_once(changed, ["--engine", "packet"], folder=tmp_path, limits=Limits())
    assert (code, reason) == (2, None)


@pytest.mark.parametrize("link", ["bottleneck", "ingress"])
def test_queue_of_many_years_does_not_overflow(link: str) -> None:
    network = {"rtt": "1e8s", "packet": "65535B", "bottleneck": {"rate": "1kbit"}}
    tables = {
        "network": network | {link: {"rate": "1bit"}},
        "traffic": {"kind": "bulk", "flows": 4},
        "tcp": {"stack": "rfc-newreno"},
        "run": {"duration": "1e8s", "warmup": "1s", "max_wall": "1s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
    assert answer.metrics


RUN_WITHOUT_MEMORY = f"""
import resource, tcpcast
from pathlib import Path
from tcpcast.scenario import Scenario

tables = {PATH | {"traffic": {"kind": "bulk", "flows": 1}, "run": {"duration": "1s"}}}
tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
pages = int(Path("/proc/self/statm").read_text().split()[0])
max_bytes = pages * resource.getpagesize() + (150 << 20)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))
tables |= {{"tcp": {{"stack": "rfc-sack", "initial_window": 1_000_000}}}}
tables["traffic"] |= {{"flows": 100}}
tcpcast.run(Scenario.from_dict(tables), ["packet"], threads=1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the address space")
def test_out_of_memory_run_prints_one_line(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", RUN_WITHOUT_MEMORY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3
    assert ended.stderr.startswith("tcpcast: out of memory: ")
    assert ended.stderr.count("\n") == 1


def test_out_of_memory_command_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill(_: list[str]) -> int:
        raise MemoryError

    monkeypatch.setattr(cli, "_run_command_line", fill)
    assert cli.main(["run", "web-10mbit"]) == 3
    assert capsys.readouterr().err == "tcpcast: out of memory; raise the limit (ulimit -v)\n"


ON_OFF = next(tables for tables in BASES if tables["traffic"]["kind"] == "on-off")
ENGINE_BASES = {
    "packet": BASES,
    "fixed-point": [ON_OFF | {"tcp": {"stack": "max-plus-reno"}, "fixed_point": {"steps": 2}}],
    "mean-field": [ON_OFF | {"tcp": {"stack": "rfc-newreno"}, "mean_field": {"flows": 100}}],
}


@pytest.mark.parametrize("engine", ENGINE_BASES)
def test_values_in_extreme_scenarios_are_finite_and_in_their_intervals(engine: str) -> None:
    for number in range(10):
        generator = Generator(Random(f"{engine} {number}"), ENGINE_BASES[engine])
        scenario = Scenario.from_dict(generator.scenario("100ms"))
        (answer,) = tcpcast.run(scenario, [engine], threads=1)
        for name, metric in answer.metrics.items():
            assert not math.isinf(metric.value), name
            if metric.low is not None and metric.high is not None:
                assert metric.low <= metric.value <= metric.high, name


def test_results_do_not_depend_on_threads() -> None:
    compared = 0
    for number in range(16):
        tables = Generator(Random(f"threads {number}")).combination("3s")
        run = {key: value for key, value in tables["run"].items() if key != "precision"}
        scenario = Scenario.from_dict(tables | {"run": run | {"replications": 3}})
        answers = [tcpcast.run(scenario, ["packet"], threads=threads) for threads in (1, 2)]
        documents = [answer.to_json() | {"wall_s": 0} for (answer,) in answers]
        if not any("run.max_wall" in encode(document) for document in documents):
            assert encode(documents[0]) == encode(documents[1])
            compared += 1
    assert compared > 4


def test_every_random_scenario_has_max_wall_and_reads_back() -> None:
    validator = jsonschema.Draft202012Validator(make_scenario_schema())
    for number in range(40):
        scenario = Scenario.from_dict(Generator(Random(f"11 {number}")).scenario("7s"))
        assert scenario.run.max_wall_s == 7
        tables = tomllib.loads(scenario.to_toml())
        assert tables == scenario.resolved()
        validator.validate(tables)
        again = Scenario.from_dict(tables)
        assert again == scenario
        assert (again.digest(), again.resolved()) == (scenario.digest(), tables)
        # A hop that is measured by default is written as measured.
        own, other = ([replace(g, route=()) for g in s.populations] for s in (scenario, again))
        assert own == other
        for group in scenario.populations:
            links = group.ingress, group.egress, group.packet_bytes
            delays_s = group.forward_delay_s + group.return_delay_s
            sending_s = scenario.network.transmission_s(*links)
            if scenario.links:
                ack = get_ack_bytes(group.tcp, scenario.network)
                sizes = ((group.route, group.packet_bytes), (group.back, ack))
                sending_s = sum(8 * n / on.link.serial_bps for way, n in sizes for on in way)
            total_s = delays_s + sending_s
            assert total_s == pytest.approx(group.rtt_s, rel=1e-12)
            assert group.forward_delay_s >= 0


def test_files_with_zero_duration_have_no_rate() -> None:
    # 41 B on 1 Tbit/s take 0.3 ns, and time is counted in whole ns.
    link = {"rate": "1000gbit", "delay": "0s"}
    tables = {
        "network": {"packet": "41B", "ack": "1B", "ingress": link, "egress": link}
        | {"bottleneck": link},
        "traffic": {
            "kind": "on-off",
            "sources": 1,
            "off": {"distribution": "constant", "value": "1ms"},
            "size": {"distribution": "constant", "value": "1pkt"},
        },
        "tcp": {"stack": "rfc-newreno", "receiver_window": 1},
        "run": {"duration": "1s", "warmup": "0s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    assert answer["transfers"] == 1000
    assert math.isnan(answer.tables["by_size"]["connection_rate_bps"][0])


@pytest.mark.parametrize(
    ("flows", "scheme", "what"), [(1, 2, "service time"), (20, 0, "time between packets")]
)
def test_fixed_point_compares_measured_values_only(flows: int, scheme: int, what: str) -> None:
    # No ack arrives within the run.
    tables = {
        "network": {"rtt": "100s", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "traffic": {"kind": "bulk", "flows": flows},
        "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
        "run": {"duration": "1s", "warmup": "0s"},
        "fixed_point": {"scheme": scheme, "steps": 2, "step": "1ms"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["fixed-point"])
    assert not any(metric.value > 0 for metric in answer.metrics.values())
    assert f"{what} was not measured" in str(answer.incomplete_reason)
