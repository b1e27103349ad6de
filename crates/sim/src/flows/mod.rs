//! Flows over a network of links: hosts with both ends of connections, applications, and the event
//! loop that drives them.
//!
//! ```text
//!  timers -> applications (sessions.rs, apps/) -> ends of connections (hosts.rs)
//!                ^                                      |  segments = parcels
//!                |                                      v
//!             hosts.rs <- deliveries, drops (wire.rs) <- Network of crates/net (links.rs)
//! ```
//!
//! At one time, events of the network precede timers, which are ordered by kind, flow and end.

mod apps;
mod bursts;
mod config;
mod counters;
mod cross;
mod flow;
mod hosts;
mod links;
mod memory_estimate;
mod parcel;
mod sessions;
mod setup;
mod taps;
mod wait_groups;
mod wire;

pub use config::{
    AnswerOrder, CrossStreamConfig, FlowClassConfig, FlowTcp, FlowTraffic, LinkChangeConfig,
    LinkInstances, MessageTraffic, NetworkConfig, NetworkLinkConfig, Page, PageHost, PageObject,
    PageTraffic, PingTraffic, QualityControl, ReadPause, ReadingConfig, RequestTraffic,
    SendingEnds, SiteConfig, StreamTraffic, TimedChange, WritingConfig,
};

pub use links::{NetworkLinks, RouteSet, RouteUser};
pub use memory_estimate::estimate_network_bytes;

use crate::clock::Nanos;
use crate::conservation::ConservationError;
use crate::population::ScaledPopulation;
use crate::probe::{Probes, SimulatedCapture, SourceRecord};
use crate::random::RandomStream;
use crate::replication::{Replication, Replications, RunLimit, RunWatch, StopReason};
use crate::traffic::SizeOffTimeCoupling;
use cross::CrossStream;
use flow::{Flow, FlowClass};
use std::collections::VecDeque;
use std::sync::Arc;
use tcpcast_link::timing_wheel::TimingWheel;
use tcpcast_net::Network;
use tcpcast_tcp::modern::Segment;
use wire::Wire;

/// Kind of a timer. At equal times, timers are ordered by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowTimer {
    /// Delayed acknowledgement.
    Receiver,
    /// Retransmission and handshake.
    Sender,
    /// Start of a flow, or end of an OFF time.
    Start,
    /// Next transfer of a class, or next step of its scaled population; the number is that of the
    /// class.
    Arrival,
    /// Timer of the application of an end.
    Application,
    /// Stop of a flow.
    Stop,
    /// Next packet of a paced sender.
    Pacing,
    /// Next packet of a stream of cross traffic; the number is that of the stream.
    Cross,
}

/// Timers by their number; the length is a power of two.
const FLOW_TIMERS: [FlowTimer; 8] = [
    FlowTimer::Receiver,
    FlowTimer::Sender,
    FlowTimer::Start,
    FlowTimer::Arrival,
    FlowTimer::Application,
    FlowTimer::Stop,
    FlowTimer::Pacing,
    FlowTimer::Cross,
];

/// Pending timers.
#[derive(Debug, Default)]
struct Timers(TimingWheel<Nanos>);

impl Timers {
    /// Sets a timer of an end of a flow.
    #[inline(always)]
    fn set(&mut self, timer: FlowTimer, flow: usize, end: usize, time: Nanos) {
        let item = (timer as u64) << 33 | (flow as u64) << 1 | end as u64;
        self.0.push(item, &time);
    }

    #[inline(always)]
    fn next_time(&self) -> Nanos {
        self.0.next_time()
    }

    /// Takes the first timer.
    #[inline(always)]
    fn take(&mut self) -> Option<(FlowTimer, usize, usize)> {
        let (item, _) = self.0.pop()?;
        let timer = FLOW_TIMERS[(item >> 33) as usize % FLOW_TIMERS.len()];
        Some((timer, (item >> 1) as u32 as usize, (item & 1) as usize))
    }
}

/// Single transfers of a class.
#[derive(Debug)]
struct ClassArrivals {
    gaps: RandomStream,
    sizes: RandomStream,
    /// Number of started transfers.
    started: usize,
    /// Flows without a transfer, longest idle first.
    idle: VecDeque<u32>,
}

/// Maximum number of concurrent transfers; a larger number means that transfers arrive faster than
/// they end.
const MAX_CONCURRENT: usize = 1_000_000;

/// A run on a network of links.
pub struct FlowSimulation {
    config: Arc<NetworkConfig>,
    replication: u32,
    network: Network<u32>,
    wire: Wire,
    links: NetworkLinks,
    flows: Vec<Flow>,
    classes: Vec<FlowClass>,
    timers: Timers,
    arrivals: Vec<ClassArrivals>,
    /// Scaled population of each class that has one.
    populations: Vec<Option<ScaledPopulation>>,
    cross: Vec<CrossStream>,
    coupling: SizeOffTimeCoupling,
    now: Nanos,
    /// Events after this time are not processed yet.
    limit: Nanos,
    /// End of the warm-up or of the current slot of counters or time series.
    boundary: Nanos,
    /// Number of transfers after which the run stops.
    wanted_transfers: u64,
    measuring: bool,
    too_many_transfers: bool,
    /// Number of initial flows, and whether they all exist.
    initial_flows: usize,
    has_all_flows: bool,
    /// Sums at the end of the warm-up.
    before: counters::SumsBefore,
    missing_record: SourceRecord,
    /// Memory for the objects of a page that an event concerns, with received bytes.
    page_news: Vec<(u32, u64)>,
    /// Memory for segments that are sent.
    segment: Segment,
}

