//! Parallel replications of one run. Each replication has separate random streams, so its results
//! depend neither on the number of replications nor on the number of threads.

mod watch;

pub use watch::RunWatch;

use crate::clock::Nanos;
use crate::conservation::ConservationError;
use crate::probe::{Probes, SimulatedCapture, SourceRecord};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// End of a run: the first limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimit {
    /// Finished transfers after the warm-up; `u64::MAX` for no limit.
    pub transfers: u64,
    /// Virtual time.
    pub until: Nanos,
}

/// Reason for the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A limit was reached.
    Done,
    /// The watcher stopped the run.
    Interrupted,
    /// The number of concurrent transfers exceeded its maximum: transfers arrive faster than they
    /// end.
    TooManyTransfers,
}

/// One replication: a simulation of any type, or a fixed point.
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
