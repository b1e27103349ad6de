//! Programs at both ends of an emulated link.

use super::network::NetworkBuilder;
use super::sandboxed_run::{
    create_capture_file, open_answer, parse_side, run_in_sandbox, unknown_name_error, write_error,
};
use crate::python_config::ConfigFromPython;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use tcpcast_emu::command::LinkCommand;
use tcpcast_emu::nat::Nat;
use tcpcast_emu::network::DeviceKind;
use tcpcast_emu::path::LinkSide;
use tcpcast_sim::flows::NetworkConfig;

/// Arguments of `run_link`: the configuration of the simulator and the programs at both ends, which
/// are those of the first source of the first class.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct LinkDict {
    config: ConfigFromPython<NetworkConfig>,
    /// End of the server: "near" or "far".
    server: String,
    near: Vec<OsString>,
    far: Option<Vec<OsString>>,
    device: Option<String>,
    mtu: u32,
    capture: Option<(String, PathBuf)>,
    /// Whether the near end has access to the network of the host.
    nat: bool,
    most_bytes: usize,
}

impl LinkDict {
    fn into_command(self) -> PyResult<LinkCommand> {
        let mut builder = NetworkBuilder::new(self.config.0, 0);
        if builder.config().classes.is_empty() {
            return Err(PyValueError::new_err("an emulated link requires a class with routes"));
        }
        let mut routes = builder.add_routes(0, 0, 0);
        if parse_side(&self.server)? == LinkSide::Far {
            routes.reverse();
        }
        let network = builder.into_network();
        let device = match self.device.as_deref() {
            None => None,
            Some("tun") => Some(DeviceKind::Tap),
            Some("veth") => Some(DeviceKind::Veth),
            Some(other) => return Err(unknown_name_error("device", other)),
        };
        let capture = create_capture_file(self.capture)?;
        let (near, far, mtu, memory) = (self.near, self.far, self.mtu, self.most_bytes);
        let nat = None;
        Ok(LinkCommand { network, routes, mtu, near, far, device, capture, nat, memory })
    }
}

pub(super) fn run_link_dict(
    py: Python<'_>,
    link: &Bound<'_, PyAny>,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    let link: LinkDict = link.extract()?;
    let nat = link.nat;
    let mut command = link.into_command()?;
    if nat {
        match Nat::open_host_namespace() {
            Ok(nat) => command.nat = Some(nat),
            Err(error) => {
                write_error(&mut open_answer(answer)?, &error);
                return Ok(3);
            }
        }
    }
    run_in_sandbox(py, lifeline, answer, |lifeline, answer| {
        let result = command.run(lifeline)?;
        // Ignore a closed pipe: without a reader, the status is not used either.
        let _ = answer.write_all(result.to_summary_lines().as_bytes());
        Ok(result.program.status)
    })
}
