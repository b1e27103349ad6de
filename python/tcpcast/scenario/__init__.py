"""The scenario, which is the input of every engine: network, traffic, TCP and run."""

from tcpcast.scenario.changes import parse_assignments
from tcpcast.scenario.classes import Population, UserClass
from tcpcast.scenario.classic_tcp import PRESETS
from tcpcast.scenario.distributions import Distribution
from tcpcast.scenario.fixed_point import FixedPoint
from tcpcast.scenario.hops import Hop
from tcpcast.scenario.link import Buffer, Link
from tcpcast.scenario.loading import (
    find_scenario_file,
    get_packaged_names,
    load,
    read_packaged_text,
    read_scenario_text,
)
from tcpcast.scenario.loss import Bernoulli, GilbertElliott, Loss, RestOfRound
from tcpcast.scenario.mean_field import MeanField
from tcpcast.scenario.model import Scenario
from tcpcast.scenario.network import Network
from tcpcast.scenario.probes import Probes
from tcpcast.scenario.queue import FairQueue, Red, RedParameters
from tcpcast.scenario.rate import OpportunityRate, TokenBucket, WifiRate
from tcpcast.scenario.run import PRECISION_METRICS, Run
from tcpcast.scenario.schema import make_scenario_schema
from tcpcast.scenario.sweep import Sweep
from tcpcast.scenario.tcp import Tcp
from tcpcast.scenario.tcp_rules import MaxPlusRules, TcpRules
from tcpcast.scenario.traffic import Arrivals, Bulk, OnOff, Transfers

__all__ = [
    "PRECISION_METRICS",
    "PRESETS",
    "Arrivals",
    "Bernoulli",
    "Buffer",
    "Bulk",
    "Distribution",
    "FairQueue",
    "FixedPoint",
    "GilbertElliott",
    "Hop",
    "Link",
    "Loss",
    "MaxPlusRules",
    "MeanField",
    "Network",
    "OnOff",
    "OpportunityRate",
    "Population",
    "Probes",
    "Red",
    "RedParameters",
    "RestOfRound",
    "Run",
    "Scenario",
    "Sweep",
    "Tcp",
    "TcpRules",
    "TokenBucket",
    "Transfers",
    "UserClass",
    "WifiRate",
    "find_scenario_file",
    "get_packaged_names",
    "load",
    "make_scenario_schema",
    "parse_assignments",
    "read_packaged_text",
    "read_scenario_text",
]
