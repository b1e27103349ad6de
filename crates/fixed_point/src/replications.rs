//! Replications of a fixed point with any queue discipline.

use crate::config::FixedPointConfig;
use crate::run::FixedPointReplication;
use tcpcast_sim::cross::CrossTrafficQueue;
use tcpcast_sim::queue::{
    AnyQueue, DropTail, FairQueue, ManagedQueue, PolicerQueue, QueueConfig, RedQueue,
};
use tcpcast_sim::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_sim::{Replication, Replications, RunConfig};

/// Creates `count` replications of a fixed point.
#[must_use]
pub fn create_replications(
    config: &RunConfig,
    spec: &FixedPointConfig,
    count: u32,
) -> Replications {
    let (config, spec) = (config.clone(), spec.clone());
    Replications::from_fn(count, move |number| create_replication(&config, &spec, number))
}

fn create_replication(
    config: &RunConfig,
    spec: &FixedPointConfig,
    number: u32,
) -> Box<dyn Replication> {
    let stream = |purpose| RandomStream::for_entity(config.seed, number, 0, purpose);
    let streams = config.cross_streams_at_stage(config.hops_before.len());
    if !streams.is_empty() {
        let (early, tie) = (stream(StreamPurpose::EarlyDrop), stream(StreamPurpose::Tie));
        let queue = AnyQueue::new(config.queue.clone(), config.buffer, early, tie);
        let queue = CrossTrafficQueue::new(queue, &streams, config.seed, number);
        return Box::new(FixedPointReplication::new(config, spec, queue, number));
    }
    match &config.queue {
        QueueConfig::DropTail => {
            Box::new(FixedPointReplication::new(config, spec, DropTail::new(config.buffer), number))
        }
        QueueConfig::Red(red) => {
            let queue = RedQueue::new(*red, config.buffer, stream(StreamPurpose::EarlyDrop));
            Box::new(FixedPointReplication::new(config, spec, queue, number))
        }
        QueueConfig::Fair(fair) if fair.is_random() => {
            let queue =
                FairQueue::with_random_selection(*fair, config.buffer, stream(StreamPurpose::Tie));
            Box::new(FixedPointReplication::new(config, spec, queue, number))
        }
        QueueConfig::Fair(fair) => Box::new(FixedPointReplication::new(
            config,
            spec,
            FairQueue::new(*fair, config.buffer),
            number,
        )),
        QueueConfig::Policed(policed) => {
            Box::new(FixedPointReplication::new(config, spec, PolicerQueue::new(*policed), number))
        }
        // Scenarios reject this queue because the recursion supports drops only on arrival.
        QueueConfig::Managed(managed) => {
            let queue =
                ManagedQueue::new(managed.clone(), config.buffer, stream(StreamPurpose::EarlyDrop));
            Box::new(FixedPointReplication::new(config, spec, queue, number))
        }
    }
}
