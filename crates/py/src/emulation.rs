//! Emulated links between network namespaces, for commands or for the flows of a scenario.

#[cfg(target_os = "linux")]
mod directions;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod traffic;

use crate::python_config::PlainConfig;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use tcpcast_sim::RunConfig;

/// Arguments of `run_link`: the configuration of the simulator and the programs at both ends.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there is no link to run it on"))]
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct LinkDict {
    config: PlainConfig<RunConfig>,
    /// Whether the return path copies the rate, buffer and queue of the forward path if the
    /// configuration has no return link.
    both_ways: bool,
    /// End of the senders: "near" or "far".
    sender: String,
    near: Vec<OsString>,
    far: Option<Vec<OsString>>,
    device: Option<String>,
    mtu: u32,
    capture: Option<(String, PathBuf)>,
    /// Whether the near end has access to the network of the host.
    nat: bool,
    most_bytes: usize,
}

/// Run programs over a link in new namespaces. Return the exit status of the near program, or 3 if
/// the link fails. Write the counters or an error to the file descriptor `answer`. The calling
/// process must have one thread and should exit soon, because it leaves its network namespace.
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

/// Run the flows of a scenario over a link in new namespaces. Return 0, or 3 on failure. Write the
/// counters to the file descriptor `answer` during the run. The caller must meet the requirements
/// of `run_link`.
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
    traffic::run_traffic_dict(py, traffic.extract()?, lifeline, answer)
}

#[cfg(not(target_os = "linux"))]
fn run(_: Python<'_>, _: LinkDict, _: i32, _: i32) -> PyResult<i32> {
    Err(pyo3::exceptions::PyOSError::new_err("a link needs Linux"))
}

#[cfg(target_os = "linux")]
use linux::run;

#[cfg(target_os = "linux")]
mod linux {
    use super::{LinkDict, directions::link_directions};
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;
    use tcpcast_emu::command::LinkCommand;
    use tcpcast_emu::nat::Nat;
    use tcpcast_emu::network::DeviceKind;
    use tcpcast_emu::path::LinkSide;
    use tcpcast_emu::sandbox;

    pub(super) fn run(py: Python<'_>, link: LinkDict, lifeline: i32, answer: i32) -> PyResult<i32> {
        let lifeline = OwnedFd::from(reopen_pipe(lifeline, OpenOptions::new().read(true))?);
        let mut answer = reopen_pipe(answer, OpenOptions::new().write(true))?;
        let nat = link.nat;
        let mut command = link.into_command()?;
        if nat {
            match Nat::open_host_namespace() {
                Ok(nat) => command.nat = Some(nat),
                Err(error) => {
                    // Ignore a closed pipe: without a reader, the status is not used either.
                    let _ = writeln!(answer, "fault {error}");
                    return Ok(3);
                }
            }
        }
        Ok(py.detach(|| run_link_command(command, lifeline, answer)))
    }

    /// Opens the pipe of a file descriptor again; the caller keeps its own descriptor.
    pub(super) fn reopen_pipe(number: i32, end: &OpenOptions) -> io::Result<File> {
        end.open(format!("/proc/self/fd/{number}"))
    }

    fn run_link_command(command: LinkCommand, lifeline: OwnedFd, mut answer: File) -> i32 {
        let mut inside_answer = match answer.try_clone() {
            Ok(answer) => answer,
            Err(_) => return 3,
        };
        let status = sandbox::run_in_sandbox(move || match command.run(&lifeline) {
            Ok(outcome) => {
                // Ignore a closed pipe: without a reader, the status is not used either.
                let _ = inside_answer.write_all(outcome.to_summary_lines().as_bytes());
                outcome.status
            }
            Err(error) => {
                let _ = writeln!(inside_answer, "fault {error}");
                error.exit_status()
            }
        });
        status.unwrap_or_else(|error| {
            let _ = writeln!(answer, "fault {error}");
            3
        })
    }

    impl LinkDict {
        fn into_command(self) -> PyResult<LinkCommand> {
            let (mut forward, mut back, mut delays) =
                link_directions(self.config.0, self.both_ways)?;
            if parse_side(&self.sender)? == LinkSide::Far {
                std::mem::swap(&mut forward, &mut back);
                delays = (delays.1, delays.0);
            }
            let device = match self.device.as_deref() {
                None => None,
                Some("tun") => Some(DeviceKind::Tap),
                Some("veth") => Some(DeviceKind::Veth),
                Some(other) => return Err(unknown_name_error("device", other)),
            };
            let capture = match self.capture {
                Some((at, path)) => Some((parse_side(&at)?, File::create(path)?)),
                None => None,
            };
            let (near, far, mtu, memory) = (self.near, self.far, self.mtu, self.most_bytes);
            let nat = None;
            Ok(LinkCommand { forward, back, delays, mtu, near, far, device, capture, nat, memory })
        }
    }

    pub(super) fn parse_side(name: &str) -> PyResult<LinkSide> {
        match name {
            "near" => Ok(LinkSide::Near),
            "far" => Ok(LinkSide::Far),
            other => Err(unknown_name_error("side", other)),
        }
    }

    fn unknown_name_error(what: &str, name: &str) -> PyErr {
        PyValueError::new_err(format!("unknown {what}: {name}"))
    }
}
