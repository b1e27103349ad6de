//! Selection of the type of a simulation.

use super::Simulation;
use crate::config::RunConfig;
use crate::cross::CrossTrafficQueue;
use crate::queue::{AnyQueue, DropTail, FairQueue, ManagedQueue, QueueConfig, RedQueue};
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use crate::replication::{Replication, Replications};
use tcpcast_tcp::cc::{FractionalReno, Reno};
use tcpcast_tcp::{AnySender, CwndUnit, InstantFeedbackSender, Sender};

/// A simulation without taps, with the bottleneck as the only hop.
type SingleHop<S, Q> = Simulation<S, Q, false, false>;

/// A simulation with taps and hops.
type TapsAndHops<S, Q> = Simulation<S, Q, true, true>;

/// Selects the simulation type. Each kind of sender has code for any queue, with taps and hops.
/// Common senders also have code without taps and hops for each common queue. More combinations
/// would be too much code.
fn create_replication(config: &RunConfig, number: u32) -> Box<dyn Replication> {
    let is_simple_queue = !needs_cross_traffic_queue(config);
    let is_single_hop = is_simple_queue
        && !config.needs_packet_reports()
        && !config.has_stages_besides_bottleneck();
    let queue = is_single_hop.then_some(&config.queue);
    let early = || RandomStream::for_entity(config.seed, number, 0, StreamPurpose::EarlyDrop);
    let drop_tail = || DropTail::new(config.buffer);
    let any_queue = || create_cross_traffic_queue(config, number);
    match (config.has_modern_tcp(), config.tcp.instant.is_some(), config.tcp.window_unit, queue) {
        (true, _, _, Some(QueueConfig::DropTail)) => {
            Box::new(SingleHop::<AnySender, _>::new(config, drop_tail(), number))
        }
        (true, _, _, Some(QueueConfig::Managed(managed))) => {
            let queue = ManagedQueue::new(managed.clone(), config.buffer, early());
            Box::new(SingleHop::<AnySender, _>::new(config, queue, number))
        }
        (true, ..) => Box::new(TapsAndHops::<AnySender, _>::new(config, any_queue(), number)),
        (_, true, _, Some(QueueConfig::DropTail)) => {
            Box::new(SingleHop::<InstantFeedbackSender, _>::new(config, drop_tail(), number))
        }
        (_, true, _, Some(QueueConfig::Fair(fair))) if !fair.is_random() => {
            let queue = FairQueue::new(*fair, config.buffer);
            Box::new(SingleHop::<InstantFeedbackSender, _>::new(config, queue, number))
        }
        (_, true, ..) => {
            Box::new(TapsAndHops::<InstantFeedbackSender, _>::new(config, any_queue(), number))
        }
        (.., CwndUnit::Packets, Some(QueueConfig::DropTail)) => {
            Box::new(SingleHop::<Sender<Reno>, _>::new(config, drop_tail(), number))
        }
        (.., CwndUnit::Packets, Some(QueueConfig::Red(red))) => {
            let queue = RedQueue::new(*red, config.buffer, early());
            Box::new(SingleHop::<Sender<Reno>, _>::new(config, queue, number))
        }
        (.., CwndUnit::Packets, Some(QueueConfig::Fair(fair))) if !fair.is_random() => {
            let queue = FairQueue::new(*fair, config.buffer);
            Box::new(SingleHop::<Sender<Reno>, _>::new(config, queue, number))
        }
        // Most runs with hops or taps have this queue; 5 % faster than `any_queue`.
        (.., CwndUnit::Packets, None)
            if config.queue == QueueConfig::DropTail && is_simple_queue =>
        {
            Box::new(TapsAndHops::<Sender<Reno>, _>::new(config, drop_tail(), number))
        }
        (.., CwndUnit::Packets, _) => {
            Box::new(TapsAndHops::<Sender<Reno>, _>::new(config, any_queue(), number))
        }
        (.., CwndUnit::Bytes, Some(QueueConfig::DropTail)) => {
            Box::new(SingleHop::<Sender<FractionalReno>, _>::new(config, drop_tail(), number))
        }
        (.., CwndUnit::Bytes, _) => {
            Box::new(TapsAndHops::<Sender<FractionalReno>, _>::new(config, any_queue(), number))
        }
    }
}

/// Whether the bottleneck receives cross packets, or packets of several lengths.
fn needs_cross_traffic_queue(config: &RunConfig) -> bool {
    !config.cross_streams_at_stage(config.hops_before.len()).is_empty()
        || config.has_several_lengths()
}

/// The bottleneck's queue as a [`CrossTrafficQueue`], with its cross traffic.
pub(super) fn create_cross_traffic_queue(config: &RunConfig, number: u32) -> CrossTrafficQueue {
    let stream = |purpose| RandomStream::for_entity(config.seed, number, 0, purpose);
    let (early, tie) = (stream(StreamPurpose::EarlyDrop), stream(StreamPurpose::Tie));
    let queue = AnyQueue::new(config.queue.clone(), config.buffer, early, tie);
    let streams = config.cross_streams_at_stage(config.hops_before.len());
    CrossTrafficQueue::new(queue, &streams, config.seed, number)
        .with_population_scale(config.max_population_scale())
}

impl Replications {
    /// Creates `count` replications. Only the first replication records traces and captures.
    #[must_use]
    pub fn new(config: &RunConfig, count: u32) -> Self {
        let first_config = config.clone();
        let mut config = config.clone();
        config.probes.traced.clear();
        config.probes.captures.clear();
        Self::from_fn(count, move |number| {
            create_replication(if number == 0 { &first_config } else { &config }, number)
        })
    }
}
