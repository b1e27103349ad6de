//! Where captures are read from.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tcpcast_trace::{ReadError, Stopped};

/// How long a signal may wait for a named pipe that nobody writes to.
const NOTHING_YET: Duration = Duration::from_millis(50);
/// After how long without a writer a message is printed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where a capture comes from; without any, from standard input.
#[derive(FromPyObject)]
pub(crate) enum Source {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

/// A stream that stops when Python has a signal for us.
pub(super) struct Watched<'a, R> {
    pub(super) stream: R,
    pub(super) interrupted: &'a AtomicBool,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if look(self.interrupted) {
                return Err(io::Error::other(Stopped));
            }
            match self.stream.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// Whether somebody wants this to end. It is remembered, since a signal is told once.
pub(super) fn look(interrupted: &AtomicBool) -> bool {
    if !interrupted.load(Ordering::Relaxed) && Python::attach(|py| py.check_signals().is_err()) {
        interrupted.store(true, Ordering::Relaxed);
    }
    interrupted.load(Ordering::Relaxed)
}

/// Which of two captures could not be read, and why.
pub(super) enum Unread {
    Before(ReadError),
    After(ReadError),
}

impl Unread {
    /// The second capture's faults carry a mark by which Python knows whose they are.
    pub(super) fn into_py(self, py: Python<'_>) -> PyErr {
        let (error, after) = match self {
            Self::Before(error) => (error, false),
            Self::After(error) => (error, true),
        };
        let raised: PyErr = match error {
            // A signal came before there was anything to tell.
            ReadError::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<Stopped>()) => {
                PyKeyboardInterrupt::new_err(())
            }
            ReadError::Io(error) => error.into(),
            other => PyValueError::new_err(other.to_string()),
        };
        // An attribute of an exception object can be set; nothing is lost if not.
        let _ = raised.value(py).setattr("after", after);
        raised
    }
}

pub(super) fn open(source: &Source) -> Result<Box<dyn Read + '_>, ReadError> {
    Ok(match source {
        Source::Path(path) if is_fifo(path) => Box::new(Fifo::of(path.clone())?),
        Source::Path(path) => Box::new(File::open(path)?),
        Source::Bytes(bytes) => Box::new(&bytes[..]),
    })
}

#[cfg(unix)]
fn is_fifo(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_fifo(_path: &Path) -> bool {
    false
}

/// A named pipe. To open one takes until somebody writes to it, whatever signals come meanwhile, so
/// that is done beside; whoever reads is told every now and then that there is nothing yet.
enum Fifo {
    Opening { path: PathBuf, opened: Receiver<io::Result<File>>, message_due: Option<Instant> },
    Open(File),
}

impl Fifo {
    fn of(path: PathBuf) -> io::Result<Self> {
        let (tell, opened) = mpsc::channel();
        let name = path.clone();
        Builder::new().spawn(move || tell.send(File::open(name)))?;
        Ok(Self::Opening { path, opened, message_due: Some(Instant::now() + PATIENCE) })
    }
}

impl Read for Fifo {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Self::Opening { path, opened, message_due } = self {
            if message_due.take_if(|due| *due <= Instant::now()).is_some() {
                // Nothing is lost if standard error is closed.
                let _ = writeln!(
                    io::stderr(),
                    "tcpcast: {path:?}: waiting for a program to write to this pipe"
                );
            }
            let opened = opened.recv_timeout(NOTHING_YET).map_err(|error| match error {
                RecvTimeoutError::Timeout => io::ErrorKind::Interrupted,
                RecvTimeoutError::Disconnected => io::ErrorKind::BrokenPipe,
            });
            *self = Self::Open(opened??);
        }
        match self {
            Self::Open(file) => file.read(into),
            Self::Opening { .. } => Ok(0),
        }
    }
}
