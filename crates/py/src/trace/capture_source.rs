//! Sources of captures.

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
use tcpcast_trace::{ReadError, StopRequested};

/// Interval between checks of signals while a named pipe has no writer.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time without a writer before a message is printed.
const MESSAGE_DELAY: Duration = Duration::from_secs(1);

/// Source of a capture.
#[derive(FromPyObject)]
pub(crate) enum CaptureSource {
    Bytes(PyBackedBytes),
    Path(PathBuf),
}

/// A stream that stops on a signal in Python.
pub(super) struct InterruptibleReader<'a, R> {
    pub(super) stream: R,
    pub(super) interrupted: &'a AtomicBool,
}

impl<R: Read> Read for InterruptibleReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if is_interrupted(self.interrupted) {
                return Err(io::Error::other(StopRequested));
            }
            match self.stream.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

/// Returns true if a signal has been received. The flag is stored because Python reports each
/// signal once.
pub(super) fn is_interrupted(interrupted: &AtomicBool) -> bool {
    if !interrupted.load(Ordering::Relaxed) && Python::attach(|py| py.check_signals().is_err()) {
        interrupted.store(true, Ordering::Relaxed);
    }
    interrupted.load(Ordering::Relaxed)
}

/// Error while reading the first (`Before`) or second (`After`) capture.
pub(super) enum CaptureError {
    Before(ReadError),
    After(ReadError),
}

impl CaptureError {
    /// Converts to a Python exception, whose attribute `after` is true for the second capture.
    pub(super) fn into_py(self, py: Python<'_>) -> PyErr {
        let (error, after) = match self {
            Self::Before(error) => (error, false),
            Self::After(error) => (error, true),
        };
        let raised: PyErr = match error {
            // A signal was received before any results.
            ReadError::Io(error)
                if error.get_ref().is_some_and(|inner| inner.is::<StopRequested>()) =>
            {
                PyKeyboardInterrupt::new_err(())
            }
            ReadError::Io(error) => error.into(),
            other => PyValueError::new_err(other.to_string()),
        };
        // Setting an attribute of an exception should not fail, and the error is not critical.
        let _ = raised.value(py).setattr("after", after);
        raised
    }
}

pub(super) fn open_source(source: &CaptureSource) -> Result<Box<dyn Read + '_>, ReadError> {
    Ok(match source {
        CaptureSource::Path(path) if is_fifo(path) => Box::new(FifoReader::new(path.clone())?),
        CaptureSource::Path(path) => Box::new(File::open(path)?),
        CaptureSource::Bytes(bytes) => Box::new(&bytes[..]),
    })
}

#[cfg(unix)]
fn is_fifo(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|result| result.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_fifo(_path: &Path) -> bool {
    false
}

/// A named pipe. Opening a pipe blocks until a writer opens it, even if signals arrive, so a
/// separate thread opens the pipe. Meanwhile, `read` periodically returns `Interrupted`.
enum FifoReader {
    Opening { path: PathBuf, opened: Receiver<io::Result<File>>, message_due: Option<Instant> },
    Open(File),
}

impl FifoReader {
    fn new(path: PathBuf) -> io::Result<Self> {
        let (sender, opened) = mpsc::channel();
        let name = path.clone();
        Builder::new().spawn(move || sender.send(File::open(name)))?;
        Ok(Self::Opening { path, opened, message_due: Some(Instant::now() + MESSAGE_DELAY) })
    }
}

impl Read for FifoReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Self::Opening { path, opened, message_due } = self {
            if message_due.take_if(|due| *due <= Instant::now()).is_some() {
                // Ignore a closed standard error.
                let _ = writeln!(
                    io::stderr(),
                    "tcpcast: {path:?}: waiting for a program to write to this pipe"
                );
            }
            let opened = opened.recv_timeout(POLL_INTERVAL).map_err(|error| match error {
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
