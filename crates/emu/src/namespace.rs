//! Unnamed network namespaces, which exist as long as a descriptor, device or process uses them.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

/// A network namespace.
#[derive(Debug)]
pub struct NetworkNamespace(File);

impl NetworkNamespace {
    /// Creates a namespace, with its loopback interface down.
    ///
    /// # Errors
    /// Fails if the caller may not create namespaces.
    pub fn new() -> io::Result<Self> {
        run_on_new_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::of_calling_thread()
        })
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// Fails without `/proc`.
    pub fn of_calling_thread() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Descriptor of the namespace.
    #[must_use]
    pub fn descriptor(&self) -> &File {
        &self.0
    }

    /// Moves the calling thread to the namespace.
    ///
    /// # Errors
    /// Fails if the caller may not enter namespaces.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `act` in the namespace on a new thread. Descriptors opened there, and programs started
    /// there, stay in the namespace.
    ///
    /// # Errors
    /// Returns the error of `act`, or the error of entering the namespace.
    pub fn run_in_namespace<T: Send>(
        &self,
        act: impl FnOnce() -> io::Result<T> + Send,
    ) -> io::Result<T> {
        run_on_new_thread(|| {
            self.enter()?;
            act()
        })
    }
}

fn run_on_new_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let panicked = || io::Error::other("a thread in a network namespace panicked");
    thread::scope(|scope| spawn_thread(scope, act)?.join().map_err(|_| panicked())?)
}

/// Starts a thread.
///
/// # Errors
/// Fails if the limit of processes or memory is reached.
pub(crate) fn spawn_thread<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    act: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, act).map_err(thread_start_error)
}

/// Adds advice to the error of a thread that was not started.
pub(crate) fn thread_start_error(error: io::Error) -> io::Error {
    let advice = "raise the limits of processes and memory (ulimit -u, ulimit -v)";
    io::Error::new(error.kind(), format!("cannot start a thread: {error}; {advice}"))
}
