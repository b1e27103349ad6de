"""Bad input: each error is a short line with the dotted key and the correction."""

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario, get_packaged_names, load, parse_assignments

REMEDY = (
    "use|add|list|sort|begin|move|describe|(here )?leave|omit|remove|run|set|did you mean|"
    "the keys here are"
)
LINE = re.compile(rf"[\w.\" -]+: .+(; ({REMEDY})|unknown key).+", re.DOTALL)


def refused(*assignments: str, name: str = "web-10mbit") -> list[str]:
    """Return the lines about a packaged scenario with some ``--set``."""
    with pytest.raises(ScenarioError) as caught:
        load(name, changes=parse_assignments(assignments))
    assert caught.value.exit_code == 2
    lines = str(caught.value).splitlines()
    for line in lines:
        assert LINE.fullmatch(line), line
        assert len(line) < 450  # the list of all stacks
    return lines


EACH_ERROR = r"""
[web-10mbit]
# An unknown key.
network.botleneck.rate=3mbit | network.botleneck: unknown key; did you mean "bottleneck"?
netwrk.rtt=50ms | netwrk: unknown key; did you mean "network"?
network.loss=1% | : unknown key; use "ingress.loss" or "bottleneck.loss"
network.rate=10mbit | : unknown key; use "ingress.rate" or "bottleneck.rate"
rtt=50ms | : unknown key; use "network.rtt" or
tcp.rcv_wnd=3 | : unknown key; did you mean "receiver_window"?
tcp.x=3 | : unknown key; the keys here are stack, initial_window
traffic.size.man=3 | : unknown key; did you mean "mean"?
network.bottleneck.loss={model='bernoulli',rat='1%',rate='1%'} | .rat
# A wrong unit.
network.bottleneck.rate=10mbps | : "10mbps" may mean bits or bytes
network.rtt=50 | : 50 has no unit; use "50ms"
tcp.host_noise=zero | : "zero" is not a time; use "0.1ms", for example
run.duration=60 | : 60 has no unit; use "60s"
run.max_wall=soon | : "soon" is not a time; use "60s", for example
network.rtt=50MB | : "50MB" is not a time
network.packet=1500 | : 1500 has no unit; use "1500B"
network.bottleneck.buffer=150 | : 150 has no unit; use "150pkt"
network.bottleneck.rate=10MB | :
traffic.size.mean=12ms | :
traffic.off.mean=3pkt | :
# Negative, zero.
network.rtt=-50ms | : "-50ms" is negative; use "50ms"
traffic.sources=-134 | : -134 is too small; use at least 1
network.bottleneck.loss=-1% | :
run.seed=-1 | : -1 is too small; use at least 0
traffic.sources=0 | : 0 is too small; use at least 1
network.bottleneck.buffer=0pkt | : "0pkt" has no space
network.bottleneck.buffer=0B | : "0B" has no space
network.bottleneck.buffer=0bdp | : "0bdp" must be above 0 and at most 1,000,000
network.bottleneck.buffer=-3bdp | : "-3bdp" must be above 0 and at most 1,000,000
network.bottleneck.buffer=1e13bdp | : "1e13bdp" must be above 0 and at most 1,000,000
network.bottleneck.rate=0mbit | :
network.rtt=0s | :
traffic.off.mean=0s | : must be above 0
traffic.off={distribution='constant',value='0s'} | : the mean OFF time is 0
traffic.size.mean=0.5pkt | traffic.size.minimum: 3pkt is not below the mean, 0.5pkt
traffic.size={distribution='constant',value=0.5} | : the mean size, 0.5pkt, is below
tcp.receiver_window=0 | : 0 is less than one packet
tcp.receiver_window=100B | : "100B" is less than one packet
tcp.initial_window=0 | :
tcp.min_rto=0s | :
tcp.duplicate_threshold=0 | : 0 is too small; use at least 1
tcp.duplicate_threshold=2.5 | : 2.5 is not a whole number
tcp.rules.last_packets_threshold=0 | : 0 is too small; use at least 1, or "dupl
tcp.limited_transmit=1 | : 1 is not true or false; use true
tcp.rules.limited_transmit_on=third | : "third" is not a duplicate; use "each" or "second"
tcp.rules.limited_transmit_on=second | : requires tcp.limited_transmit = true; set tcp.
tcp.rules.recovery=sack | : "sack" is not a recovery rule; use "reno", "newreno", "
tcp.rules=send | : "send" is not a table; use { recovery = "reno" }
tcp.rules.timer=send | : unknown key; did you mean "timer_restart"?
tcp.rules.backoff_until=never | : "never" is not a rule; use "sample" or "ack"
tcp.rules.window_unit=bit | : "bit" is not a unit; use "packets"
run.transfers=0 | :
run.replications=0 | :
# Distributions.
traffic.size.minimum=30pkt | : 30pkt is not below the mean, 12pkt
traffic.off.minimum=2s | : 2s is not below the mean, 1s
traffic.size={distribution='pareto',mean=12,alpha=1} |
    .alpha: 1 gives a distribution without a mean; use an alpha above 1
traffic.size={distribution='pareto',minimum=12,alpha=0.5} |
    .alpha: 0.5 gives a distribution without a mean
traffic.size={distribution='ep',mean=12,minimum=3,alpha=1.0} |
    .alpha: 1 gives a distribution without a mean
traffic.size={distribution='pareto',alpha=2} | .mean: missing; use alpha and either mean or
traffic.size={distribution='pareto',alpha=2,mean=3,minimum=1} | .mean: both mean
traffic.size={distribution='pareto',alpha='2',mean=3} | .alpha:
traffic.size={distribution='pareto',alpha=2,mean=0} | .mean:
traffic.size={distribution='ep',mean=3.5,minimum=3} |
    .mean: 3.5pkt is too small for the exponential body
traffic.size={distribution='ep',mean=12,minimum=3,tail='0%'} | .tail:
traffic.size={distribution='ee',mean=12,minimum=3} | .c: missing; add c = 7
traffic.size={distribution='ee',mean=12,minimum=3,c=0.3} |
    .c: with c = 0.3, the mean of the tail is below
traffic.size={distribution='lognormal',mean=12,sd=0} | .sd:
traffic.size={distribution='uniform',low=9,high=3} | .high: 3pkt must be above low
traffic.size={distribution='normal',mean=12} |
    .distribution: "normal" is not a distribution (did you
traffic.size={mean=12} | .distribution: missing; add distribution = "exponential"
tcp.stack=reno | : "reno" is not a stack; use "linux-reno", or "rfc-reno", which does not use
class={name='a'} | : is a single table, but must be a list of tables
traffic.size=2MB pareto 1.3 |
    : "2MB pareto 1.3" is not a distribution; use { distribution = "pareto", mean = "2MB", alpha =
    1.3 }
traffic.off=exponential 2s |
    : "exponential 2s" is not a distribution; use { distribution = "exponential", mean = "2s"
traffic.off=100kB | : "100kB" is not a distribution; use { distribution = "exponential", m
traffic.size=2MB at random |
    : "2MB at random" is not a distribution; use { distribution = "exponential", mean = "12pk
traffic.size={distribution='empirical'} | .file: missing
traffic.size={distribution='empirical',values=[]} | .values: contains 0 entries
traffic.size={distribution='empirical',values=3} | .values: 3 is not a list
traffic.size={distribution='empirical',values=[1,2],weights=[1]} | .weights: 1 weights do not match
traffic.size={distribution='empirical',values=[1],weights=[-1]} | .weights.0:
traffic.size={distribution='empirical',values=['x']} | .values.0: "x" is not a size
traffic.size={distribution='empirical',file='a',values=[1]} | .file: both file and
# Cross traffic.
cross={} | : is a single table, but must be a list of tables
cross=[{}] | .0.model: missing; add model = "poisson", "fgn", "pareto" or "trace"
cross=[{model='fgm'}] | .0.model: "fgm" is not a model of cross traffic (did you mean
cross=[{model='poisson'}] | .0.mean: missing; add mean = "80%"
cross=[{model='poisson',mean=0.8}] | .0.mean: 0.8 has no unit; use
cross=[{model='poisson',mean='80'}] | .0.mean: "80" has no unit; use "80mbit", or
cross=[{model='poisson',mean='0%'}] | .0.mean: "0%" must be above 0
cross=[{model='poisson',mean='unlimited'}] | .0.mean: "unlimited" is too large
cross=[{model='poisson',mean='20000%'}] | .0.mean: "20000%" is too large
cross=[{model='poisson',mean='3%',sd='4%'}] | .0.sd: requires model = "fgn", not
cross=[{model='poisson',mean='3%',hop='bottle'}] | .0.hop: there is no hop "bottle"
cross.0.mean=3% | : the scenario has no cross traffic; add [[cross]]
cross=[{model='fgn',mean='3%',sd='2%',hurst=1}] |
    .0.hurst: 1 is not a Hurst parameter; use a number above 0, at
cross=[{model='fgn',mean='3%',sd='2%',hurst=0.7,bin='2h'}] | .0.bin: 7200s is outside 1us to 1h
cross=[{model='pareto',mean='3%',sources=2,on='1s',off='1s',alpha=1}] |
    .0.alpha: 1 gives times with an infinite mean
cross=[{model='trace'}] | .0.file: missing; use file = "cross.csv"
cross=[{model='trace',file='none.csv'}] | .0.file: the file none.csv does not exist
cross=[{model='trace',file='a',times=[1]}] | .0.file: both file and times
cross=[{model='trace',times=[0],bytes=[9]}] | .0.period: missing, and cannot
cross=[{model='trace',times=[0,1],bytes=[0,0]}] | .0.bytes: all sizes are 0
cross=[{model='trace',times=[0,1],bytes=[9]}] | .0.bytes: 1 sizes do not match 2 times
cross=[{model='trace',times=[1,0],bytes=[9,9]}] | .0.times: the times are not in ascending order
cross=[{model='trace',times=['x'],bytes=[9]}] | .0.times.0: "x" is not a time in seconds; use a
cross=[{model='trace',times=[0,1],bytes=[9,9],period='1s'}] |
    .0.period: must be longer than the last time, 1s
cross=[{model='poisson',mean='1%',bin='1ms'}] | .0.bin: requires hops with shared = false
cross=[{model='poisson',mean='1%',name='a'},{model='poisson',mean='1%',name='a'}] |
    .1.name: "a" is the name of another stream
tcp.timestamps=true | : rfc-newreno does not support this key; use stack
tcp.handshake=true | :
tcp.handshake=tcp | : rfc-newreno does not model a handshake
traffic.kind=capture |
    : a scenario does not read captures; run tcpcast trace FILE --models to compare a capture with
    formulas, or tcpcast trace FILE --scenario NAME.toml to simulate it
tcp.idle_restart=10 | :
fixed_point.scheme=3 | : 3
fixed_point.moments=3 | :
fixed_point.steps=1 | :
fixed_point.step=0s | :
fixed_point.reference=1 | : unknown key; did you mean "references"?
tcp.rules.max_plus={} | : requires stack = "max-plus-reno"
tcp={stack='max-plus-reno',rules={max_plus={growth='none'}}} | .rules.max_plus.growth:
tcp={stack='max-plus-reno',rules={timer_restart='send'}} |
    .rules.timer_restart: max-plus-reno uses instantaneous loss feedback
tcp={stack='max-plus-reno',delayed_acks=true} | .delayed_acks: max-plus-reno uses i
tcp={stack='max-plus-reno',limited_transmit=true} | .limited_transmit: max-plus
traffic.connection=kept | : "kept" is not a kind of connection
traffic.start=full | : "full" is not a start
traffic.size_rounding=up | : "up" is not a rounding
traffic.arrivals={distribution='poisson',rate='20/s'} | : requires kind = "transfers"
# Active queue management.
network.bottleneck.queue=coddel | : "coddel" is not a queue discipline (did you mean "codel"?)
network.bottleneck.queue={kind='codel',taget='5ms'} | .taget: unknown key; did you mean "target"?
network.bottleneck.queue={kind='pie',alpha='fast'} |
    .alpha: "fast" is not a gain; use a number from 0 to 1e+06
network.bottleneck.queue={kind='fq_codel',quantum='0B'} |
    .quantum: must be above 0 and at most 1 GB; use
network.bottleneck.queue={kind='cake',overhead=44} | .overhead: requires a shaper; add rate
network.bottleneck.queue={kind='cake',rate='5mbit',overhead=-65} |
    .overhead: -65 is too small; use at least -64
network.bottleneck.queue={kind='cake',rate='9mbit',flows='triple'} |
    .flows: "triple" is not a kind of isolation
network.bottleneck.queue={kind='cake',rate='unlimited'} | .rate: "unlimited" is not a limit
network.bottleneck={rate='1gbit',queue={kind='cake',rate='2gbit'}} |
    .queue.rate: 2gbit is above the rate of the link, 1gbit; use a lower rate
network.bottleneck.queue={kind='codel',rules='bsd'} |
    .rules: "bsd" is not a set of rules; use "rfc" or "linux"
network.bottleneck.queue={kind='fq_codel',target='0.1s'} |
    .target: must be below interval; use "5ms", for example
network.bottleneck.queue={kind='codel',interval='4ms'} |
    .target: must be below interval; use "200us", for example
network.bottleneck={queue='codel',buffer='20pkt'} | .rate: CoDel requires a limited rate; use
network.ingress.queue=fq_codel | : FQ-CoDel is possible only at the bottleneck or a shared hop; use
tcp.ecn=true | : rfc-newreno does not support this key; use stack = "linux-reno", or remove
# RED.
network.bottleneck.queue={kind='red',min=5} | .min: unknown key; did you mean "min_threshold"?
network.bottleneck.queue={kind='red',min_threshold=5} |
    .min_threshold: 5 is not a threshold; use a size
network.bottleneck.queue={kind='red',min_threshold='0pkt'} | .min_threshold: "0pkt" is out of range
network.bottleneck.queue={kind='red',min_threshold='9KB'} | .min_threshold: "9KB" is not a threshold
network.bottleneck.queue={kind='red',max_threshold='5pkt'} |
    .max_threshold: 5pkt must be above min_threshold, 5pkt
network.bottleneck.queue={kind='red',min_threshold='9pkt',max_threshold='4pkt'} |
    .max_threshold: 4pkt must be above min_threshold, 9pkt
network.bottleneck.queue={kind='red',max_probability='0%'} | .max_probability: must be above 0
network.bottleneck.queue={kind='red',max_probability='0.0 %'} | .max_probability: must be above 0
network.bottleneck.queue={kind='red',max_probability='120%'} | .max_probability:
network.bottleneck.queue={kind='red',weight=0} | .weight: 0 is
network.bottleneck.queue={kind='red',weight=2} | .weight: 2 is
network.bottleneck.queue={kind='red',weight=true} | .weight: true is not a weight
network.bottleneck.queue={kind='red',gentle='yes'} | .gentle: "yes" is not true or false
network.bottleneck.queue={kind='red',rules='linux'} | .gentle: rules = "linux" requires gentle =
network.bottleneck.queue={kind='red',target_delay='5pkt'} | .target_delay:
network.bottleneck={queue='red',buffer='20pkt'} | .rate: RED requires a limited rate; use
network.ingress.queue=red | : RED is possible only at the bottleneck or a shared hop
network.egress.queue={kind='red'} | : RED is possible only at the bottleneck
tcp.stack=cubic |
    : "cubic" is not a stack; use "linux-cubic", or use the cubic-response formula
tcp.stack=bbr2 | : "bbr2": BBR version 2 is not simulated; use "linux-bbr" for version 1
tcp.stack=BBRv3 | : "BBRv3" is not a stack; use "bbr3"
tcp.stack=bbr | : "bbr" is not a stack; use "linux-bbr", or use the bbr-bound formula
tcp.sack=false | : the stack determines SACK; use stack =
tcp.rack=false | : the stack determines RACK; use stack =
tcp.pacing=true | : true is not a rate; use "10mbit", for example, or "internal"
tcp.congestion_control=bbr | : the stack determines the congestion control; use
tcp.stack=newreno | : "newreno" is not a stack (did you mean "rfc-newreno"?)
# Contradictions.
network.rtt=7ms | : 7ms is less than the transmission times of one packet
network.bottleneck.delay=10ms | network.rtt: 50ms contradicts the links' delays
network.return_delay=50ms | : 50ms is more than the total propagation delay
network.return_delay=-1ms | :
network.bottleneck.buffer=1000B | : "1000B" is less than one pack
network.ingress={buffer='1bdp'} | .buffer: a bandwidth-delay product requires
tcp.min_rto=100s | : 100s is above max_rto, 64s
tcp.initial_rto=100s | : 100s is above max_rto, 64s
tcp.rules.last_packets_threshold=4 | : 4 is above tcp.duplicate_threshold, 3
tcp={stack='rfc-newreno',duplicate_threshold=1,rules={last_packets_threshold=2}} |
    .rules.last_packets_threshold: 2 is above tcp.duplicate_threshold, 1
run.duration=10s | run.warmup: 20s is not below the duration, 10s
probes.flows=[134] | .0: there is no flow 134; use a number from 0 to 133
# Extreme values.
traffic.sources=20000000 | : 20000000 is too large; use at most 10000000
traffic.sources=1e300 | :
traffic.sources=nan | : nan is not a count
traffic.sources=inf | : inf is not a count
traffic.sources=1.5 | : 1.5 is not a whole number
network.rtt=nan | :
network.packet=40B | : "40B" is not the size of an IP packet
network.packet=65536B | :
network.ack=0B | :
network.bottleneck.buffer=1e11pkt | :
tcp.receiver_window=1e10 | :
network.bottleneck.loss=100% | :
network.bottleneck.loss=1 | : 1 loses every packet; use "1%", for example
network.bottleneck.loss=5 | : 5 is above 1; use "5%"
network.bottleneck.loss={to_bad='1%'} | .model: missing
network.bottleneck.loss={model='x'} | .model: "x" is not a loss
network.bottleneck.loss={model='gilbert-elliott',to_bad='1%',to_good='0%'} |
    .to_good: must be above 0
network.bottleneck.loss={model='gilbert-elliott',to_bad='1%',to_good='1%',loss_good=1} |
    .loss_bad: loses every packet
network.bottleneck.loss_at=after | :
network.bottleneck.loss_at=behind |
    : this link has no random loss; use loss = "1%", or remove loss_at
network.egress.loss_at=behind | : this link has no random loss
network.bottleneck={loss={model='rest-of-round',rate='1%'},loss_at='behind'} |
    .loss_at: correlated loss within a round always occurs before
network.bottleneck.loss={model='rest-of-round',rate='100%'} | .rate: loses every packet
network.bottleneck.loss={model='rest-of-round'} | .rate: missing; add rate = "1%"
network.bottleneck.loss={model='rest-of-round',rate='1%',to_bad='1%'} | .to_bad: unknown key
network.ingress.loss={model='rest-of-round',rate='1%'} |
    : correlated loss within a round is possible only at the bottleneck
network.egress.loss={model='rest-of-round',rate='0%'} |
    : correlated loss within a round is possible only at the bottleneck
run.precision=0% | :
run.precision=1e-300 | : 1e-300 is below the precision of floating-point numbers (16 digits)
run.precision={} | :
run.precision={loss_rate='1%'} | .loss_rate: "loss_rate" is not a metric with a precision (did
run.precision={queue_max_pkts='1%'} | .queue_max_pkts:
run.max_wall=0s | :
run.warmup=30m | :
run.seed=9223372036854775808 | :
# The wrong kind of value.
network=3 | : 3 is not a table; use { rtt =
network.ingress=3mbit | : "3mbit" is not a table; use { rate =
traffic=3 | : 3 is not a table
traffic.kind=3 | : 3 is not a kind of traffic
tcp.delayed_acks=yes | : "yes" is not true or false; use true
tcp.initial_ssthresh=many | :
tcp.stack=3 | : 3 is not a stack
name=3 | : 3 is not a string
network.rtt={} | :
network.rtt=true | : true is not a time
class=3 | : 3 is not a list
class=[3] | .0: 3 is not a table
probes.flows=3 | : 3 is not a list; use [0, 1]
probes.pcap=[{link='egress',file='x'}] | .0.link: "egress" is not a place
probes.pcap=[{link='sender',file=''}] | .0.file:
probes.pcap=[{link="sender",file="a\u0000b"}] |
    .0.file: "a\u0000b" is not a file name; use "in.pcap"
traffic.correlation=-1.5 | : -1.5 is not a correlation; use a number from -1 to 1
traffic.correlation=true | : true is not a correlation; use a number from -1 to 1
probes.goodput_shares=95 | : 95 is not a list; use
probes.goodput_shares=[] | :
probes.goodput_shares=['100%'] | .0: "100%" is not a share of the files; use "
probes.goodput_shares=[-1] | .0: -1 is not a share of the files; use
probes.goodput_shares=[0.5,'50%'] | : 50% is listed twice; remove one entry
probes.goodput_packets=0 | : 0 is too small; use at least 1
probes.goodput_least='1s' | :
probes.goodput_least=1e10 |
    : 10000000000pkt is above the largest size of a file; use "10pkt", for example
# Changes of missing tables.
network.rtt.x=3 | : network.rtt is "50ms", not a table; set network.rtt itself
class.far.rtt=3s | : the scenario has no classes
# Fair queueing.
network.bottleneck.queue={kind='fq',scheduler='wfq'} | .scheduler: "wfq" is not a scheduler
network.bottleneck.queue={kind='fq',quantum='3000B'} | .quantum: requires scheduler = "drr"
network.bottleneck.queue={kind='fq',scheduler='drr',quantum='1499B'} |
    .quantum: "1499B" is less than one packet
network.bottleneck.queue={kind='fq',scheduler='drr',quantum='2GB'} | .quantum: is too large
network.bottleneck.queue={kind='fq',buffers='individual',drop='longest'} |
    .drop: requires buffers = "shared"
network.bottleneck.queue={kind='fq',drop='longest',ties='arriving'} |
    .ties: "arriving" is not a rule for ties
network.bottleneck.queue={kind='fq',drop='arriving',ties='random'} |
    .ties: selects one of several equally long queues
network.bottleneck.queue={kind='fq',head_of_line='in service'} |
    .head_of_line: requires tcp.stack = "max-plus-reno" and a constant rate
network.bottleneck={queue='fq',rate='unlimited'} | .rate: FQ requires a limited rate
[short-transfers]
traffic={kind='transfers'} | .size: missing; add size = ["1pkt", "8pkt", "100KB"]
traffic.size='2.5pkt' | : "2.5pkt" is not a whole number of packets; use "3pkt"
traffic.size='0pkt' | : "0pkt" is not a transfer; use at least "1pkt"
traffic.size='0B' | : "0B" is not a transfer; use at least "1pkt"
traffic.size='2000000000pkt' |
    : "2000000000pkt" is more than 1,000,000,000 packets; use a smaller size, or kind = "bulk"
traffic.size=[] | : contains 0 entries; use at least 1
traffic.size=['1pkt','12ms'] | .1: "12ms" is not a size
traffic.size=['1pkt','2B'] | : 1pkt is listed twice; remove one entry
traffic.size=true | : true is not a size
traffic.size={distribution='exponential',mean='12pkt'} |
    : a distribution requires arrivals; use sizes such as
traffic.count=0 | : 0 is too small
traffic.count=1000000000 | : 1000000000 is too large
traffic={kind='transfers',size='1pkt',sources=3} |
    .sources: does not apply to transfers; use
traffic={kind='transfers',size='1pkt',flows=3} |
    .flows: does not apply to transfers; use count
traffic={kind='transfers',size='1pkt',off={}} | .off: requires kind = "on-off"
traffic={kind='transfers',size='2MB pareto 1.3',count=3} |
    .size: "2MB pareto 1.3" is not a size; use { distribution = "pareto", mean = "2MB"
traffic={kind='transfers',size='1pkt',arrivals={rate='20/s'}} && run.duration=9s |
    .arrivals.distribution: missing; add
traffic={kind='transfers',size='1pkt',arrivals='20/s'} && run.duration=9s |
    .arrivals: "20/s" is not a table; use
traffic={kind='transfers',size=1,arrivals={distribution='poisson',rate=20}} && run.duration=9s |
    .arrivals.rate: 20 has no unit; use "20/s"
traffic={kind='transfers',size=1,arrivals={distribution='poison',rate='2/s'}} && run.duration=9s |
    .arrivals.distribution: "poison" is not a distribution of arrivals (did you mean "poisson"?)
[lossy-path]
# Modern stacks.
tcp={stack='linux-cubic',rules={window_unit='bytes'}} |
    .rules.window_unit: the rule of linux-cubic is fixed
tcp={stack='linux-cubic',initial_ssthresh=8} | .initial_ssthresh: cannot be set with linux-cubic
tcp={stack='linux-cubic',rules={slow_start_at_ssthresh=true}} |
    .rules.slow_start_at_ssthresh: the rule of linux-
tcp={stack='linux-cubic',rules={timer_restart='send'}} |
    .rules.timer_restart: the rule of linux-cubic is fixed
tcp={stack='linux-cubic',rules={backoff_until='ack'}} |
    .rules.backoff_until: the rule of linux-cubic is fixed
tcp={stack='linux-cubic',rules={last_packets_threshold=1}} |
    .rules.last_packets_threshold: the rule of linux-cubic
tcp={stack='linux-cubic',rules={recovery='reno'}} | .rules.recovery: the rule of linux-cubic
tcp={stack='linux-cubic',ack_timeout='1s'} |
    .ack_timeout: linux-cubic adapts the delay of acks to the times
tcp={stack='linux-cubic',rules={limited_transmit_on='second'}} |
    .rules.limited_transmit_on: the rule of linux-cubic is fixed: limited
tcp={stack='linux-cubic',idle_restart='3s'} | .idle_restart: linux-cubic halves its window
tcp={stack='linux-cubic',rules={max_plus={}}} | .rules.max_plus: requires stack = "max-plus-reno"
tcp={stack='linux-cubic',ecn=1} | .ecn:
tcp={stack='rfc-newreno',ecn=true} | .ecn: rfc-newreno does not support this key; use stack
tcp={stack='rfc-newreno',handshake='tcp'} | .handshake: rfc-newreno does not model a handshake
tcp={stack='linux-cubic',handshake='quic'} | .handshake:
tcp={stack='rfc-newreno',fast_open=true} | .fast_open: rfc-newreno does not support this key
tcp={stack='linux-cubic',handshake='none',fast_open=true} | .fast_open: requires a TCP handshake
tcp={stack='linux-cubic',ecn='accurate',fast_open=true} | .fast_open: does not support tcp.ecn
network.bottleneck.rate={wifi='390mbit',error='60%'} | .error: must be at most 50%; use "10%"
network.bottleneck.rate={wifi='390mbit',airtime='6ms'} | .airtime: must be at most 5.484ms
network.bottleneck.rate={wifi='390mbit',frames=0} | .frames:
network.bottleneck.rate={wifi='0mbit'} | .wifi: "0mbit" must be above 0
tcp={stack='quic',fast_open=true} |
    .fast_open: quic is a QUIC stack, to which this rule does not apply
tcp={stack='rfc-newreno',timestamps=true} |
    .timestamps: rfc-newreno does not support this key; use stack
network.packet=52B && tcp.stack=linux-cubic | : 52 B leaves no room for payload after 52 B of
# Cross traffic.
cross=[{model='trace',times=[0,1e-300],bytes=[1,1]}] |
    .0: offers 8e+291 times the rate of "bottleneck"; use a lower rate
cross=[{model='trace',times=[1,2,4],bytes=[0,0,1e-09]}] | .0: sends less than one packet in 30 years
cross=[{model='trace',times=[0],bytes=[0.01],period='1us'}] |
    .0.bytes: the recording contains only one packet per 150,000 values
cross=[{model='fgn',mean='1kbit',sd='1bit',hurst=0.7,name='noise',bin='0.1ms'}] |
    .0.bin: is so short that there is only one packet per 120,000 bins on average; use 2.4ms
cross=[{model='pareto',mean='3mbit',sources=20,on='1ns',off='1ns'}] |
    .0.on: is so short that a source
cross=[{model='pareto',mean='3mbit',sources=100000,on='10us',off='300ms'}] |
    .0.on: is so short that a source
cross=[{model='pareto',mean='3mbit',sources=20,on='1ns',off='10s'}] |
    .0.on: is so short that most ON times round
cross=[{model='pareto',mean='1e-300%',sources=20,on='100ms',off='300ms'}] |
    .0: sends less than one packet in 30 years
cross=[{model='poisson',mean='2000gbit'}] |
    .0: offers 2,000 times the rate of "bottleneck"; use a lower rate
cross=[{model='fgn',mean='-1%',sd='4mbit',hurst=0.7,name='noise'}] |
    .0.mean: "-1%" is not a share of the hop's rate; use
cross=[{model='trace',times=0,bytes=[3000,0,1500.5],file='/dev/zero'}] |
    .0.file: both file and times
cross=[{model='trace',file='/dev/zero'}] | .0.file: /dev/zero is not a file
cross=[{model='trace',file='.'}] | .0.file: . is not a file
cross=[{model='poisson',mean='9%',sd='20%'}] |
    .0.sd: requires model = "fgn", not "poisson"; remove this key
cross=[{model='poisson',mean='9%',hurst=0.7}] |
    .0.hurst: requires model = "fgn", not "poisson"; remove this key
cross=[{model='poisson',mean='9%',alpha=1.5}] |
    .0.alpha: requires model = "pareto", not "poisson"; remove this key
cross=[{model='fgn',mean='80%',sd='4mbit',hurst=0.7,name='noise',sources=5}] |
    .0.sources: requires model = "pareto", not "fgn"; remove this key
cross=[{model='pareto',mean='3mbit',sources=20,on='100ms',off='300ms',sd='20%'}] |
    .0.sd: requires model = "fgn", not "pareto"; remove this key
cross=[{model='pareto',mean='3mbit',sources=20,on='100ms',off='300ms',file='a.csv'}] |
    .0.file: requires model = "trace", not "pareto"; remove this key
cross=[{model='trace',times=[1,2,4],bytes=[3000,0,1500.5],hurst=0.7}] |
    .0.hurst: requires model = "fgn", not "trace"; remove this key
network={rtt='1s',hop=[{name='a',rate='9mbit',shared=false}]} |
    .hop: the sources share no hop; remove shared = false from one hop
network={rtt='1s',hop=[{name='a',rate='9mbit',measured=true},{name='b',measured=true}]} |
    .hop.b.measured: another hop also has measured = true; use measured = true at only one hop
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',shared=false,measured=true}]} |
    .hop.b.measured: the measured hop must be shared; use measured = true
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',shared=false,queue='red'}]} |
    .hop.b.queue: a hop with shared = false serves one source, so only "droptail"
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',queue='red'}]} |
    .hop.b.rate: RED requires a limited rate; use
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',rate='9mbit',buffer='100B'}]} |
    .hop.b.buffer: "100B" is less than
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',buffer='1bdp'}]} |
    .hop.b.buffer: a bandwidth-delay product requires a rate
network={rtt='1s',hop=[{name='a',rate='9mbit'},{rate='1mbit'}]} | .hop.1.name: missing; add name =
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='1st'}]} | .hop.1st.name: "1st" is not a name
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',shared='no'}]} |
    .hop.b.shared: "no" is not true or
network={rtt='1s',hop=[{name='a',rate='9mbit'},{name='b',rat='1mbit'}]} |
    .hop.b.rat: unknown key; did you
network={rtt='1s',hop=[{name='h0'},{name='h1'},{name='h2'}]} | .hop.h0.rate: nothing
# Return paths, variable rates and jitter.
network.return={} | .rate: missing
network.return.rate='unlimited' | : with an unlimited rate, no ack waits in a queue
network.return={rate='1mbit',buffer='30B'} |
    .buffer: "30B" is less than one ack; use at least "40B"
network.return={rate='1mbit',queue='red'} | .queue: red is not available for acks
network.return={rate='1mbit',queue='fq'} | .queue: fq is not available for acks
network.ack_loss={model='rest-of-round',rate='1%'} |
    : correlated loss within a round applies only to data packets
network.ack_loss='100%' | : "100%" loses every packet
network.ack_loss='1%' && tcp.stack='max-plus-reno' | : max-plus-reno requires every ack
network.return.rate='1mbit' && tcp.stack='max-plus-reno' |
    network.return: max-plus-reno requires every ack
cross=[{hop='return',model='poisson',mean='1mbit'}] | .0.hop: there is no hop
network.bottleneck={rate={bucket='10mbit',burst='30KB',policer=true},buffer='9pkt'} |
    .buffer: a policer has no queue
network.bottleneck={rate={bucket='10mbit',burst='30KB',policer=true},queue='codel'} |
    .queue: a policer has no queue
network.bottleneck={rate={bucket='1mbit'}} | .rate.burst: missing; add burst = "15KB"
network.bottleneck={rate={burst='9KB'}} | .rate.bucket: missing; add bucket = "10mbit"
network.bottleneck={rate={bucket='10mbit',burst='1KB'}} |
    .rate.burst: is less than one packet; use at least "1500B"
network.bottleneck={rate={bucket='unlimited',burst='30KB'}} | .rate.bucket: a bucket requires a rate
network.bottleneck={rate={bukket='1mbit'}} |
    .rate.bukket: "bukket" is not a kind of rate (did you mean "bucket"
network.ingress={rate={bucket='10mbit',burst='30KB'}} |
    .rate: a token bucket is possible only at the bottleneck or a shared
network.jitter='5ms' | : "5ms" is not a table; use { distribution = "exponential", mean = "5ms" }
network.jitter={mean='5ms'} | .distribution: missing; add distribution = "exponential"
network.jitter={distribution='constant',value='1ms',reorder='no'} |
    .reorder: "no" is not true or false
class=[{name='a',flows=1,stop='0s'}] | .a.stop:
class=[{name='a',flows=1,start='9s',stop='8s'}] | .a.stop: must be after the start, 9s
class=[{name='a',flows=1,start='1s'}] && traffic.start=['3s'] |
    .a.start: traffic.start also sets the start times
# Times, stacks and correlation.
run.report_at=['2s','1s'] | : the times are not in ascending order
run.report_at=['1s'] && tcp={stack='max-plus-reno'} |
    : counts bytes delivered in order, but the receiver of max-plus-reno does not sort packets
tcp={stack='linux-reno',virtual_flows=2} | .virtual_flows: requires stack = "multcp"
tcp={stack='rfc-reno',virtual_flows=2} | .virtual_flows: requires stack = "multcp"
tcp={stack='prague-2024',ecn_fallback=true} | .ecn_fallback: requires stack = "prague"
tcp={stack='linux-cubic',pacing='0bit'} | .pacing: "0bit" must be above 0
tcp={stack='linux-cubic',pacing='unlimited'} |
    .pacing: "unlimited" is not a limit; use "50mbit", for example, or "internal" or "fq" or
tcp={stack='rfc-newreno',pacing='fq'} | .pacing: rfc-newreno does not support this key
tcp={stack='multcp',virtual_flows=0} | .virtual_flows: 0 is too small; use at least 1
tcp={stack='multcp',virtual_flows=1001} | .virtual_flows: 1001 is too large; use at most 1000
tcp={stack='multcp',rules={recovery='tahoe'}} |
    .rules.recovery: the rule of multcp is fixed: losses are found by SACK or RACK; omit
    this key, or use stack = "rfc-newreno
tcp={stack='tfrc',ecn=true} |
    .ecn: tfrc counts only lost packets as loss events; remove this key, or use stack =
    "linux-cubic" or "dctcp"
network={rtt='1s',hop=[{name='a',rate={opportunities='4'},shared=false},{name='b'}]} |
    .hop.a.rate: a trace of transmission opportunities is possible only at a shared hop
run.report_at=['400s'] | .0: 400s is after the end of the run; use duration =
[short-transfers]
run.report_at=['1s'] | : requires flows that never end
[web-10mbit]
traffic.correlation=0.5 && traffic.size={distribution='constant',value='3pkt'} |
    : size is constant, so sizes and OFF times cannot be correlated; remove
traffic.correlation=0.5 && traffic.size={distribution='empirical',values=['3pkt','3pkt']} |
    : size is constant, so sizes and OFF times cannot be correlated; remove
# Classes.
class=[{sources=3}] | .0.name: missing; add name = "far"
class=[{name='a b'}] | ."a b".name: "a b" is not a name
class=[{name='a',flows=3}] | .a.flows: flows do not apply to on-off traffic; use sources
class=[{name='a',traffic={kind='bulk'}}] | .a.flows: missing; add flows = 100
class=[{name='a',sources=3,traffic={sources=4}}] |
    .a.sources: is also set in the traffic table of the class; set this key only once
class=[{name='a',sources=0}] | .a.sources: 0 is too small; use at least 1
class=[{name='a',rate='1mbit'}] | .a.rate: unknown key; use "ingress.rate" or
class=[{name='a',ingress={buffer='100B'}}] |
    .a.ingress.buffer: "100B" is less than one packet; use at least "1500B"
class=[{name='a',egress={rate='10kbit'}}] | .a.rtt: 50ms is less than the transmission times
class=[{name='a',egress={delay='10ms'}}] | .a.rtt: 50ms contradicts the links' delays, which give
class=[{name='a'},{name='a'}] | .1.name: "a" is the name of another class; use another
class=[{name='a',sources=9000000},{name='b',sources=9000000}] |
    : the classes contain 18000000 senders; use at most 10000000 in total
class=[{name='a',flows=2,traffic={kind='bulk',start=['0s']}}] && run={duration='9s'} |
    .a.traffic.start: 1 start times do not match 2 flows; use one time per flow
[one-path]
# Steps of applications, releases of Linux, socket buffers, ECN and QUIC.
traffic.reads='10mbit' && tcp.stack='linux-cubic' && tcp.receiver_window='unlimited' |
    : requires a limited receive buffer
traffic.reads='0mbit' && tcp={stack='linux-cubic',socket_buffers='linux-6.18'} | :
traffic.reads={pause='soon'} && tcp={stack='linux-cubic',socket_buffers='linux-6.18'} | .pause:
traffic.reads={size='0B',pause='1s'} && tcp={stack='linux-cubic',socket_buffers='linux-6.18'} |
    .size: must be at least "1B"
traffic.writes={size='1KB'} && tcp={stack='linux-cubic'} | .gap: missing
traffic.writes='1KB' && tcp={stack='linux-cubic'} | :
tcp={stack='linux-cubic',notsent_lowat='1KB'} | .notsent_lowat: limits what an application writes
traffic.writes={size='1KB',gap='1s'} && tcp={stack='rfc-newreno'} | : rfc-newreno does not model
tcp={stack='rfc-newreno',nodelay=true} | .nodelay:
tcp={stack='linux-cubic',kernel='5.10'} | .kernel: "5.10" is not a release of Linux
tcp={stack='rfc-sack',kernel='6.12'} | .kernel: rfc-sack follows RFCs instead of a release
tcp={stack='rfc-newreno',kernel='6.12'} | .kernel: rfc-newreno does not support this key
tcp={stack='linux-cubic',socket_buffers='linux-4.4'} |
    .socket_buffers: "linux-4.4" is not a setting of socket buffers (did you mean "linux-6.18"?);
    use "unlimited", "kernel", "linux-5.15" or "linux-6.18"
tcp={stack='linux-cubic',socket_buffers={send='1MiB'}} |
    .socket_buffers.receive: missing; add receive = "32MiB"
tcp={stack='linux-cubic',socket_buffers={send='1EB',receive='1MiB'}} |
    .socket_buffers.send: "1EB" is not a size (B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB); use
    "1000000TB"
tcp={stack='rfc-newreno',socket_buffers='linux-6.18'} |
    .socket_buffers: rfc-newreno does not support this key
tcp={stack='linux-cubic',ecn='acurate'} |
    .ecn: "acurate" is not a mode of ECN; use true, false or "accurate"
tcp={stack='linux-cubic',ecn=1} | .ecn: 1 is not a mode of ECN; use true, false or "accurate"
tcp={stack='linux-cubic',ecn=['accurate']} |
    .ecn: ['accurate'] is not a mode of ECN; use true, false or "accurate"
tcp={stack='quic',min_rto='1s'} | .min_rto: quic is a QUIC stack, to which this rule does not apply
tcp={stack='quic',tso='auto'} |
    .tso: quic is a QUIC stack, to which this rule does not apply; remove this key
tcp={stack='quic',handshake='tcp'} |
    .handshake: quic uses TLS 1.3 without a TCP handshake; use "tls13", "tls13-resumption",
    "tls13-0rtt"
tcp={stack='quic',pacing='fq'} | .pacing: quic paces its packets itself; use "internal" or "off"
tcp={stack='quic',ack_packets=0} | .ack_packets: 0 is too small; use at least 1
tcp={stack='quic',congestion_control='vegas'} |
    .congestion_control: "vegas" is not a congestion control; use "cubic"
tcp={stack='quic',handshake='tls13-0rtt',certificate='4kB'} |
    .certificate: requires handshake = "tls13" or "tls12"
tcp={stack='linux-cubic',ack_packets=10} |
    .ack_packets: requires a QUIC stack; use stack = "quic"
tcp={stack='quic'} && probes.pcap=[{link='bottleneck-in',file='in.pcap'}] |
    probes.pcap: captures contain TCP packets, but quic sends QUIC packets
[web-10mbit]
network.egress.queue=fq | : FQ is possible only at
network.bottleneck.queue={kind=['fq']} | : ['fq'] is not a queue
network.bottleneck.queue={kind={distribution='exponential'}} |
    : {'distribution': 'exponential'} is not a queue
class=[{name='far',ingress={queue='red'}}] | .far.ingress.queue: RED is possible only at the
tcp.timer_restart=send | : unknown key; use "rules.timer_restart"
[short-transfers]
# The run of isolated transfers.
run.duration=60s | : traffic.count sets the number of isolated transfers;
run.transfers=5 | : traffic.count sets the number of isolated transfers;
run.warmup=20s | : isolated transfers have no warm-up
run.warmup=mser-5 | : isolated transfers have no warm-up
[web-10mbit]
network={rtt='1s',hop=[{name='a',rate='9mbit'}],bottleneck={rate='9mbit'}} |
    .bottleneck: cannot be combined with [[network.hop]] tables; describe the bottleneck
network.bottleneck.measured=true |
    : belongs to [[network.hop]] tables; remove this key if there is a single
network.bottleneck.shared=false | : belongs to [[network.hop]] tables; remove this key
network.bottleneck.name=access | : belongs to [[network.hop]] tables; remove this key
[web-10mbit]
"""
"""Assignments to packaged scenarios, and beginnings of messages, which may begin after the key."""


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the scenario, the assignments and the message of each row, which may take lines."""
    name = ""
    for row in re.sub(r"\n +", " ", re.sub("#.*\n", "", text)).strip().splitlines():
        change, _, message = row.partition(" | ")
        if message or change.endswith("|"):
            yield name, change, message
        else:
            name = row.strip("[]")


@pytest.mark.parametrize(("name", "change", "message"), [*rows(EACH_ERROR)])
def test_each_error_gives_one_line(name: str, change: str, message: str) -> None:
    (only,) = refused(*change.split(" && "), name=name)
    assert only.startswith(change.partition("=")[0] * (message[0] in ":.") + message)


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
        "run.duration: transfers and duration are mutually exclusive; use one"
    ]
    tables = load("web-10mbit").resolved()
    del tables["run"]["transfers"]
    with pytest.raises(
        ScenarioError, match=r"^run\.duration: missing; add duration = \"300s\", or"
    ):
        Scenario.from_dict(tables)
    del tables["run"]
    with pytest.raises(ScenarioError, match=r"^run: missing; add run = { duration = \"300s\" }$"):
        Scenario.from_dict(tables)


def test_isolated_transfers_need_no_run() -> None:
    tables = load("short-transfers").resolved()
    del tables["run"]
    assert Scenario.from_dict(tables).run.duration is None
    tables["traffic"] |= {"arrivals": {"distribution": "poisson", "rate": "2/s"}, "count": None}
    with pytest.raises(ScenarioError, match=r"^run: missing; add run"):
        Scenario.from_dict(tables)


def test_bulk_flows_reject_number_of_transfers() -> None:
    (line,) = refused("run.transfers=5", name="lossy-path")
    assert line.startswith("run.transfers: bulk flows never complete; use duration")


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
    assert line.startswith("network.bottleneck.rate: nothing limits the flows; use")
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
        with pytest.raises(ScenarioError, match="is not a table; add"):
            Scenario.from_dict(nothing)


def test_network_without_rtt_and_delays_is_rejected() -> None:
    tables = load("web-10mbit").resolved()
    del tables["network"]["rtt"]
    with pytest.raises(
        ScenarioError, match=r'^network\.rtt: missing; add rtt = "50ms", or a delay'
    ):
        Scenario.from_dict(tables)


@pytest.mark.parametrize("assignment", ["traffic.sources", "=3", " = 3", ""])
def test_assignments_without_key_or_equals_sign_are_rejected(assignment: str) -> None:
    with pytest.raises(ScenarioError, match=r"is not an assignment; use KEY=VALUE"):
        parse_assignments([assignment])


@pytest.mark.parametrize("key", [".", "a..b", ".a", "a."])
def test_malformed_dotted_keys_are_rejected(key: str) -> None:
    with pytest.raises(ScenarioError, match=r"not a dotted key; use run\.seed, for example"):
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
