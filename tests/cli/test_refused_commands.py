"""Commands with wrong options exit with 2, print nothing, write nothing, and say what to write."""

import re
import shlex
from pathlib import Path

import pytest
from tcpcast.cli import main

TRANSFER = Path(__file__).parents[2] / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
REFUSED = r"""
# predict
predict --rtt 100ms --loss 0% | --rate | nothing limits the flows
predict --rtt 100ms | --rate | nothing limits the flow
predict --rtt 100ms --loss 100% | --loss | loses every packet
predict --rtt 100ms --loss 120% | --loss | too large | 100%
predict --rtt 100ms --loss nan | --loss | not a ratio
predict --loss 1% --rtt 0ms | --rtt | must be above 0
predict --loss 1% --rtt 100 | --rtt | has no unit | 100ms
predict --loss 1% --rtt 1us --rate 1mbit | --rtt | 12.32ms
predict --rtt 100ms --loss 1% --size 100 | --size | no unit | 100pkt or 100B
predict --rtt 100ms --loss 1% --size 1e6 | --size | no unit | 1000000pkt or 1000000B
predict --rtt 100ms --loss 1% --size 10..1MB | --size | no unit
predict --rtt 100ms --loss 1% --rate 0 | --rate | above 0 | 10mbit
predict --rtt 100ms --loss 1% --size 0KB | --size | not a transfer
predict --rtt 100ms --loss 1% --size 100kbit | --size | not a size
predict --rtt 100ms --loss 1% --rwnd 0 | --rwnd | is less than one packet
predict --rtt 100ms --loss 1% --rwnd 100B | --rwnd | is less than one packet
predict --rtt 100ms --loss 1% --flows 0 | --flows | at least 1
predict --rtt 100ms --loss 1% --flows 1.5 | --flows | whole number
predict --rtt 100ms --loss 1% --flows 999999999999999999999999999999 |
    --flows | is too large; use at most
predict --rtt 100ms --loss 1% --mss 0 | --mss | payload
predict --rtt 100ms --loss 1% --mss 65496 | --mss | 65495B
predict --rtt 100ms --loss 1% --mss 10mbit | --mss | not a size
predict --rtt 100ms --loss 1% --rate 10mbps | --rate | 10mbit
predict --rtt 100ms --loss 1% --iw 0 | --iw | at least 1
predict --rtt 100ms --loss 1% --iw ten | --iw | whole number
predict --rtt 100ms --loss 1% --min-rto 0s | --min-rto | above 0
predict --rtt 100ms --loss 1% --stack nosuch | --stack | rfc-newreno
predict --rtt 100ms --loss 1% --buffer 64MB | --buffer | has no queue; use --rate
predict --rtt 100ms --rate 1mbit --buffer 64 | --buffer | "64" has no unit
predict --rtt 100ms --rate 1mbit --buffer 0pkt | --buffer
predict --rtt 100ms --rate 1mbit --buffer 64KB..1bdp | --buffer | of different kinds
predict --rtt 100ms --loss 0.01%.. | --loss | has no end
predict --rtt 100ms --loss ..1% | --loss | has no beginning
predict --rtt 100ms --loss .. | --loss
predict --rtt 100ms --loss 10%..1% | --loss | descending order | 1%..10%
predict --rtt 100ms --loss 1%..1% | --loss | one value
predict --rtt 100ms --loss 0%..1% | --loss | begins at 0 | 0.01%..1%
predict --rtt 100ms --loss 0.01..10% | --loss | only one end | 0.01%..10%
predict --rtt 100ms --loss 1%..2%..3% | --loss | more than two ends
predict --rtt 100ms --loss 1%..100% | --loss | loses every packet
predict --rtt 100ms --loss 1% --rwnd 1KB..1MB | --rwnd
predict --rtt 100ms --loss 1% --points 5 | --points | no option is a range
predict --rtt 100ms --loss 1%..2% --points 1 | --loss | 1 must be a number of values
predict --rtt 100ms --loss 1% --csv --json | --csv | --json
predict --rtt 100ms --loss 1%..2% --explain | --explain | single values
predict --rtt 100ms --loss 1%..2% --flows 2 --size 1MB | --size | cannot be combined with a range
predict --rtt 100ms --loss 1% --set network.rt=1s | network.rt
# plan
plan users web-10mbit --rate 10mbps | --rate | 10mbit
plan users web-10mbit | missing target | --rate 200kbit | --share 95% --above
plan users web-10mbit --share 95% | --share: exactly one target | --above
plan users web-10mbit --rate 1mbit --share 95% |
    --rate and --share: exactly one target is required; use --rate, or --share and --above, or
plan users web-10mbit --share 95 --above 1mbit | --share | 95%
plan users web-10mbit --share 95% --above 1mbit --engine engset | engset gives no goodput_bps
plan users lossy-path --rate 1mbit | on-off
plan buffer web-10mbit --loss much | --loss | 1%
plan buffer web-10mbit --loss 0% | above 0 %
plan buffer web-10mbit --verify | no option --verify; tcpcast simulates a plan
plan users web-10mbit --rate 10gbit | 10 Gbit/s cannot be reached
plan buffers | plan buffers | buffer
plan buffer web-10mbit --set traffic.sauces=2 | traffic.sauces | sources
plan buffer web-10mbit --set network.bottleneck.buffer=9pkt | plan buffer solves for this key
plan users web-10mbit --rate 1mbit --set traffic.sources=9 |
    traffic.sources: plan users solves for this key
plan streams --rate 100mbit --rtt 200ms --loss 0.1% --set traffic.flows=3 |
    traffic.flows: plan streams solves
plan max-loss --goodput 50mbit --rtt 80ms --set network.bottleneck.loss=2% |
    plan max-loss solves for this key
plan streams --rtt 1ms --loss 1% | --rate | missing | 1gbit
plan streams lossy-path --rtt 1ms | --rtt | lossy-path | --set
plan streams one-path | a link with a rate
plan streams --rate 100mbit --rtt 200ms --loss 1%..2% | --loss | predict
plan max-loss --rtt 80ms | missing target; use --goodput 50mbit, or --time 2s
plan max-loss --goodput 0mbit --rtt 80ms | --goodput | above 0
plan max-loss --goodput 50mbit --rtt 80ms --rate 50mbit |
    50 Mbit/s cannot be reached | carries at most
plan max-loss --goodput 50mbit --rtt 80ms --rwnd 64KiB | cannot be reached: without random loss
# run
run web-10mbit --engine pakcet | pakcet | packet
run web-10mbit --engine engset,,packet | --engine
run web-10mbit --feed sideways | --feed | scenario
run web-10mbit --seed x | --seed
run web-10mbit --seed -1 | seed
run web-10mbit --threads 0 | --threads
run web-10mbit --sett a=b | --sett | --set
run web-10mbit --set traffic.sources | traffic.sources | =
run web-10mbit --set traffic.source=3 | traffic.source | sources
run web-10mbit --set traffic.sources=0 | traffic.sources
run web-10mbit --set network.bottleneck.rate=10mbps | network.bottleneck.rate | 10mbit
run web-10mbit --set network.bottleneck.rate=-1mbit | network.bottleneck.rate
run web-10mbit --set network.bottleneck.buffer=0pkt | network.bottleneck.buffer
run web-10mbit --set traffic.size.minimum=20pkt | traffic.size | minimum
run web-10mbit --set network.rtt=50 | network.rtt | 50ms
run web-10mbit --set traffic.kind=capture | traffic.kind | tcpcast trace FILE --models
run web-10mbit --set tcp.stack=cubic | not a stack | cubic-response formula | linux-cubic
run web-10mbit --set tcp.stack=bbr1 | not a stack | bbr-bound formula
run web-10mbit --set network.bottleneck.buffer=2h | is too large for a buffer | "50ms" | "unlimited"
run web-10mbit --set "network.bottleneck={buffer='50ms'}" | in time requires a rate | 10mbit
run lossy-path --engine bbr | no engine 'bbr';  | bbr-bound
run lossy-path --engine cubic | no engine 'cubic';  | cubic-response
run lossy-path --engine newreno | no engine 'newreno';  | the packet engine
run nowhere.toml | nowhere.toml
run web-10mbt | web-10mbit
run web-10mbit --csv --json | are mutually exclusive; use one
run bad.toml | bad.toml
# sweep
sweep one-path --engine pftk --vary network.rtt | has no values; use KEY=RANGE
sweep one-path --engine pftk --vary network.rtt=5ms | --set network.rtt=5ms
sweep one-path --engine pftk --vary network.rt=1ms..5ms | did you mean "rtt"?
sweep one-path --engine pftk --vary network.rtt=5..10 |
    sweep.network.rtt: 5 has no unit; use "5ms"
sweep one-path --engine pftk --vary network.rtt=5..10ms |
    sweep.network.rtt: "5" has no unit; use "5ms"
sweep one-path --engine pftk --vary network.rtt=10ms..-5ms |
    sweep.network.rtt: "-5ms" is negative; use "5ms"
sweep one-path --engine pftk --vary network.rtt=1s..1000000000s |
    is too large; use at most "100000000s"
sweep one-path --engine pftk --vary network.rtt=1ms..2mbit | has ends of different kinds
sweep one-path --engine pftk --vary network.bottleneck.rate=1mbps..9mbps | may mean bits or bytes
sweep one-path --engine pftk --vary latin=x | sweep.latin:
sweep one-path --vary network.rtt=10ms,20ms --vary network.rtt=10ms,30ms |
    another --vary also sets network.rtt; omit one
sweep one-path --vary network.rtt=10ms,20ms --set network.rtt=1s |
    --set also sets network.rtt; omit one
sweep one-path | no key varies
sweep one-path --vary network.rtt=5ms,9ms --csv --out 'a folder' | tcpcast query 'a folder'
sweep one-path --vary network.rtt=5ms,9ms --csv --json | --csv and --json are mutually exclusive
sweep lossy-path --vary network.rtt=1s,2s --level goodput_bps=50mbit | add --plot DIR
sweep lossy-path --vary network.rtt=1s,2s --plot out --level goodput_bps | use METRIC=VALUE
sweep lossy-path --vary network.rtt=1s,2s --plot out --level goodput=1 | did you mean "goodput_pps"
sweep lossy-path --vary network.rtt=1s,2s --plot out --level goodput_bps=50ms | --level goodput_bps:
sweep lossy-path --plot o --vary run.seed=1,2 --vary network.rtt=1s,2s --vary traffic.flows=1,2 |
    one or two
# report
report one-path --out a.txt | must end in .html or .md
report empty | this folder contains no captures
report one-path two | a report covers captures or one scenario, not both
report c.pcap --seed 1 | --seed requires a scenario, but c.pcap is a capture
# trace
trace c.pcap --group-by port | must be all, pair, source or destination
trace c.pcap --rtt 60ms | add --group-by
trace c.pcap --group-by all --rtt 60 | 60ms
trace c.pcap --group-by all --rtt 0ms | above 0
trace c.pcap --group-by all --table intervals | mutually exclusive
trace c.pcap --json --csv
trace c.pcap --models --csv | --json
trace c.pcap --models --table rounds | --models cannot be combined with --csv or --table
trace c.pcap --table retransmision | there is no table 'retransmision'; use connections, requests
trace c.pcap --table retransmision | did you mean 'retransmissions'?
trace c.pcap --connection 3 | there is no connection 3 with data; choose a number from 0 to
trace c.pcap --connection 192.0.2.77 | no data are sent from or to "192.0.2.77"
trace - -
trace
trace empty | this is a folder; use a capture, or read all captures in the folder
trace c.pcap c.pcap --scenario a.toml | requires exactly one FILE
trace c.pcap --scenario a.toml --connection 7 | no connection 7
trace nowhere.pcap --scenario - | standard output
trace nowhere.pcap --plot '' | --plot
trace nowhere.pcap --parquet '' | --parquet
trace nowhere.pcap --scenario '' | --scenario
# All commands.
run web-10mbit --html a.html | there is no option --html; use --out FILE.html
trace a.pcap --markdown a.md | there is no option --markdown; use --out FILE.md
plan buffer web-10mbit --html a.html | use --out FILE.html
reproduce engset --output a | there is no option --output; use --out DIR
link --statistics a.json -- true | there is no option --statistics; use --out FILE
run web-10mbit --show | there is no option --show; use --print-scenario
run lossy-path --loss 1% | use --set network.bottleneck.loss=1%
run web-10mbit --users=50 | use --set traffic.sources=50
run lossy-path --cc cubic | use --set tcp.stack=linux-cubic
run lossy-path --cc pftk-reno | use --set tcp.stack=pftk-reno
sweep lossy-path --duration 60s | use --set run.duration=60s
run lossy-path --bandwidth 10mbit | use --set network.bottleneck.rate=10mbit
predict --bandwidth 10mbit --rtt 1s | there is no option --bandwidth; use --rate 10mbit
plan streams --delay 10ms | there is no option --delay; use --rtt 10ms
link --cc cubic -- true | use --set tcp.stack=linux-cubic
run lossy-path --loss | use --set network.bottleneck.loss=VALUE
run lossy-path --colour | No such option: --colour
rnu | no command 'rnu'; did you mean 'run'?
reproduction | no command 'reproduction'; did you mean 'reproduce'?
sweeps | no command 'sweeps'; did you mean 'sweep'?
engines --jsn | tcpcast engines:  | --json
reproduce engest | engset
serve --port 70000 | --port: 70000 must be between
run web-10mbit --engine | tcpcast run:  | Try 'tcpcast run --help'.
run web-10mbit --nope | tcpcast run:  | Try 'tcpcast run --help'.
plan users --nope | tcpcast plan users:  | Try 'tcpcast plan users --help'.
plan users --rate | tcpcast plan users:  | Try 'tcpcast plan users --help'.
--nope | tcpcast:  | Try 'tcpcast --help'.
"""
"""Commands, and the texts that their messages contain."""


@pytest.mark.parametrize(
    "row", re.sub(r"\n +", " ", re.sub("#.*\n", "", REFUSED)).strip().splitlines()
)
def test_refused_command_states_what_to_write(
    row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("bad.toml").write_text("name = \n", encoding="utf-8")
    Path("c.pcap").symlink_to(TRANSFER)
    before = sorted(tmp_path.iterdir())
    command, *words = row.split(" | ")
    assert main(shlex.split(command)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert all(word in err for word in words), err
    assert sorted(tmp_path.iterdir()) == before
