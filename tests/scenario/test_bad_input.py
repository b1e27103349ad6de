"""Bad input: each error is a short line with the dotted key and the correction."""

import copy
import json
import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.errors import ScenarioError
from tcpcast.scenario import Scenario, get_packaged_names, load, parse_assignments

LINE = re.compile(
    r"[\w.-]+: .+(; (write|leave|run|set|did you mean|the keys here are)|unknown key).+", re.DOTALL
)


def refused(*assignments: str, name: str = "web-10mbit") -> list[str]:
    """Return the lines about a packaged scenario with some ``--set``."""
    with pytest.raises(ScenarioError) as caught:
        load(name, changes=parse_assignments(assignments))
    assert caught.value.exit_code == 2
    lines = str(caught.value).splitlines()
    for line in lines:
        assert LINE.fullmatch(line), line
        assert len(line) < 400
    return lines


@pytest.mark.parametrize(
    ("change", "line"),
    [
        # An unknown key.
        (
            "network.botleneck.rate=3mbit",
            'network.botleneck: unknown key; did you mean "bottleneck"?',
        ),
        ("netwrk.rtt=50ms", 'netwrk: unknown key; did you mean "network"?'),
        (
            "network.loss=1%",
            'network.loss: unknown key; write "ingress.loss" or "bottleneck.loss"',
        ),
        (
            "network.rate=10mbit",
            'network.rate: unknown key; write "ingress.rate" or "bottleneck.rate"',
        ),
        ("rtt=50ms", 'rtt: unknown key; write "network.rtt" or'),
        ("tcp.rcv_wnd=3", 'tcp.rcv_wnd: unknown key; did you mean "receiver_window"?'),
        ("tcp.x=3", "tcp.x: unknown key; the keys here are stack, initial_window"),
        ("traffic.size.man=3", 'traffic.size.man: unknown key; did you mean "mean"?'),
        (
            "network.bottleneck.loss={model='bernoulli',rat='1%',rate='1%'}",
            "network.bottleneck.loss.rat",
        ),
        # A wrong unit.
        (
            "network.bottleneck.rate=10mbps",
            'network.bottleneck.rate: "10mbps" may mean bits or bytes',
        ),
        ("network.rtt=50", 'network.rtt: 50 has no unit; write "50ms"'),
        (
            "tcp.host_noise=zero",
            'tcp.host_noise: "zero" is not a time; write, for example, "0.1ms"',
        ),
        ("run.duration=60", 'run.duration: 60 has no unit; write "60s"'),
        ("run.max_wall=soon", 'run.max_wall: "soon" is not a time; write, for example, "60s"'),
        ("network.rtt=50MB", 'network.rtt: "50MB" is not a time'),
        ("network.packet=1500", 'network.packet: 1500 has no unit; write "1500B"'),
        (
            "network.bottleneck.buffer=150",
            'network.bottleneck.buffer: 150 has no unit; write "150pkt"',
        ),
        ("network.bottleneck.rate=10MB", "network.bottleneck.rate: "),
        ("traffic.size.mean=12ms", "traffic.size.mean: "),
        ("traffic.off.mean=3pkt", "traffic.off.mean: "),
        # Negative, zero.
        ("network.rtt=-50ms", 'network.rtt: "-50ms" is negative; write "50ms"'),
        ("traffic.off.mean=-1s", "traffic.off.mean: "),
        ("traffic.sources=-134", "traffic.sources: -134 is too small; write at least 1"),
        ("network.bottleneck.loss=-1%", "network.bottleneck.loss: "),
        ("run.seed=-1", "run.seed: -1 is too small; write at least 0"),
        ("traffic.sources=0", "traffic.sources: 0 is too small; write at least 1"),
        ("network.bottleneck.buffer=0pkt", 'network.bottleneck.buffer: "0pkt" holds no packet'),
        ("network.bottleneck.buffer=0", "network.bottleneck.buffer: 0 holds no packet"),
        ("network.bottleneck.buffer=0B", 'network.bottleneck.buffer: "0B" holds no packet'),
        *(
            (
                f"network.bottleneck.buffer={typed}",
                f'network.bottleneck.buffer: "{typed}" is not above 0 and at most 1,000,000 ',
            )
            for typed in ("0bdp", "-3bdp", "x bdp", "1e13bdp", "1e999bdp", "bdp")
        ),
        ("network.bottleneck.rate=0mbit", "network.bottleneck.rate: "),
        ("network.rtt=0s", "network.rtt: "),
        ("traffic.off.mean=0s", "traffic.off.mean: must be above 0"),
        ("traffic.off={distribution='constant',value='0s'}", "traffic.off: the mean OFF time is 0"),
        ("traffic.size.mean=0.5pkt", "traffic.size.minimum: 3pkt is not below the mean, 0.5pkt"),
        (
            "traffic.size={distribution='constant',value=0.5}",
            "traffic.size: the mean size, 0.5pkt, is below",
        ),
        ("tcp.receiver_window=0", "tcp.receiver_window: 0 is less than one packet"),
        ("tcp.receiver_window=100B", 'tcp.receiver_window: "100B" is less than one packet'),
        ("tcp.initial_window=0", "tcp.initial_window: "),
        ("tcp.min_rto=0s", "tcp.min_rto: "),
        ("tcp.duplicate_threshold=0", "tcp.duplicate_threshold: 0 is too small; write at least 1"),
        ("tcp.duplicate_threshold=2.5", "tcp.duplicate_threshold: 2.5 is not a whole number"),
        (
            "tcp.rules.last_packets_threshold=0",
            'tcp.rules.last_packets_threshold: 0 is too small; write at least 1, or "dupl',
        ),
        ("tcp.limited_transmit=1", "tcp.limited_transmit: 1 is not true or false; write true"),
        ("tcp.limited_transmit=on", 'tcp.limited_transmit: "on" is not true or false; write true'),
        (
            "tcp.rules.limited_transmit_on=third",
            'tcp.rules.limited_transmit_on: "third" is not a duplicate; write "each" or "second"',
        ),
        (
            "tcp.rules.limited_transmit_on=second",
            "tcp.rules.limited_transmit_on: needs tcp.limited_transmit = true; write this key also",
        ),
        (
            "tcp.rules.recovery=sack",
            'tcp.rules.recovery: "sack" is not a recovery rule; write "reno", "newreno", "',
        ),
        ("tcp.rules=send", 'tcp.rules: "send" is not a table; write { recovery = "reno" }'),
        (
            "tcp.rules.timer=send",
            'tcp.rules.timer: unknown key; did you mean "timer_restart"?',
        ),
        (
            "tcp.rules.backoff_until=never",
            'tcp.rules.backoff_until: "never" is not a rule; write "sample" or "ack"',
        ),
        (
            "tcp.rules.window_unit=bit",
            'tcp.rules.window_unit: "bit" is not a unit; write "packets"',
        ),
        ("run.transfers=0", "run.transfers: "),
        ("run.replications=0", "run.replications: "),
        # Distributions.
        ("traffic.size.minimum=30pkt", "traffic.size.minimum: 30pkt is not below the mean, 12pkt"),
        ("traffic.size.minimum=12pkt", "traffic.size.minimum: 12pkt is not below the mean, 12pkt"),
        ("traffic.off.minimum=2s", "traffic.off.minimum: 2s is not below the mean, 1s"),
        (
            "traffic.size={distribution='pareto',mean=12,alpha=1}",
            "traffic.size.alpha: 1 gives a distribution without a mean; write an alpha above 1",
        ),
        (
            "traffic.size={distribution='pareto',minimum=12,alpha=0.5}",
            "traffic.size.alpha: 0.5 gives a distribution without a mean",
        ),
        (
            "traffic.size={distribution='ep',mean=12,minimum=3,alpha=1.0}",
            "traffic.size.alpha: 1 gives a distribution without a mean",
        ),
        (
            "traffic.size={distribution='pareto',alpha=2}",
            "traffic.size.mean: missing; write alpha and either mean or",
        ),
        (
            "traffic.size={distribution='pareto',alpha=2,mean=3,minimum=1}",
            "traffic.size.mean: both mean",
        ),
        ("traffic.size={distribution='pareto',alpha='2',mean=3}", "traffic.size.alpha: "),
        ("traffic.size={distribution='pareto',alpha=2,mean=0}", "traffic.size.mean: "),
        (
            "traffic.size={distribution='ep',mean=3.5,minimum=3}",
            "traffic.size.mean: 3.5pkt is too small for the exponential body",
        ),
        ("traffic.size={distribution='ep',mean=12,minimum=3,tail='0%'}", "traffic.size.tail: "),
        ("traffic.size={distribution='ep',mean=12,minimum=3,tail=1}", "traffic.size.tail: "),
        (
            "traffic.size={distribution='ee',mean=12,minimum=3}",
            "traffic.size.c: missing; write c = 7",
        ),
        (
            "traffic.size={distribution='ee',mean=12,minimum=3,c=0.3}",
            "traffic.size.c: with c = 0.3, the mean of the tail is below",
        ),
        ("traffic.size={distribution='lognormal',mean=12,sd=0}", "traffic.size.sd: "),
        (
            "traffic.size={distribution='uniform',low=9,high=3}",
            "traffic.size.high: 3pkt must be above low",
        ),
        (
            "traffic.size={distribution='normal',mean=12}",
            'traffic.size.distribution: "normal" is not a distribution (did you',
        ),
        (
            "traffic.size={mean=12}",
            'traffic.size.distribution: missing; write distribution = "exponential"',
        ),
        (
            "tcp.stack=reno",
            'tcp.stack: "reno" is not a stack; write "linux-reno", or "rfc-reno", which has no '
            "SACK",
        ),
        (
            "class={name='a'}",
            "class: is a single table, but must be a list of tables",
        ),
        (
            "traffic.size=12pkt",
            'traffic.size: "12pkt" is not a distribution; write { distribution = "constant", value',
        ),
        (
            "traffic.size=2MB pareto 1.3",
            'traffic.size: "2MB pareto 1.3" is not a distribution; write { distribution = '
            '"pareto", mean = "2MB", '
            "alpha = 1.3 }",
        ),
        (
            "traffic.off=exponential 2s",
            'traffic.off: "exponential 2s" is not a distribution; write { distribution = '
            '"exponential", mean = "2s"',
        ),
        (
            "traffic.size=100kB",
            'traffic.size: "100kB" is not a distribution; write { distribution = "constant", value',
        ),
        (
            "traffic.size=12",
            'traffic.size: 12 is not a distribution; write { distribution = "constant", value '
            "= 12 }",
        ),
        (
            "traffic.off=1s",
            'traffic.off: "1s" is not a distribution; write { distribution = "constant", value '
            '= "1s"',
        ),
        (
            "traffic.off=100kB",
            'traffic.off: "100kB" is not a distribution; write { distribution = "exponential", m',
        ),
        (
            "traffic.size=2MB at random",
            'traffic.size: "2MB at random" is not a distribution; write { distribution = '
            '"exponential", mean = "12pk',
        ),
        ("traffic.size={distribution='empirical'}", "traffic.size.file: missing"),
        ("traffic.size={distribution='empirical',values=[]}", "traffic.size.values: has 0 entries"),
        (
            "traffic.size={distribution='empirical',values=3}",
            "traffic.size.values: 3 is not a list",
        ),
        (
            "traffic.size={distribution='empirical',values=[1,2],weights=[1]}",
            "traffic.size.weights: 1 weights",
        ),
        (
            "traffic.size={distribution='empirical',values=[1],weights=[-1]}",
            "traffic.size.weights.0: ",
        ),
        (
            "traffic.size={distribution='empirical',values=['x']}",
            'traffic.size.values.0: "x" is not a size',
        ),
        (
            "traffic.size={distribution='empirical',file='a',values=[1]}",
            "traffic.size.file: both file and",
        ),
        # Cross traffic.
        ("cross={}", "cross: is a single table, but must be a list of tables"),
        (
            "cross=[{}]",
            'cross.0.model: missing; write model = "poisson", "fgn", "pareto" or "trace"',
        ),
        (
            "cross=[{model='fgm'}]",
            'cross.0.model: "fgm" is not a model of cross traffic (did you mean',
        ),
        ("cross=[{model='poisson'}]", 'cross.0.mean: missing; write mean = "80%"'),
        ("cross=[{model='poisson',mean=0.8}]", "cross.0.mean: 0.8 has no unit; write"),
        (
            "cross=[{model='poisson',mean='80'}]",
            'cross.0.mean: "80" has no unit; write "80mbit", or',
        ),
        ("cross=[{model='poisson',mean='0%'}]", 'cross.0.mean: "0%" must be above 0'),
        (
            "cross=[{model='poisson',mean='unlimited'}]",
            'cross.0.mean: "unlimited" is too large',
        ),
        ("cross=[{model='poisson',mean='20000%'}]", 'cross.0.mean: "20000%" is too large'),
        (
            "cross=[{model='poisson',mean='3%',sd='4%'}]",
            'cross.0.sd: belongs to model = "fgn", not',
        ),
        (
            "cross=[{model='poisson',mean='3%',hop='bottle'}]",
            'cross.0.hop: there is no hop "bottle"',
        ),
        ("cross.0.mean=3%", "cross.0.mean: the scenario has no cross traffic; write [[cross]]"),
        (
            "cross=[{model='fgn',mean='3%',sd='2%',hurst=1}]",
            "cross.0.hurst: 1 is not a Hurst parameter; write a number above 0, at",
        ),
        (
            "cross=[{model='fgn',mean='3%',sd='2%',hurst=0.7,bin='2h'}]",
            "cross.0.bin: 7200s is outside 1us to 1h",
        ),
        (
            "cross=[{model='pareto',mean='3%',sources=2,on='1s',off='1s',alpha=1}]",
            "cross.0.alpha: 1 gives times with an infinite mean",
        ),
        ("cross=[{model='trace'}]", 'cross.0.file: missing; write file = "cross.csv"'),
        (
            "cross=[{model='trace',file='none.csv'}]",
            "cross.0.file: the file none.csv does not exist",
        ),
        ("cross=[{model='trace',file='a',times=[1]}]", "cross.0.file: both file and times"),
        ("cross=[{model='trace',times=[0],bytes=[9]}]", "cross.0.period: missing, and cannot"),
        ("cross=[{model='trace',times=[0,1],bytes=[0,0]}]", "cross.0.bytes: all sizes are 0"),
        ("cross=[{model='trace',times=[0,1],bytes=[9]}]", "cross.0.bytes: 1 sizes for 2 times"),
        (
            "cross=[{model='trace',times=[1,0],bytes=[9,9]}]",
            "cross.0.times: the times are not in ascending order",
        ),
        (
            "cross=[{model='trace',times=['x'],bytes=[9]}]",
            'cross.0.times.0: "x" is not a time in seconds; write a',
        ),
        (
            "cross=[{model='trace',times=[0,1],bytes=[9,9],period='1s'}]",
            "cross.0.period: does not end after the last time, 1s",
        ),
        (
            "cross=[{model='poisson',mean='1%',bin='1ms'}]",
            "cross.0.bin: is only for hops with shared = false",
        ),
        (
            "cross=[{model='poisson',mean='1%',name='a'},{model='poisson',mean='1%',name='a'}]",
            'cross.1.name: "a" is the name of another stream',
        ),
        (
            "tcp.timestamps=true",
            "tcp.timestamps: rfc-newreno does not support this key; write stack",
        ),
        ("tcp.handshake=true", "tcp.handshake: "),
        ("tcp.handshake=tcp", "tcp.handshake: rfc-newreno has no handshake"),
        (
            "traffic.kind=capture",
            "traffic.kind: a scenario does not read captures; run tcpcast trace FILE --models to "
            "compare a capture with formulas, or tcpcast trace FILE --scenario NAME.toml to "
            "simulate it",
        ),
        ("tcp.idle_restart=10", "tcp.idle_restart: "),
        ("tcp.idle_restart=srtt", "tcp.idle_restart: "),
        ("fixed_point.scheme=3", "fixed_point.scheme: 3"),
        ("fixed_point.moments=3", "fixed_point.moments: "),
        ("fixed_point.steps=1", "fixed_point.steps: "),
        ("fixed_point.step=0s", "fixed_point.step: "),
        (
            "fixed_point.reference=1",
            'fixed_point.reference: unknown key; did you mean "references"?',
        ),
        ("tcp.rules.max_plus={}", 'tcp.rules.max_plus: is only for stack = "max-plus-reno"'),
        (
            "tcp={stack='max-plus-reno',rules={max_plus={growth='none'}}}",
            "tcp.rules.max_plus.growth: ",
        ),
        (
            "tcp={stack='max-plus-reno',rules={timer_restart='send'}}",
            "tcp.rules.timer_restart: max-plus-reno has instantaneous loss feedback",
        ),
        ("tcp={stack='max-plus-reno',delayed_acks=true}", "tcp.delayed_acks: max-plus-reno has i"),
        ("tcp={stack='max-plus-reno',limited_transmit=true}", "tcp.limited_transmit: max-plus"),
        ("traffic.connection=kept", 'traffic.connection: "kept" is not a kind of connection'),
        ("traffic.start=full", 'traffic.start: "full" is not a start'),
        ("traffic.size_rounding=up", 'traffic.size_rounding: "up" is not a rounding'),
        (
            "traffic.arrivals={distribution='poisson',rate='20/s'}",
            'traffic.arrivals: is only for kind = "transfers"',
        ),
        # Active queue management.
        (
            "network.bottleneck.queue=coddel",
            'network.bottleneck.queue: "coddel" is not a queue discipline (did you mean "codel"?)',
        ),
        (
            "network.bottleneck.queue={kind='codel',taget='5ms'}",
            'network.bottleneck.queue.taget: unknown key; did you mean "target"?',
        ),
        (
            "network.bottleneck.queue={kind='pie',alpha='fast'}",
            'network.bottleneck.queue.alpha: "fast" is not a gain; write a number from 0 to 1e+06',
        ),
        (
            "network.bottleneck.queue={kind='fq_codel',quantum='0B'}",
            "network.bottleneck.queue.quantum: must be above 0 and at most 1 GB; write",
        ),
        (
            "network.bottleneck.queue={kind='codel',rules='bsd'}",
            'network.bottleneck.queue.rules: "bsd" is not a set of rules; write "rfc" or "linux"',
        ),
        (
            "network.bottleneck.queue={kind='fq_codel',target='0.1s'}",
            'network.bottleneck.queue.target: must be below interval; write, for example, "5ms"',
        ),
        (
            "network.bottleneck.queue={kind='codel',interval='4ms'}",
            'network.bottleneck.queue.target: must be below interval; write, for example, "200us"',
        ),
        (
            "network.bottleneck={queue='codel',buffer='20pkt'}",
            "network.bottleneck.rate: CoDel needs a limited rate; write",
        ),
        (
            "network.ingress.queue=fq_codel",
            "network.ingress.queue: FQ-CoDel is only for the bottleneck or a shared hop; write",
        ),
        (
            "tcp.ecn=true",
            'tcp.ecn: rfc-newreno does not support this key; write stack = "linux-reno", or leave',
        ),
        # RED.
        (
            "network.bottleneck.queue={kind='red',min=5}",
            'network.bottleneck.queue.min: unknown key; did you mean "min_threshold"?',
        ),
        (
            "network.bottleneck.queue={kind='red',min_threshold=5}",
            "network.bottleneck.queue.min_threshold: 5 is not a threshold; write a size",
        ),
        (
            "network.bottleneck.queue={kind='red',min_threshold='0pkt'}",
            'network.bottleneck.queue.min_threshold: "0pkt" is out of range',
        ),
        (
            "network.bottleneck.queue={kind='red',min_threshold='9KB'}",
            'network.bottleneck.queue.min_threshold: "9KB" is not a threshold',
        ),
        (
            "network.bottleneck.queue={kind='red',max_threshold='5pkt'}",
            "network.bottleneck.queue.max_threshold: 5pkt is not above min_threshold, 5pkt",
        ),
        (
            "network.bottleneck.queue={kind='red',min_threshold='9pkt',max_threshold='4pkt'}",
            "network.bottleneck.queue.max_threshold: 4pkt is not above min_threshold, 9pkt",
        ),
        (
            "network.bottleneck.queue={kind='red',max_probability='0%'}",
            "network.bottleneck.queue.max_probability: must be above 0",
        ),
        (
            "network.bottleneck.queue={kind='red',max_probability='0.0 %'}",
            "network.bottleneck.queue.max_probability: must be above 0",
        ),
        (
            "network.bottleneck.queue={kind='red',max_probability='120%'}",
            "network.bottleneck.queue.max_probability: ",
        ),
        ("network.bottleneck.queue={kind='red',weight=0}", "network.bottleneck.queue.weight: 0 is"),
        ("network.bottleneck.queue={kind='red',weight=2}", "network.bottleneck.queue.weight: 2 is"),
        (
            "network.bottleneck.queue={kind='red',weight=true}",
            "network.bottleneck.queue.weight: true is not a weight",
        ),
        (
            "network.bottleneck.queue={kind='red',gentle='yes'}",
            'network.bottleneck.queue.gentle: "yes" is not true or false',
        ),
        (
            "network.bottleneck.queue={kind='red',target_delay='5pkt'}",
            "network.bottleneck.queue.target_delay: ",
        ),
        (
            "network.bottleneck={queue='red',buffer='20pkt'}",
            "network.bottleneck.rate: RED needs a limited rate; write",
        ),
        (
            "network.ingress.queue=red",
            "network.ingress.queue: RED is only for the bottleneck or a shared hop",
        ),
        (
            "network.egress.queue={kind='red'}",
            "network.egress.queue: RED is only for the bottleneck",
        ),
        (
            "tcp.stack=cubic",
            'tcp.stack: "cubic" is not a stack; write "linux-cubic", or use the '
            "formula: engine cubic-response",
        ),
        (
            "tcp.stack=bbr2",
            'tcp.stack: "bbr2": BBR version 2 is not simulated; write "linux-bbr" for version 1',
        ),
        ("tcp.stack=BBRv3", 'tcp.stack: "BBRv3" is not a stack; write "bbr3"'),
        (
            "tcp.stack=bbr",
            'tcp.stack: "bbr" is not a stack; write "linux-bbr", or use the formula: '
            "engine bbr-bound",
        ),
        ("tcp.sack=false", "tcp.sack: the stack determines SACK; write stack = "),
        ("tcp.rack=false", "tcp.rack: the stack determines RACK; write stack = "),
        ("tcp.pacing=true", "tcp.pacing: the stack determines pacing; write stack"),
        (
            "tcp.congestion_control=bbr",
            "tcp.congestion_control: the stack determines the congestion control; write",
        ),
        (
            "tcp={stack='bbr3', ecn=true}",
            "tcp.ecn: bbr3 does not use ECN: its draft (draft-ietf-ccwg-bbr-06, section 3.7)",
        ),
        ("tcp.stack=newreno", 'tcp.stack: "newreno" is not a stack (did you mean "rfc-newreno"?)'),
        # Contradictions.
        ("network.rtt=7ms", "network.rtt: 7ms is less than the transmission times of one packet"),
        ("network.bottleneck.delay=10ms", "network.rtt: 50ms contradicts the links' delays"),
        (
            "network.return_delay=50ms",
            "network.return_delay: 50ms is more than the total propagation delay",
        ),
        ("network.return_delay=-1ms", "network.return_delay: "),
        (
            "network.bottleneck.buffer=1000B",
            'network.bottleneck.buffer: "1000B" is less than one pack',
        ),
        ("network.ingress.buffer=1bdp", ""),
        (
            "network.ingress={buffer='1bdp'}",
            "network.ingress.buffer: a bandwidth-delay product needs",
        ),
        ("tcp.min_rto=100s", "tcp.min_rto: 100s is above max_rto, 64s"),
        ("tcp.initial_rto=100s", "tcp.initial_rto: 100s is above max_rto, 64s"),
        (
            "tcp.rules.last_packets_threshold=4",
            "tcp.rules.last_packets_threshold: 4 is above tcp.duplicate_threshold, 3",
        ),
        (
            "tcp={stack='rfc-newreno',duplicate_threshold=1,rules={last_packets_threshold=2}}",
            "tcp.rules.last_packets_threshold: 2 is above tcp.duplicate_threshold, 1",
        ),
        ("run.duration=10s", "run.warmup: 20s is not below the duration, 10s"),
        (
            "probes.flows=[134]",
            "probes.flows.0: there is no flow 134; write a number from 0 to 133",
        ),
        # Extreme values.
        (
            "traffic.sources=20000000",
            "traffic.sources: 20000000 is too large; write at most 10000000",
        ),
        ("traffic.sources=1e300", "traffic.sources: "),
        ("traffic.sources=nan", "traffic.sources: nan is not a count"),
        ("traffic.sources=inf", "traffic.sources: inf is not a count"),
        ("traffic.sources=1.5", "traffic.sources: 1.5 is not a whole number"),
        ("network.bottleneck.rate=1e30gbit", "network.bottleneck.rate: "),
        ("network.rtt=1e99h", "network.rtt: "),
        ("network.rtt=inf", "network.rtt: "),
        ("network.rtt=nan", "network.rtt: "),
        ("network.packet=40B", 'network.packet: "40B" is not the size of an IP packet'),
        ("network.packet=65536B", "network.packet: "),
        ("network.ack=0B", "network.ack: "),
        ("network.bottleneck.buffer=1e11pkt", "network.bottleneck.buffer: "),
        ("tcp.receiver_window=1e10", "tcp.receiver_window: "),
        ("network.bottleneck.loss=100%", "network.bottleneck.loss: "),
        (
            "network.bottleneck.loss=1",
            'network.bottleneck.loss: 1 loses every packet; write, for example, "1%"',
        ),
        ("network.bottleneck.loss=5", 'network.bottleneck.loss: 5 is above 1; write "5%"'),
        ("network.bottleneck.loss={to_bad='1%'}", "network.bottleneck.loss.model: missing"),
        ("network.bottleneck.loss={model='x'}", 'network.bottleneck.loss.model: "x" is not a loss'),
        (
            "network.bottleneck.loss={model='gilbert-elliott',to_bad='1%',to_good='0%'}",
            "network.bottleneck.loss.to_good: must be above 0",
        ),
        (
            "network.bottleneck.loss={model='gilbert-elliott',to_bad='1%',to_good='1%',loss_good=1}",
            "network.bottleneck.loss.loss_bad: loses every packet",
        ),
        ("network.bottleneck.loss_at=after", "network.bottleneck.loss_at: "),
        (
            "network.bottleneck.loss_at=behind",
            'network.bottleneck.loss_at: this link has no random loss; write loss = "1%", or leave '
            "loss_at out",
        ),
        ("network.egress.loss_at=behind", "network.egress.loss_at: this link has no random loss"),
        (
            "network.bottleneck={loss={model='rest-of-round',rate='1%'},loss_at='behind'}",
            "network.bottleneck.loss_at: correlated loss within a round always occurs before",
        ),
        (
            "network.bottleneck.loss={model='rest-of-round',rate='100%'}",
            "network.bottleneck.loss.rate: loses every packet",
        ),
        (
            "network.bottleneck.loss={model='rest-of-round'}",
            'network.bottleneck.loss.rate: missing; write rate = "1%"',
        ),
        (
            "network.bottleneck.loss={model='rest-of-round',rate='1%',to_bad='1%'}",
            "network.bottleneck.loss.to_bad: unknown key",
        ),
        (
            "network.ingress.loss={model='rest-of-round',rate='1%'}",
            "network.ingress.loss: correlated loss within a round is only for the bottleneck",
        ),
        (
            "network.egress.loss={model='rest-of-round',rate='0%'}",
            "network.egress.loss: correlated loss within a round is only for the bottleneck",
        ),
        ("run.precision=0%", "run.precision: "),
        (
            "run.precision=1e-300",
            "run.precision: 1e-300 is below the precision of floating-point numbers (16 digits)",
        ),
        ("run.precision={}", "run.precision: "),
        (
            "run.precision={loss_rate='1%'}",
            'run.precision.loss_rate: "loss_rate" is not a metric with a precision (did',
        ),
        ("run.precision={queue_max_pkts='1%'}", "run.precision.queue_max_pkts: "),
        ("run.max_wall=0s", "run.max_wall: "),
        ("run.warmup=30m", "run.warmup: "),
        ("run.seed=9223372036854775808", "run.seed: "),
        # The wrong kind of value.
        ("network=3", "network: 3 is not a table; write { rtt = "),
        ("network.ingress=3mbit", 'network.ingress: "3mbit" is not a table; write { rate ='),
        ("traffic=3", "traffic: 3 is not a table"),
        ("traffic.kind=3", "traffic.kind: 3 is not a kind of traffic"),
        ("tcp.delayed_acks=yes", 'tcp.delayed_acks: "yes" is not true or false; write true'),
        ("tcp.initial_ssthresh=many", "tcp.initial_ssthresh: "),
        ("tcp.stack=3", "tcp.stack: 3 is not a stack"),
        ("name=3", "name: 3 is not a text"),
        ("network.rtt={}", "network.rtt: "),
        ("network.rtt=[1]", "network.rtt: "),
        ("network.rtt=true", "network.rtt: true is not a time"),
        ("network.bottleneck.loss=2020-01-01", "network.bottleneck.loss: "),
        ("class=3", "class: 3 is not a list"),
        ("class=[3]", "class.0: 3 is not a table"),
        ("probes.flows=3", "probes.flows: 3 is not a list; write [0, 1]"),
        ("probes.pcap=[{link='egress',file='x'}]", 'probes.pcap.0.link: "egress" is not a place'),
        ("probes.pcap=[{link='sender',file=''}]", "probes.pcap.0.file: "),
        (
            'probes.pcap=[{link="sender",file="a\\u0000b"}]',
            'probes.pcap.0.file: "a\\u0000b" is not a file name; write "in.pcap"',
        ),
        (
            "traffic.correlation=-1.5",
            "traffic.correlation: -1.5 is not a correlation; write a number from -1 to 1",
        ),
        (
            "traffic.correlation=true",
            "traffic.correlation: true is not a correlation; write a number from -1 to 1",
        ),
        ("probes.goodput_shares=95", "probes.goodput_shares: 95 is not a list; write "),
        ("probes.goodput_shares=[]", "probes.goodput_shares: "),
        (
            "probes.goodput_shares=['100%']",
            'probes.goodput_shares.0: "100%" is not a share of the files; write, for example',
        ),
        (
            "probes.goodput_shares=[-1]",
            "probes.goodput_shares.0: -1 is not a share of the files; write",
        ),
        (
            "probes.goodput_shares=[0.5,'50%']",
            "probes.goodput_shares: 50% is listed twice; write each share once",
        ),
        ("probes.goodput_packets=0", "probes.goodput_packets: 0 is too small; write at least 1"),
        ("probes.goodput_least='1s'", "probes.goodput_least: "),
        (
            "probes.goodput_least=1e10",
            "probes.goodput_least: 10000000000pkt is above the largest size of a file; write, for "
            'example, "10pkt"',
        ),
        # Changes of missing tables.
        (
            "network.rtt.x=3",
            'network.rtt.x: network.rtt is "50ms", not a table; set network.rtt itself',
        ),
        ("class.far.rtt=3s", "class.far.rtt: the scenario has no classes"),
    ],
)
def test_each_error_gives_one_line(change: str, line: str) -> None:
    if not line:
        assert load("web-10mbit", changes=parse_assignments([change]))
        return
    (only,) = refused(change)
    assert only.startswith(line)


