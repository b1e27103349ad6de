//! Replications of a fixed point with any queue discipline.

use crate::config::FixedPointConfig;
use crate::run::FixedPoint;
use crate::step_results::ClassStepResult;
use tcpcast_sim::clock::Nanos;
use tcpcast_sim::probe::{Probes, SourceRecord};
use tcpcast_sim::queue::{
    DropTail, FairQueue, ManagedQueue, PolicerQueue, QueueConfig, QueueDiscipline, RedQueue,
};
use tcpcast_sim::random::{NamedStream, RandomStream, StreamPurpose};
use tcpcast_sim::{
    ConservationError, Replication, Replications, RunConfig, RunLimit, RunWatch, StopReason,
};

/// A replication of a fixed point. [`Replication::probes`] returns the probes of reference flows.
pub trait FixedPointReplication: Replication {
    /// This replication as a [`Replication`].
    fn as_replication(&self) -> &dyn Replication;

    /// Probes of cross flows, as of the last [`Replication::flush`].
    fn cross_probes(&self) -> &Probes;

    /// See [`FixedPoint::step_results`].
    fn step_results(&self) -> Vec<ClassStepResult>;
}

/// Creates `count` replications of a fixed point.
#[must_use]
pub fn fixed_point_replications(
    config: &RunConfig,
    spec: &FixedPointConfig,
    count: u32,
) -> Replications<dyn FixedPointReplication> {
    let (config, spec) = (config.clone(), spec.clone());
    Replications::from_fn(count, move |number| create_replication(&config, &spec, number))
}

fn create_replication(
    config: &RunConfig,
    spec: &FixedPointConfig,
    number: u32,
) -> Box<dyn FixedPointReplication> {
    let stream = |purpose| RandomStream::for_entity(config.seed, number, 0, purpose);
    match &config.queue {
        QueueConfig::DropTail => {
            Box::new(FixedPoint::new(config, spec, DropTail::new(config.buffer), number))
        }
        QueueConfig::Red(red) => {
            let queue = RedQueue::new(*red, config.buffer, stream(StreamPurpose::EarlyDrop));
            Box::new(FixedPoint::new(config, spec, queue, number))
        }
        QueueConfig::Fair(fair) if fair.is_random() => {
            let queue =
                FairQueue::with_random_selection(*fair, config.buffer, stream(StreamPurpose::Tie));
            Box::new(FixedPoint::new(config, spec, queue, number))
        }
        QueueConfig::Fair(fair) => {
            Box::new(FixedPoint::new(config, spec, FairQueue::new(*fair, config.buffer), number))
        }
        QueueConfig::Policed(policed) => {
            Box::new(FixedPoint::new(config, spec, PolicerQueue::new(*policed), number))
        }
        // Scenarios reject this queue because the recursion supports drops only on arrival.
        QueueConfig::Managed(managed) => {
            let queue =
                ManagedQueue::new(managed.clone(), config.buffer, stream(StreamPurpose::EarlyDrop));
            Box::new(FixedPoint::new(config, spec, queue, number))
        }
    }
}

impl<Q: QueueDiscipline + Send + Sync> Replication for FixedPoint<Q> {
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason {
        self.advance(limit, watch)
    }

    fn flush(&mut self) -> Result<&Probes, ConservationError> {
        self.update_counters()
    }

    fn probes(&self) -> &Probes {
        self.probes()
    }

    fn now(&self) -> Nanos {
        self.now()
    }

    fn is_measuring(&self) -> bool {
        self.is_measuring()
    }

    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_> {
        Box::new(self.records())
    }
}

impl<Q: QueueDiscipline + Send + Sync> FixedPointReplication for FixedPoint<Q> {
    fn as_replication(&self) -> &dyn Replication {
        self
    }

    fn cross_probes(&self) -> &Probes {
        self.cross_probes()
    }

    fn step_results(&self) -> Vec<ClassStepResult> {
        self.step_results()
    }
}
