//! A thread that works beside the one that reads: it is told in batches, of which a few at most are in progress, and
//! its reports come back.

use std::any::Any;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Batches that wait.
const QUEUED: usize = 4;
/// Batches in progress, at most: as many again are worked at, and one is being filled.
pub(super) const IN_PROGRESS: usize = 2 * QUEUED + 1;

/// What a thread can be given to work with.
pub(super) trait Work: Send + 'static {
    /// What it is told at a time.
    type Batch: Default + Send;
    type Report: Send;

    /// Does what a batch says, and empties it.
    fn work(&mut self, batch: &mut Self::Batch) -> Vec<Self::Report>;
}

/// Reports, or what a thread panicked with.
pub(super) type WorkerResult<R> = Result<Vec<R>, Box<dyn Any + Send>>;

/// The reports; of a thread that panicked, the same panic.
pub(super) fn reports<R>(results: WorkerResult<R>) -> Vec<R> {
    results.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A thread that works.
#[derive(Debug)]
pub(super) struct Worker<W: Work> {
    state: SyncSender<W>,
    batches: SyncSender<W::Batch>,
    /// Batches that are done, to be filled again.
    spare: Receiver<W::Batch>,
    thread: JoinHandle<Option<W>>,
}

impl<W: Work> Worker<W> {
    /// Starts a thread, if there is one to be had; its reports go to `results`.
    pub(super) fn start(name: &str, results: Sender<WorkerResult<W::Report>>) -> Option<Self> {
        let (state, taken) = sync_channel(1);
        let (batches, queue) = sync_channel(QUEUED);
        let (emptied, spare) = channel();
        let work = move || work(taken.recv().ok()?, &queue, &emptied, &results);
        let thread = Builder::new().name(name.to_owned()).spawn(work).ok()?;
        Some(Self { state, batches, spare, thread })
    }

    /// Hands over what it works with, once, before the first batch.
    pub(super) fn set_state(&self, work: W) {
        // It waits for nothing else: the channel is open.
        let _ = self.state.send(work);
    }

    /// Tells it what a batch says; an empty one to be filled.
    #[inline(never)]
    pub(super) fn submit(&self, batch: W::Batch) -> W::Batch {
        // If nobody takes it any more, the thread has said why.
        let _ = self.batches.send(batch);
        self.spare.try_recv().unwrap_or_default()
    }

    /// The thread ends, when it has done all; what it worked with, unless it panicked.
    pub(super) fn end(self) -> Option<W> {
        let Self { state, batches, thread, .. } = self;
        drop((state, batches));
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// What the thread does, until no batches come any more; `None` if it panicked.
fn work<W: Work>(
    mut worker: W,
    queue: &Receiver<W::Batch>,
    emptied: &Sender<W::Batch>,
    sender: &Sender<WorkerResult<W::Report>>,
) -> Option<W> {
    let all = AssertUnwindSafe(|| {
        let mut batches = Vec::with_capacity(QUEUED);
        while let Ok(first) = queue.recv() {
            // All that wait at once: who waits for room is woken once for several.
            batches.extend(iter::once(first).chain(queue.try_iter().take(QUEUED - 1)));
            for mut batch in batches.drain(..) {
                let results = worker.work(&mut batch);
                // It is filled again, or not.
                let _ = emptied.send(batch);
                // Nobody listens any more if the whole was given up.
                if !results.is_empty() && sender.send(Ok(results)).is_err() {
                    return;
                }
            }
        }
    });
    match catch_unwind(all) {
        Ok(()) => Some(worker),
        Err(panic) => {
            let _ = sender.send(Err(panic));
            None
        }
    }
}