def test_all_errors_are_reported() -> None:
    lines = refused(
        "network.rtt=50", "network.bottleneck.rate=10mbps", "traffic.sources=0", "tcp.stack=reno"
    )
    assert [line.split(":")[0] for line in lines] == [
        "network.rtt",
        "network.bottleneck.rate",
        "traffic.sources",
        "tcp.stack",
    ]


def test_max_plus_reno_rejects_captures() -> None:
    (line,) = refused(
        "tcp.stack=max-plus-reno",
        "tcp.limited_transmit=false",
        "probes.pcap=[{link='sender',file='out.pcap'}]",
    )
    assert line.startswith("probes.pcap: max-plus-reno acknowledges every single packet")


def test_number_of_reported_errors_is_limited() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict({f"key{n}": 1 for n in range(1000)})
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "and 983 more"


def test_run_rejects_two_lengths_and_no_length() -> None:
    assert refused("run.duration=60s", "run.transfers=5") == [
        "run.duration: transfers and duration are both given; write one of them"
    ]
    tables = load("web-10mbit").resolved()
    del tables["run"]["transfers"]
    with pytest.raises(
        ScenarioError, match=r"^run\.duration: missing; write duration = \"300s\", or"
    ):
        Scenario.from_dict(tables)
    del tables["run"]
    with pytest.raises(ScenarioError, match=r"^run: missing; write run = { duration = \"300s\" }$"):
        Scenario.from_dict(tables)


