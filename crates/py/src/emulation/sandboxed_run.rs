//! Runs an emulated link in new namespaces, and reports its errors over a pipe.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use tcpcast_emu::command::LinkError;
use tcpcast_emu::path::LinkSide;
use tcpcast_emu::sandbox;

/// Calls `run` in new namespaces with the pipes `lifeline` and `answer`, which are given as file
/// descriptors. Writes an error to `answer`. Returns the exit status.
pub(super) fn run_in_sandbox(
    py: Python<'_>,
    lifeline: i32,
    answer: i32,
    run: impl FnOnce(&OwnedFd, &mut File) -> Result<i32, LinkError> + Send,
) -> PyResult<i32> {
    let lifeline = OwnedFd::from(reopen_pipe(lifeline, OpenOptions::new().read(true))?);
    let mut answer = open_answer(answer)?;
    let mut inside_answer = answer.try_clone()?;
    Ok(py.detach(|| {
        let status = sandbox::run_in_sandbox(move || {
            run(&lifeline, &mut inside_answer).unwrap_or_else(|error| {
                write_error(&mut inside_answer, &error);
                error.exit_status()
            })
        });
        status.unwrap_or_else(|error| {
            write_error(&mut answer, &error);
            3
        })
    }))
}

/// Writes an error to the pipe. Ignores a closed pipe: without a reader, the status is not used
/// either.
pub(super) fn write_error(answer: &mut File, error: &impl Display) {
    let _ = writeln!(answer, "fault {error}");
}

pub(super) fn open_answer(number: i32) -> io::Result<File> {
    reopen_pipe(number, OpenOptions::new().write(true))
}

/// Opens the pipe of a file descriptor again; the caller keeps its own descriptor.
fn reopen_pipe(number: i32, end: &OpenOptions) -> io::Result<File> {
    end.open(format!("/proc/self/fd/{number}"))
}

/// Creates the capture file of a side of the link.
pub(super) fn create_capture_file(
    capture: Option<(String, PathBuf)>,
) -> PyResult<Option<(LinkSide, File)>> {
    capture.map(|(side, path)| Ok((parse_side(&side)?, File::create(path)?))).transpose()
}

pub(super) fn parse_side(name: &str) -> PyResult<LinkSide> {
    match name {
        "near" => Ok(LinkSide::Near),
        "far" => Ok(LinkSide::Far),
        other => Err(unknown_name_error("side", other)),
    }
}

pub(super) fn unknown_name_error(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what}: {name}"))
}
