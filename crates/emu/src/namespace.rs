//! Unnamed network namespaces, which exist as long as a descriptor, device or process uses them.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// Creates a namespace, with its loopback interface down.
    ///
    /// # Errors
    /// Fails if the caller may not create namespaces.
    pub fn new() -> io::Result<Self> {
        on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::current()
        })
    }

    /// Returns the namespace of the calling thread.
    ///
    /// # Errors
    /// Fails without `/proc`.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Descriptor of the namespace.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.0
    }

    /// Runs `act` in the namespace on a new thread. Descriptors opened there, and programs started
    /// there, stay in the namespace.
    ///
    /// # Errors
    /// Returns the error of `act`, or that of entering the namespace.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_thread(|| {
            setns(&self.0, CloneFlags::CLONE_NEWNET)?;
            act()
        })
    }
}

fn on_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let panicked = || io::Error::other("a thread in a network namespace panicked");
    thread::scope(|scope| spawn(scope, act)?.join().map_err(|_| panicked())?)
}

/// Starts a thread.
///
/// # Errors
/// Fails if the limit of processes or memory is reached.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    act: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, act).map_err(no_thread)
}

/// Adds advice to the error of a thread that was not started.
pub(crate) fn no_thread(error: io::Error) -> io::Error {
    let advice = "raise the limits of processes and memory (ulimit -u, ulimit -v)";
    io::Error::new(error.kind(), format!("cannot start a thread: {error}; {advice}"))
}