def test_isolated_transfers_need_no_run() -> None:
    tables = load("short-transfers").resolved()
    del tables["run"]
    assert Scenario.from_dict(tables).run.duration is None
    tables["traffic"] |= {"arrivals": {"distribution": "poisson", "rate": "2/s"}, "count": None}
    with pytest.raises(ScenarioError, match=r"^run: missing; write run"):
        Scenario.from_dict(tables)


def test_bulk_flows_reject_number_of_transfers() -> None:
    (line,) = refused("run.transfers=5", name="lossy-path")
    assert line.startswith("run.transfers: bulk flows never complete; write duration")


def test_path_without_round_trip_time_is_rejected() -> None:
    network: dict[str, Any] = {"bottleneck": {"delay": "0s", "loss": "1%"}}
    tables: dict[str, Any] = {
        "network": network,
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"stack": "linux-cubic", "receiver_window": 10, "host_noise": "0s"},
        "run": {"duration": "10s"},
    }
    with pytest.raises(ScenarioError) as rejected:
        Scenario.from_dict(tables)
    assert str(rejected.value).startswith("network.bottleneck.delay: the round-trip time is 0")
    tables["network"] = {"hop": [{"name": "a", "delay": "0s"}, {"name": "b", "delay": "0s"}]}
    with pytest.raises(ScenarioError, match=r"^network\.hop\.a\.delay: the round-trip time is 0"):
        Scenario.from_dict(tables)
    network["ingress"] = {"delay": "1us"}
    Scenario.from_dict(tables | {"network": network})