/// Creates `count` replications of a run on a network of links. Only the first replication records
/// traces and captures.
#[must_use]
pub fn create_network_replications(config: &NetworkConfig, count: u32) -> Replications {
    let first = Arc::new(config.clone());
    let mut others = config.clone();
    others.probes.traced.clear();
    others.probes.captures.clear();
    let others = Arc::new(others);
    Replications::from_fn(count, move |number| {
        let config = if number == 0 { &first } else { &others };
        if config.rtt_spread == 0.0 {
            return Box::new(FlowSimulation::new(config, number));
        }
        let mut spread = NetworkConfig::clone(config);
        spread.spread_delays(number);
        Box::new(FlowSimulation::new(&Arc::new(spread), number))
    })
}

impl Replication for FlowSimulation {
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason {
        if !self.create_flows(watch) {
            return StopReason::Interrupted;
        }
        self.limit = self.boundary.min(limit.until);
        self.wanted_transfers = if self.measuring { limit.transfers } else { u64::MAX };
        loop {
            let (network, timer) = (self.network.next_time(), self.timers.next_time());
            if network <= timer && network <= self.limit {
                self.now = network;
                self.wire.now = network;
                self.network.step(&mut self.wire);
                self.process_network_events();
            } else if timer < network && timer <= self.limit {
                self.now = timer;
                self.wire.now = timer;
                self.process_timer();
            } else if self.too_many_transfers {
                return StopReason::TooManyTransfers;
            } else if self.pass_boundary_or_end_run(limit) {
                return StopReason::Done;
            }
            if !watch.should_continue(|| self.completed_fraction(limit)) {
                return StopReason::Interrupted;
            }
        }
    }

    fn update_and_check_probes(&mut self) -> Result<&Probes, ConservationError> {
        self.update_counters()
    }

    fn probes(&self) -> &Probes {
        &self.wire.probes
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn is_measuring(&self) -> bool {
        self.measuring
    }

    fn capture_mut(&mut self, index: usize) -> Option<&mut SimulatedCapture> {
        self.wire.probes.captures.get_mut(index)
    }

    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_> {
        let missing = self.initial_flows.saturating_sub(self.flows.len());
        let made = self.flows.iter().map(|flow| &flow.record);
        Box::new(made.chain(std::iter::repeat_n(&self.missing_record, missing)))
    }
}

impl FlowSimulation {
    fn transfers_finished_after_warm_up(&self) -> u64 {
        if self.measuring { self.wire.probes.transfers_finished_after_warm_up() } else { 0 }
    }

    /// Completed fraction of the run, from 0 to 1.
    #[inline(never)]
    fn completed_fraction(&self, limit: RunLimit) -> f64 {
        let by_time = self.now as f64 / limit.until as f64;
        by_time.max(self.transfers_finished_after_warm_up() as f64 / limit.transfers as f64)
    }

    /// Handles the end of the run, of a slot, or of the warm-up, when no event is due before it.
    /// Returns true at the end of the run.
    #[inline(never)]
    fn pass_boundary_or_end_run(&mut self, limit: RunLimit) -> bool {
        if self.transfers_finished_after_warm_up() >= limit.transfers {
            return true;
        }
        if self.boundary > limit.until {
            self.now = limit.until;
            return true;
        }
        self.now = self.boundary;
        if self.now == self.wire.probes.time_series.slot_end() {
            if let Some(link) = self.wire.recorded {
                self.network.update_occupancy(link, self.now, &mut self.wire);
            }
            self.close_time_series(false);
        }
        if self.now == self.next_slot_end() {
            self.update_link_counters();
            self.close_slot_or_end_warm_up(limit);
        }
        self.boundary = self.next_slot_end().min(self.wire.probes.time_series.slot_end());
        self.limit = self.boundary.min(limit.until);
        false
    }

    /// End of the warm-up or of the current slot of the counters.
    fn next_slot_end(&self) -> Nanos {
        if self.measuring { self.wire.probes.counters.slot_end() } else { self.config.warmup }
    }

    /// Closes a slot of the counters, or ends the warm-up.
    fn close_slot_or_end_warm_up(&mut self, limit: RunLimit) {
        if self.measuring {
            self.update_endless_flow_counters();
            self.wire.probes.close_counter_slot(self.now, false);
        } else {
            self.measuring = true;
            self.wanted_transfers = limit.transfers;
            self.wire.probes.begin_measurement(self.now);
            self.begin_measurement();
        }
    }
}

#[cfg(test)]
mod invariance_tests;
#[cfg(test)]
mod tests;
