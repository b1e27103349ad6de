//! Parallel replications of one run. Each replication has separate random streams, so its results
//! depend neither on the number of replications nor on the number of threads.

use super::{RunLimit, RunWatch, Simulation, StopReason};
use crate::clock::Nanos;
use crate::config::RunConfig;
use crate::conservation::ConservationError;
use crate::cross::CrossTrafficQueue;
use crate::probe::{Probes, SimulatedCapture, SourceRecord};
use crate::queue::{AnyQueue, DropTail, FairQueue, ManagedQueue, QueueConfig, RedQueue};
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tcpcast_tcp::cc::{FractionalReno, Reno};
use tcpcast_tcp::{AnySender, CwndUnit, InstantFeedbackSender, Sender};

/// One replication: a [`Simulation`] with any queue, or a fixed point.
///
/// The type of the simulation is selected once per run, so that packets are processed without
/// run-time dispatch.
pub trait Replication: Send + Sync {
    /// Runs until a limit is reached or the watcher stops the run.
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason;

    /// Updates the counters to the current time and checks conservation: every packet is accounted
    /// for, and Little's law holds to the nanosecond.
    ///
    /// # Errors
    /// [`ConservationError`] if a conservation check fails.
    fn update_and_check_probes(&mut self) -> Result<&Probes, ConservationError>;

    /// Probes, without an update of pending counts.
    fn probes(&self) -> &Probes;

    /// Current virtual time.
    fn now(&self) -> Nanos;

    /// Whether the warm-up has ended.
    fn is_measuring(&self) -> bool;

    /// Packets and ON time of each source since the warm-up.
    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_>;

    /// The capture with this index, if the replication records it.
    fn capture_mut(&mut self, _index: usize) -> Option<&mut SimulatedCapture> {
        None
    }

    /// Probes of the cross flows of a fixed point, as of the last call of
    /// [`Replication::update_and_check_probes`].
    fn cross_flow_probes(&self) -> Option<&Probes> {
        None
    }

    /// Results of a fixed point per step and class, concatenated.
    fn step_results(&self) -> Option<Vec<f64>> {
        None
    }
}

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

/// Controls replications from another thread: reports progress and requests a stop.
#[derive(Debug, Default)]
pub struct RunControl {
    stop: AtomicBool,
    finished: AtomicBool,
    shares: Vec<AtomicU64>,
}

impl RunControl {
    /// Creates the control of `replications` replications.
    #[must_use]
    pub fn new(replications: usize) -> Self {
        let shares = (0..replications).map(|_| AtomicU64::new(0)).collect();
        Self { shares, ..Self::default() }
    }

    /// Requests all replications to stop soon.
    pub fn request_stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether every replication has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Mean completed fraction of all replications, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f64 {
        let total: f64 =
            self.shares.iter().map(|share| f64::from_bits(share.load(Ordering::Relaxed))).sum();
        total / self.shares.len().max(1) as f64
    }
}

/// All replications of a run. The first replication is created immediately, each other replication
/// when a thread starts it, so that a run with thousands of replications can be stopped before most
/// of them are set up.
pub struct Replications {
    runs: Vec<Option<Box<dyn Replication>>>,
    set_up: Box<dyn Fn(u32) -> Box<dyn Replication> + Send + Sync>,
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

    /// Creates `count` replications of any type; `set_up` creates a replication from its number.
    #[must_use]
    pub fn from_fn(
        count: u32,
        set_up: impl Fn(u32) -> Box<dyn Replication> + Send + Sync + 'static,
    ) -> Self {
        let runs = (0..count).map(|number| (number == 0).then(|| set_up(0))).collect();
        Self { runs, set_up: Box::new(set_up) }
    }

    /// Number of replications.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are no replications.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Advances all replications to `limit` on `threads` threads, including this one. Returns
    /// `Interrupted` if any was stopped, `TooManyTransfers` if any could not continue.
    pub fn advance(&mut self, limit: RunLimit, threads: usize, control: &RunControl) -> StopReason {
        let (interrupted, too_many_transfers) = (AtomicBool::new(false), AtomicBool::new(false));
        let next = AtomicUsize::new(0);
        let set_up = &self.set_up;
        let work: Vec<_> = self.runs.iter_mut().map(Mutex::new).collect();
        let take = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = work.get(index) else { break };
                let share = &control.shares[index];
                let mut report = |done: f64| share.store(done.to_bits(), Ordering::Relaxed);
                // Each replication is taken once, so the lock is free and cannot be poisoned.
                let Ok(mut run) = run.try_lock() else {
                    continue;
                };
                let stop = if control.stop.load(Ordering::Relaxed) {
                    StopReason::Interrupted
                } else {
                    let mut watch = RunWatch::new(&control.stop, &mut report);
                    run.get_or_insert_with(|| set_up(index as u32)).advance(limit, &mut watch)
                };
                match stop {
                    StopReason::Interrupted => interrupted.store(true, Ordering::Relaxed),
                    StopReason::TooManyTransfers => {
                        too_many_transfers.store(true, Ordering::Relaxed)
                    }
                    StopReason::Done => report(1.0),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.clamp(1, work.len().max(1)) {
                // If no more threads can be created, the existing threads do the work.
                if std::thread::Builder::new().spawn_scoped(scope, take).is_err() {
                    break;
                }
            }
            take();
        });
        control.finished.store(true, Ordering::Release);
        match (interrupted.into_inner(), too_many_transfers.into_inner()) {
            (true, _) => StopReason::Interrupted,
            (false, true) => StopReason::TooManyTransfers,
            (false, false) => StopReason::Done,
        }
    }

    /// Updates the counters of all replications, checks conservation and returns the probes.
    ///
    /// # Errors
    /// [`ConservationError`] if a conservation check of a replication fails.
    pub fn update_and_check_probes(&mut self) -> Result<Vec<&Probes>, ConservationError> {
        self.runs.iter_mut().flatten().map(|run| run.update_and_check_probes()).collect()
    }

    /// Replications that have been set up: all, unless the run was stopped earlier.
    pub fn created_replications(&self) -> impl Iterator<Item = &dyn Replication> {
        self.runs.iter().flatten().map(AsRef::as_ref)
    }

    /// The capture with this index of the first replication.
    pub fn capture_mut(&mut self, index: usize) -> Option<&mut SimulatedCapture> {
        self.runs.first_mut()?.as_mut()?.capture_mut(index)
    }
}
