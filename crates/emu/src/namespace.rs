//! Network namespaces without a name: one lives as long as a descriptor, a device or a process in
//! it.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::thread::{self, Scope, ScopedJoinHandle};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// A new one, with its loopback interface down, as the kernel makes it.
    ///
    /// # Errors
    /// The caller may not make namespaces.
    pub fn new() -> io::Result<Self> {
        on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::current()
        })
    }

    /// That of the calling thread.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    /// Its descriptor, to be named to the kernel.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.0
    }

    /// Does something in it, on a thread of its own: descriptors that are opened there, and programs
    /// that are started, stay in it.
    ///
    /// # Errors
    /// What `act` returns, or the namespace cannot be entered.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_thread(|| {
            setns(&self.0, CloneFlags::CLONE_NEWNET)?;
            act()
        })
    }
}

fn on_thread<T: Send>(act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let gone = || io::Error::other("a thread in a network namespace panicked");
    thread::scope(|scope| spawn(scope, act)?.join().map_err(|_| gone())?)
}

/// Starts a thread.
///
/// # Errors
/// The limit of processes or of memory is reached.
pub(crate) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    act: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, act).map_err(no_thread)
}

/// The message about a thread that was not started.
pub(crate) fn no_thread(error: io::Error) -> io::Error {
    let what = "raise the limits of processes and memory (ulimit -u, ulimit -v)";
    io::Error::new(error.kind(), format!("cannot start a thread: {error}; {what}"))
}