def test_bulk_flows_without_limit_are_rejected() -> None:
    (line,) = refused(
        "tcp.receiver_window=unlimited", "network.bottleneck.loss=0%", name="one-path"
    )
    assert line.startswith("network.bottleneck.rate: nothing limits the flows; write")
    load("one-path", changes={"tcp.receiver_window": "unlimited"})
    load("one-path", changes={"network.bottleneck.loss": "0%"})


def test_empty_scenario_lists_missing_tables() -> None:
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_dict({})
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "network",
        "traffic",
        "run",
    ]
    nothings: list[Any] = [[], 3, None]
    for nothing in nothings:
        with pytest.raises(ScenarioError, match="is not a table; write"):
            Scenario.from_dict(nothing)


def test_network_without_rtt_and_delays_is_rejected() -> None:
    tables = load("web-10mbit").resolved()
    del tables["network"]["rtt"]
    with pytest.raises(
        ScenarioError, match=r'^network\.rtt: missing; write rtt = "50ms", or a delay'
    ):
        Scenario.from_dict(tables)


@pytest.mark.parametrize("assignment", ["traffic.sources", "=3", " = 3", ""])
def test_assignments_without_key_or_equals_sign_are_rejected(assignment: str) -> None:
    with pytest.raises(ScenarioError, match=r"is not an assignment; write KEY=VALUE"):
        parse_assignments([assignment])


