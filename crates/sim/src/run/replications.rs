//! Replications of one run, side by side on threads. Each has its own streams and its own place,
//! so neither their number nor the number of threads changes any of them.

use super::{RunLimit, Simulation, StopReason, Watch};
use crate::balance::Unbalanced;
use crate::clock::Nanos;
use crate::config::RunConfig;
use crate::cross::CrossTrafficQueue;
use crate::probe::{Capture, Probes, SourceRecord};
use crate::queue::{AnyQueue, DropTail, Fair, Managed, QueueConfig, QueueDiscipline, Red};
use crate::random::{Named, Purpose, Stream};
use crate::tcp::cc::{Reno, RenoBytes};
use crate::tcp::{AnySender, MaxPlus, Sender, SendingEnd, WindowUnit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// One replication: a [`Simulation`] whatever its queue.
///
/// What differs between runs is chosen once, here, so that a packet meets no choice on its way.
pub trait Replication: Send + Sync {
    /// See [`Simulation::advance`].
    fn advance(&mut self, run_limit: RunLimit, watch: &mut Watch<'_>) -> StopReason;

    /// See [`Simulation::flush`].
    ///
    /// # Errors
    /// [`Unbalanced`] if it lost count of a packet.
    fn flush(&mut self) -> Result<&Probes, Unbalanced>;

    /// The probes as they stand.
    fn probes(&self) -> &Probes;

    /// Virtual time now.
    fn now(&self) -> Nanos;

    /// Whether the warm-up is over.
    fn is_measuring(&self) -> bool;

    /// Each source's packets and ON time since the warm-up.
    fn records(&self) -> Box<dyn Iterator<Item = &SourceRecord> + '_>;

    /// The capture of that number, where the run takes it.
    fn capture_mut(&mut self, _index: usize) -> Option<&mut Capture> {
        None
    }
}

impl<S, Q, const HAS_TAPS: bool, const HAS_HOPS: bool> Replication
    for Simulation<S, Q, HAS_TAPS, HAS_HOPS>
where
    S: SendingEnd + Send + Sync,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync,
{
    fn advance(&mut self, run_limit: RunLimit, watch: &mut Watch<'_>) -> StopReason {
        self.advance(run_limit, watch)
    }

    fn flush(&mut self) -> Result<&Probes, Unbalanced> {
        self.flush()
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

    fn capture_mut(&mut self, index: usize) -> Option<&mut Capture> {
        self.capture_mut(index)
    }
}

/// Any sender has code for any queue, with taps and hops; the usual ones also have code without
/// these for each of the usual queues. More would be too much code.
fn replication(config: &RunConfig, number: u32) -> Box<dyn Replication> {
    let alone = !config.is_watched() && !config.has_stages() && !needs_any_queue(config);
    let queue = alone.then_some(&config.queue);
    if config.has_modern() {
        return of_any_sender(config, number, queue);
    }
    match (config.tcp.instant.is_some(), config.tcp.window_unit, queue) {
        (true, _, Some(QueueConfig::DropTail)) => {
            bare::<MaxPlus, _>(config, number, DropTail::new(config.buffer))
        }
        (true, _, Some(QueueConfig::Fair(fair))) if !fair.is_random() => {
            bare::<MaxPlus, _>(config, number, Fair::new(*fair, config.buffer))
        }
        (true, ..) => whole::<MaxPlus, _>(config, number, any_queue(config, number)),
        (false, WindowUnit::Packets, _) => of_packets(config, number, queue),
        (false, WindowUnit::Bytes, Some(QueueConfig::DropTail)) => {
            bare::<Sender<RenoBytes>, _>(config, number, DropTail::new(config.buffer))
        }
        (false, WindowUnit::Bytes, _) => {
            whole::<Sender<RenoBytes>, _>(config, number, any_queue(config, number))
        }
    }
}

/// Where today's TCP is among the sources each has an end of any kind.
fn of_any_sender(
    config: &RunConfig,
    number: u32,
    queue: Option<&QueueConfig>,
) -> Box<dyn Replication> {
    match queue {
        Some(QueueConfig::DropTail) => {
            bare::<AnySender, _>(config, number, DropTail::new(config.buffer))
        }
        Some(QueueConfig::Managed(managed)) => {
            let early = Stream::named(config.seed, number, 0, Purpose::EarlyDrop);
            let queue = Managed::new(managed.clone(), config.buffer, early);
            bare::<AnySender, _>(config, number, queue)
        }
        _ => whole::<AnySender, _>(config, number, any_queue(config, number)),
    }
}

/// Classic senders that count their windows in packets.
fn of_packets(
    config: &RunConfig,
    number: u32,
    queue: Option<&QueueConfig>,
) -> Box<dyn Replication> {
    match queue {
        Some(QueueConfig::DropTail) => {
            bare::<Sender<Reno>, _>(config, number, DropTail::new(config.buffer))
        }
        Some(QueueConfig::Red(red)) => {
            let early = Stream::named(config.seed, number, 0, Purpose::EarlyDrop);
            bare::<Sender<Reno>, _>(config, number, Red::new(*red, config.buffer, early))
        }
        Some(QueueConfig::Fair(fair)) if !fair.is_random() => {
            bare::<Sender<Reno>, _>(config, number, Fair::new(*fair, config.buffer))
        }
        // What hops and taps are mostly asked for with: a twentieth less than with any queue.
        None if config.queue == QueueConfig::DropTail && !needs_any_queue(config) => {
            whole::<Sender<Reno>, _>(config, number, DropTail::new(config.buffer))
        }
        _ => whole::<Sender<Reno>, _>(config, number, any_queue(config, number)),
    }
}

/// Without taps and hops, through one queue of its own.
fn bare<S, Q>(config: &RunConfig, number: u32, queue: Q) -> Box<dyn Replication>
where
    S: SendingEnd + Send + Sync + 'static,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync + 'static,
{
    Box::new(Simulation::<S, Q, false, false>::new(config, queue, number))
}

/// With taps and hops.
fn whole<S, Q>(config: &RunConfig, number: u32, queue: Q) -> Box<dyn Replication>
where
    S: SendingEnd + Send + Sync + 'static,
    S::Receiver: Send + Sync,
    Q: QueueDiscipline + Send + Sync + 'static,
{
    Box::new(Simulation::<S, Q, true, true>::new(config, queue, number))
}

/// Returns true if other packets than those of the sources come to the bottleneck, or if theirs have
/// several lengths.
fn needs_any_queue(config: &RunConfig) -> bool {
    !config.cross_at(config.before.len()).is_empty() || config.has_several_lengths()
}

/// The bottleneck's queue, whatever it is and whatever else comes there.
pub(super) fn any_queue(config: &RunConfig, number: u32) -> CrossTrafficQueue {
    let stream = |purpose| Stream::named(config.seed, number, 0, purpose);
    let (early, tie) = (stream(Purpose::EarlyDrop), stream(Purpose::Tie));
    let queue = AnyQueue::new(config.queue.clone(), config.buffer, early, tie);
    let crossed = config.cross_at(config.before.len());
    CrossTrafficQueue::new(queue, &crossed, config.seed, number).with_scale(config.scale())
}

/// Watches a run from another thread: how far it is, and whether it should stop.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    finished: AtomicBool,
    shares: Vec<AtomicU64>,
}

impl Control {
    /// For so many replications.
    #[must_use]
    pub fn new(replications: usize) -> Self {
        let shares = (0..replications).map(|_| AtomicU64::new(0)).collect();
        Self { shares, ..Self::default() }
    }

    /// Asks all replications to stop soon.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether every replication has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// The share done of all replications together, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        let total: f64 =
            self.shares.iter().map(|share| f64::from_bits(share.load(Ordering::Relaxed))).sum();
        total / self.shares.len().max(1) as f64
    }
}

/// All replications of a run, of the kind `R`. The first is there from the beginning; each other
/// one is set up when a thread takes it, so that thousands can be stopped before they are.
pub struct Replications<R: Replication + ?Sized = dyn Replication> {
    runs: Vec<Option<Box<R>>>,
    set_up: SetUp<R>,
}

type SetUp<R> = Box<dyn Fn(u32) -> Box<R> + Send + Sync>;

impl Replications {
    /// `count` replications; the first is traced and captured, if any is to be.
    #[must_use]
    pub fn new(config: &RunConfig, count: u32) -> Self {
        // Traces and captures are of the first replication.
        let mut others = config.clone();
        others.probes.traced.clear();
        others.probes.captures.clear();
        let first = replication(config, 0);
        Self::of(first, count, Box::new(move |number| replication(&others, number)))
    }
}

impl<R: Replication + ?Sized> Replications<R> {
    /// `count` replications of any kind, each set up by its number.
    #[must_use]
    pub fn each(count: u32, set_up: impl Fn(u32) -> Box<R> + Send + Sync + 'static) -> Self {
        Self::of(set_up(0), count, Box::new(set_up))
    }

    fn of(first: Box<R>, count: u32, set_up: SetUp<R>) -> Self {
        let mut runs: Vec<_> = (0..count).map(|_| None).collect();
        if let Some(place) = runs.first_mut() {
            *place = Some(first);
        }
        Self { runs, set_up }
    }

    /// How many there are to be.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Advances all to the run_limit on `threads` threads, this one among them; `Interrupted` if any was
    /// stopped short, `TooManyTransfers` if any could not go on.
    pub fn advance(
        &mut self,
        run_limit: RunLimit,
        threads: usize,
        control: &Control,
    ) -> StopReason {
        let (interrupted, too_many_transfers) = (AtomicBool::new(false), AtomicBool::new(false));
        let next = AtomicUsize::new(0);
        let set_up = &self.set_up;
        let work: Vec<_> = self.runs.iter_mut().map(Mutex::new).collect();
        let take = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = work.get(at) else { break };
                let share = &control.shares[at];
                let mut report = |done: f64| share.store(done.to_bits(), Ordering::Relaxed);
                // Each run is taken once, so the lock is free and cannot be poisoned.
                let Ok(mut run) = run.try_lock() else {
                    continue;
                };
                let stop = if control.stop.load(Ordering::Relaxed) {
                    StopReason::Interrupted
                } else {
                    let mut watch = Watch::new(&control.stop, &mut report);
                    run.get_or_insert_with(|| set_up(at as u32)).advance(run_limit, &mut watch)
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
                // A machine that has no more threads runs on those that it has.
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

    /// The probes of each replication, settled.
    ///
    /// # Errors
    /// [`Unbalanced`] if a replication lost count of a packet.
    pub fn flush(&mut self) -> Result<Vec<&Probes>, Unbalanced> {
        self.runs.iter_mut().flatten().map(|run| run.flush()).collect()
    }

    /// The replications that are set up: all, unless they were stopped before.
    pub fn runs(&self) -> impl Iterator<Item = &R> {
        self.runs.iter().flatten().map(AsRef::as_ref)
    }

    /// The capture of that number, which the first replication takes.
    pub fn capture_mut(&mut self, index: usize) -> Option<&mut Capture> {
        self.runs.first_mut()?.as_mut()?.capture_mut(index)
    }
}
