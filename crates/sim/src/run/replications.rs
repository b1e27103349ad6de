//! Parallel replications of one run. Each replication has separate random streams, so its results
//! depend neither on the number of replications nor on the number of threads.

use super::{RunLimit, RunWatch, Simulation, StopReason};
use crate::clock::Nanos;
use crate::config::RunConfig;
use crate::conservation::ConservationError;
use crate::cross::CrossTrafficQueue;
use crate::probe::{Probes, SimulatedCapture, SourceRecord};
use crate::queue::{
    AnyQueue, DropTail, FairQueue, ManagedQueue, QueueConfig, QueueDiscipline, RedQueue,
};
use crate::random::{NamedStream, RandomStream, StreamPurpose};
use crate::tcp::cc::{Reno, RenoBytes};
use crate::tcp::{AnySender, InstantFeedbackSender, Sender, SendingEnd, WindowUnit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// One replication: a [`Simulation`] with any queue.
///
/// The type of the simulation is selected once per run, so that packets are processed without
/// run-time dispatch.
pub trait Replication: Send + Sync {
    /// See [`Simulation::advance`].
    fn advance(&mut self, limit: RunLimit, watch: &mut RunWatch<'_>) -> StopReason;

    /// See [`Simulation::update_counters`].
    ///
    /// # Errors
    /// [`ConservationError`] if a conservation check fails.
    fn flush(&mut self) -> Result<&Probes, ConservationError>;

    /// Probes, without a flush of pending counts.
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
}

impl<S, Q, const HAS_TAPS: bool, const HAS_HOP: bool> Replication
    for Simulation<S, Q, HAS_TAPS, HAS_HOP>
where
    S: SendingEnd + Send + Sync,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync,
{
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

    fn capture_mut(&mut self, index: usize) -> Option<&mut SimulatedCapture> {
        self.capture_mut(index)
    }
}

/// Selects the simulation type. Each kind of sender has code for any queue, with taps and hops.
/// Common senders also have code without taps and hops for each common queue. More combinations
/// would be too much code.
fn create_replication(config: &RunConfig, number: u32) -> Box<dyn Replication> {
    let is_plain =
        !config.needs_packet_reports() && !config.has_stages() && !needs_any_queue(config);
    let queue = is_plain.then_some(&config.queue);
    if config.has_modern_tcp() {
        return replication_with_any_sender(config, number, queue);
    }
    match (config.tcp.instant.is_some(), config.tcp.window_unit, queue) {
        (true, _, Some(QueueConfig::DropTail)) => replication_without_taps_and_hops::<
            InstantFeedbackSender,
            _,
        >(
            config, number, DropTail::new(config.buffer)
        ),
        (true, _, Some(QueueConfig::Fair(fair))) if !fair.is_random() => {
            replication_without_taps_and_hops::<InstantFeedbackSender, _>(
                config,
                number,
                FairQueue::new(*fair, config.buffer),
            )
        }
        (true, ..) => replication_with_taps_and_hops::<InstantFeedbackSender, _>(
            config,
            number,
            create_any_queue(config, number),
        ),
        (false, WindowUnit::Packets, _) => replication_with_classic_senders(config, number, queue),
        (false, WindowUnit::Bytes, Some(QueueConfig::DropTail)) => {
            replication_without_taps_and_hops::<Sender<RenoBytes>, _>(
                config,
                number,
                DropTail::new(config.buffer),
            )
        }
        (false, WindowUnit::Bytes, _) => replication_with_taps_and_hops::<Sender<RenoBytes>, _>(
            config,
            number,
            create_any_queue(config, number),
        ),
    }
}

/// Replication if at least one class has modern TCP. Sources may have any kind of endpoint.
fn replication_with_any_sender(
    config: &RunConfig,
    number: u32,
    queue: Option<&QueueConfig>,
) -> Box<dyn Replication> {
    match queue {
        Some(QueueConfig::DropTail) => replication_without_taps_and_hops::<AnySender, _>(
            config,
            number,
            DropTail::new(config.buffer),
        ),
        Some(QueueConfig::Managed(managed)) => {
            let early = RandomStream::for_entity(config.seed, number, 0, StreamPurpose::EarlyDrop);
            let queue = ManagedQueue::new(managed.clone(), config.buffer, early);
            replication_without_taps_and_hops::<AnySender, _>(config, number, queue)
        }
        _ => replication_with_taps_and_hops::<AnySender, _>(
            config,
            number,
            create_any_queue(config, number),
        ),
    }
}

/// Replication with classic senders whose windows count packets.
fn replication_with_classic_senders(
    config: &RunConfig,
    number: u32,
    queue: Option<&QueueConfig>,
) -> Box<dyn Replication> {
    match queue {
        Some(QueueConfig::DropTail) => replication_without_taps_and_hops::<Sender<Reno>, _>(
            config,
            number,
            DropTail::new(config.buffer),
        ),
        Some(QueueConfig::Red(red)) => {
            let early = RandomStream::for_entity(config.seed, number, 0, StreamPurpose::EarlyDrop);
            replication_without_taps_and_hops::<Sender<Reno>, _>(
                config,
                number,
                RedQueue::new(*red, config.buffer, early),
            )
        }
        Some(QueueConfig::Fair(fair)) if !fair.is_random() => {
            replication_without_taps_and_hops::<Sender<Reno>, _>(
                config,
                number,
                FairQueue::new(*fair, config.buffer),
            )
        }
        // Most runs with hops or taps have this queue; 5 % faster than `any_queue`.
        None if config.queue == QueueConfig::DropTail && !needs_any_queue(config) => {
            replication_with_taps_and_hops::<Sender<Reno>, _>(
                config,
                number,
                DropTail::new(config.buffer),
            )
        }
        _ => replication_with_taps_and_hops::<Sender<Reno>, _>(
            config,
            number,
            create_any_queue(config, number),
        ),
    }
}

/// Replication without taps and hops, with a specific queue.
fn replication_without_taps_and_hops<S, Q>(
    config: &RunConfig,
    number: u32,
    queue: Q,
) -> Box<dyn Replication>
where
    S: SendingEnd + Send + Sync + 'static,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync + 'static,
{
    Box::new(Simulation::<S, Q, false, false>::new(config, queue, number))
}

/// Replication with taps and hops.
fn replication_with_taps_and_hops<S, Q>(
    config: &RunConfig,
    number: u32,
    queue: Q,
) -> Box<dyn Replication>
where
    S: SendingEnd + Send + Sync + 'static,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync + 'static,
{
    Box::new(Simulation::<S, Q, true, true>::new(config, queue, number))
}

/// Whether the bottleneck receives cross packets, or packets of several lengths.
fn needs_any_queue(config: &RunConfig) -> bool {
    !config.cross_streams_at(config.hops_before.len()).is_empty() || config.has_several_lengths()
}

/// The bottleneck's queue as a [`CrossTrafficQueue`], with its cross traffic.
pub(super) fn create_any_queue(config: &RunConfig, number: u32) -> CrossTrafficQueue {
    let stream = |purpose| RandomStream::for_entity(config.seed, number, 0, purpose);
    let (early, tie) = (stream(StreamPurpose::EarlyDrop), stream(StreamPurpose::Tie));
    let queue = AnyQueue::new(config.queue.clone(), config.buffer, early, tie);
    let streams = config.cross_streams_at(config.hops_before.len());
    CrossTrafficQueue::new(queue, &streams, config.seed, number)
        .with_scale(config.max_scale_factor())
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

/// All replications of a run, of type `R`. The first replication is created immediately, each other
/// replication when a thread starts it, so that a run with thousands of replications can be stopped
/// before most of them are set up.
pub struct Replications<R: Replication + ?Sized = dyn Replication> {
    runs: Vec<Option<Box<R>>>,
    set_up: CreateReplication<R>,
}

type CreateReplication<R> = Box<dyn Fn(u32) -> Box<R> + Send + Sync>;

impl Replications {
    /// Creates `count` replications. Only the first replication records traces and captures.
    #[must_use]
    pub fn new(config: &RunConfig, count: u32) -> Self {
        let mut other_config = config.clone();
        other_config.probes.traced.clear();
        other_config.probes.captures.clear();
        let first = create_replication(config, 0);
        Self::with_first(
            first,
            count,
            Box::new(move |number| create_replication(&other_config, number)),
        )
    }
}

impl<R: Replication + ?Sized> Replications<R> {
    /// Creates `count` replications of any type; `set_up` creates a replication from its number.
    #[must_use]
    pub fn from_fn(count: u32, set_up: impl Fn(u32) -> Box<R> + Send + Sync + 'static) -> Self {
        Self::with_first(set_up(0), count, Box::new(set_up))
    }

    fn with_first(first: Box<R>, count: u32, set_up: CreateReplication<R>) -> Self {
        let mut runs: Vec<_> = (0..count).map(|_| None).collect();
        if let Some(slot) = runs.first_mut() {
            *slot = Some(first);
        }
        Self { runs, set_up }
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

    /// Flushes all replications and returns their probes.
    ///
    /// # Errors
    /// [`ConservationError`] if a conservation check of a replication fails.
    pub fn flush(&mut self) -> Result<Vec<&Probes>, ConservationError> {
        self.runs.iter_mut().flatten().map(|run| run.flush()).collect()
    }

    /// Replications that have been set up: all, unless the run was stopped earlier.
    pub fn created_replications(&self) -> impl Iterator<Item = &R> {
        self.runs.iter().flatten().map(AsRef::as_ref)
    }

    /// The capture with this index of the first replication.
    pub fn capture_mut(&mut self, index: usize) -> Option<&mut SimulatedCapture> {
        self.runs.first_mut()?.as_mut()?.capture_mut(index)
    }
}