@pytest.mark.parametrize("key", [".", "a..b", ".a", "a."])
def test_malformed_dotted_keys_are_rejected(key: str) -> None:
    with pytest.raises(ScenarioError, match=r"not a dotted key; write, for example, run\.seed"):
        load("web-10mbit", changes={key: 1})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("44", 44),
        ("0.01", 0.01),
        ("true", True),
        ("300pkt", "300pkt"),
        ('"300pkt"', "300pkt"),
        ("1%", "1%"),
        ("", ""),
        ("[1, 2]", [1, 2]),
        (
            "{ distribution = 'constant', value = '1s' }",
            {"distribution": "constant", "value": "1s"},
        ),
        ("3\nother = 4", "3\nother = 4"),
        ("a=b", "a=b"),
        ("9" * 5000, "9" * 5000),
        ("[" * 5000, "[" * 5000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_assignment_values_are_parsed_as_toml_or_text(text: str, value: Any) -> None:
    assert parse_assignments([f" some.key = {text}"]) == {"some.key": value}


# Random values at random positions: the result is a scenario or error lines.

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["10mbps", "50ms", "1%", "12pkt", "unlimited", "1e999s", "\x00", "-0s", "½"]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.just({"distribution": "exponential"}),
    st.just({"kind": "bulk"}),
    st.just([{"name": "far"}]),
)


