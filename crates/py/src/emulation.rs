//! The link of the real kernel: programs at its ends, and what is told of it afterwards.

#[cfg(target_os = "linux")]
mod directions;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod traffic;

use crate::config::Plain;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use tcpcast_sim::RunConfig;

/// What is run over a link beside the configuration that the simulator would have.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no link to run it on"))]
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LinkDict {
    config: Plain<RunConfig>,
    /// Whether the return path has the rate, buffer and queue of the forward path, where it has
    /// none of its own.
    both_ways: bool,
    /// At which end the senders are: "near" or "far".
    sender: String,
    near: Vec<OsString>,
    far: Option<Vec<OsString>>,
    device: Option<String>,
    mtu: u32,
    capture: Option<(String, PathBuf)>,
    /// Whether what the host reaches is reached from the near end.
    nat: bool,
    most_bytes: usize,
}

/// Run programs over a link in new namespaces; returns the near program's exit status, or 3 where
/// there is no link. What was counted, or the fault, is written to the descriptor `answer`. The
/// calling process has one thread, and ends soon: it has left its own network namespace.
#[pyfunction]
#[pyo3(signature = (link, *, lifeline, answer))]
pub(crate) fn run_link(
    py: Python<'_>,
    link: LinkDict,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    run(py, link, lifeline, answer)
}

/// Run a scenario's flows over a link in new namespaces; returns 0, or 3 where that failed. What is
/// counted is written to the descriptor `answer` while it runs. As for `run_link`.
#[pyfunction]
#[pyo3(signature = (traffic, *, lifeline, answer))]
pub(crate) fn run_traffic(
    py: Python<'_>,
    traffic: &Bound<'_, PyAny>,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    run_flows(py, traffic, lifeline, answer)
}

#[cfg(not(target_os = "linux"))]
fn run_flows(_: Python<'_>, _: &Bound<'_, PyAny>, _: i32, _: i32) -> PyResult<i32> {
    Err(pyo3::exceptions::PyOSError::new_err("a link needs Linux"))
}

#[cfg(target_os = "linux")]
fn run_flows(
    py: Python<'_>,
    traffic: &Bound<'_, PyAny>,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    traffic::run(py, traffic.extract()?, lifeline, answer)
}

#[cfg(not(target_os = "linux"))]
fn run(_: Python<'_>, _: LinkDict, _: i32, _: i32) -> PyResult<i32> {
    Err(pyo3::exceptions::PyOSError::new_err("a link needs Linux"))
}

#[cfg(target_os = "linux")]
use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use super::{LinkDict, directions::both};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;
    use tcpcast_emu::command::LinkCommand;
    use tcpcast_emu::nat::Nat;
    use tcpcast_emu::network::DeviceKind;
    use tcpcast_emu::path::Side;
    use tcpcast_emu::sandbox;

    pub(super) fn run(py: Python<'_>, link: LinkDict, lifeline: i32, answer: i32) -> PyResult<i32> {
        let lifeline = OwnedFd::from(pipe(lifeline, OpenOptions::new().read(true))?);
        let mut answer = pipe(answer, OpenOptions::new().write(true))?;
        let nat = link.nat;
        let mut command = link.into_command()?;
        if nat {
            // Whoever reads it may have gone; then nobody reads the status either.
            match Nat::open() {
                Ok(nat) => command.nat = Some(nat),
                Err(fault) => {
                    let _ = writeln!(answer, "fault {fault}");
                    return Ok(3);
                }
            }
        }
        Ok(py.detach(|| told(command, lifeline, answer)))
    }

    /// The pipe of that number once more: the caller keeps its own end.
    pub(super) fn pipe(number: i32, end: &OpenOptions) -> io::Result<File> {
        end.open(format!("/proc/self/fd/{number}"))
    }

    fn told(command: LinkCommand, lifeline: OwnedFd, mut answer: File) -> i32 {
        let mut inside_answer = match answer.try_clone() {
            Ok(answer) => answer,
            Err(_) => return 3,
        };
        let ran = sandbox::run(move || match command.run(&lifeline) {
            Ok(ended) => {
                // Whoever reads it may have gone; then nobody reads the status either.
                let _ = inside_answer.write_all(ended.lines().as_bytes());
                ended.status
            }
            Err(fault) => {
                let _ = writeln!(inside_answer, "fault {fault}");
                fault.status()
            }
        });
        ran.unwrap_or_else(|fault| {
            let _ = writeln!(answer, "fault {fault}");
            3
        })
    }

    impl LinkDict {
        fn into_command(self) -> PyResult<LinkCommand> {
            let both = both(self.config.0, self.both_ways)?;
            let (mut forward, mut back, mut delays) = both;
            if side(&self.sender)? == Side::Far {
                std::mem::swap(&mut forward, &mut back);
                delays = (delays.1, delays.0);
            }
            let device = match self.device.as_deref() {
                None => None,
                Some("tun") => Some(DeviceKind::Tap),
                Some("veth") => Some(DeviceKind::Veth),
                Some(other) => return Err(unknown("device", other)),
            };
            let capture = match self.capture {
                Some((at, path)) => Some((side(&at)?, File::create(path)?)),
                None => None,
            };
            let (near, far, mtu, memory) = (self.near, self.far, self.mtu, self.most_bytes);
            let nat = None;
            Ok(LinkCommand { forward, back, delays, mtu, near, far, device, capture, nat, memory })
        }
    }

    pub(super) fn side(name: &str) -> PyResult<Side> {
        match name {
            "near" => Ok(Side::Near),
            "far" => Ok(Side::Far),
            other => Err(unknown("side", other)),
        }
    }

    fn unknown(what: &str, name: &str) -> PyErr {
        PyValueError::new_err(format!("unknown {what}: {name}"))
    }
}
