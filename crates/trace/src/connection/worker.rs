//! A thread that processes batches and returns reports. The number of batches in progress is
//! limited.

use std::any::Any;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Maximum number of queued batches.
const QUEUED: usize = 4;
/// Maximum number of batches in progress: queued, being processed, and one being filled.
pub(super) const IN_PROGRESS: usize = 2 * QUEUED + 1;

/// State of a worker thread.
pub(super) trait WorkerState: Send + 'static {
    /// Unit of work.
    type Batch: Default + Send;
    type Report: Send;

    /// Processes a batch and clears it.
    fn process_batch(&mut self, batch: &mut Self::Batch) -> Vec<Self::Report>;
}

/// Reports, or the panic of a thread.
pub(super) type WorkerResult<R> = Result<Vec<R>, Box<dyn Any + Send>>;

/// Returns the reports, or resumes the panic of the thread.
pub(super) fn reports_or_panic<R>(results: WorkerResult<R>) -> Vec<R> {
    results.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A worker thread.
#[derive(Debug)]
pub(super) struct Worker<W: WorkerState> {
    state: SyncSender<W>,
    batches: SyncSender<W::Batch>,
    /// Processed batches, for reuse.
    spare: Receiver<W::Batch>,
    thread: JoinHandle<Option<W>>,
}

impl<W: WorkerState> Worker<W> {
    /// Starts a thread whose reports are sent to `results`; `None` if that fails.
    pub(super) fn start(name: &str, results: Sender<WorkerResult<W::Report>>) -> Option<Self> {
        let (state, taken) = sync_channel(1);
        let (batches, queue) = sync_channel(QUEUED);
        let (emptied, spare) = channel();
        let work = move || run_worker(taken.recv().ok()?, &queue, &emptied, &results);
        let thread = Builder::new().name(name.to_owned()).spawn(work).ok()?;
        Some(Self { state, batches, spare, thread })
    }

    /// Passes the state to the thread; called once, before the first batch.
    pub(super) fn send_state(&self, work: W) {
        // The thread waits for this message only, so the channel is open.
        let _ = self.state.send(work);
    }

    /// Passes a batch to the thread and returns an empty batch.
    #[inline(never)]
    pub(super) fn submit(&self, batch: W::Batch) -> W::Batch {
        // If the thread has ended, it has sent the reason.
        let _ = self.batches.send(batch);
        self.spare.try_recv().unwrap_or_default()
    }

    /// Ends the thread after it has processed all batches. Returns its state, or `None` if it
    /// panicked.
    pub(super) fn end_thread(self) -> Option<W> {
        let Self { state, batches, thread, .. } = self;
        drop((state, batches));
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Runs on the thread until the batch channel is closed. Returns `None` after a panic.
fn run_worker<W: WorkerState>(
    mut worker: W,
    queue: &Receiver<W::Batch>,
    emptied: &Sender<W::Batch>,
    sender: &Sender<WorkerResult<W::Report>>,
) -> Option<W> {
    let process = AssertUnwindSafe(|| {
        let mut batches = Vec::with_capacity(QUEUED);
        while let Ok(first) = queue.recv() {
            // Takes all queued batches, so that a blocked sender is woken once for several batches.
            batches.extend(iter::once(first).chain(queue.try_iter().take(QUEUED - 1)));
            for mut batch in batches.drain(..) {
                let results = worker.process_batch(&mut batch);
                // The result is ignored: sending fails only if the pool has ended and does not
                // reuse batches.
                let _ = emptied.send(batch);
                // The receiver is gone if processing was aborted.
                if !results.is_empty() && sender.send(Ok(results)).is_err() {
                    return;
                }
            }
        }
    });
    match catch_unwind(process) {
        Ok(()) => Some(worker),
        Err(panic) => {
            let _ = sender.send(Err(panic));
            None
        }
    }
}