def paths(tables: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = list(tables.items()) if isinstance(tables, dict) else []
    below += list(enumerate(tables)) if isinstance(tables, list) else []
    return [above, *(p for key, value in below for p in paths(value, (*above, key)))]


@cache
def as_packaged(name: str) -> dict[str, Any]:
    return load(name).resolved()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_junk_values_give_only_error_lines(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(get_packaged_names()))
    tables = copy.deepcopy(as_packaged(name))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(paths(tables)[1:]))
        holder: Any = tables
        for key in path[:-1]:
            holder = holder[key]
        if data.draw(st.booleans()):
            holder[path[-1]] = copy.deepcopy(data.draw(junk))
        elif isinstance(holder, dict):
            holder[data.draw(st.text(max_size=8))] = copy.deepcopy(data.draw(junk))
    try:
        again = Scenario.from_dict(tables)
    except ScenarioError as error:
        for line in str(error).splitlines():
            assert re.match(r".*: .", line) or re.fullmatch(r"and \d+ more", line)
    else:
        assert Scenario.from_dict(again.resolved()) == again
        json.dumps(again.resolved(), allow_nan=False)


@pytest.mark.parametrize("prefix", ["", "network.", "network.bottleneck."])
def test_long_key_is_shortened_in_message(prefix: str) -> None:
    with pytest.raises(ScenarioError, match="unknown key") as caught:
        load("web-10mbit", changes=parse_assignments([f"{prefix}{'a' * 100_000}=1"]))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ('name="a\\nb"', "a name (any characters except line breaks and other control"),
        ('network.hop=[{name="ä"}]', "a name (a letter, then letters without accents, digits"),
        (f"name={'a' * 201}", "short enough (at most 200 characters)"),
    ],
)
def test_name_message_matches_pattern(change: str, rule: str) -> None:
    assert any(f"is not {rule}" in line for line in refused(change))


def test_title_accepts_all_visible_characters() -> None:
    assert load("web-10mbit", changes={"name": "ä / <b>, 1"}).name == "ä / <b>, 1"
