//! Emulated links between network namespaces, for commands or for the flows of a scenario.

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod sandboxed_run;
#[cfg(target_os = "linux")]
mod traffic;

#[cfg(target_os = "linux")]
use self::{link::run_link_dict, traffic::run_traffic_dict};
#[cfg(not(target_os = "linux"))]
use self::{raise_link_needs_linux as run_link_dict, raise_link_needs_linux as run_traffic_dict};
use pyo3::prelude::*;

/// Run programs over a link in new namespaces. Return the exit status of the near program, or 3 if
/// the link fails. Write the counters or an error to the file descriptor `answer`. The calling
/// process must have one thread and should exit soon, because it leaves its network namespace.
#[pyfunction]
#[pyo3(signature = (link, *, lifeline, answer))]
pub(crate) fn run_link(
    py: Python<'_>,
    link: &Bound<'_, PyAny>,
    lifeline: i32,
    answer: i32,
) -> PyResult<i32> {
    run_link_dict(py, link, lifeline, answer)
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
    run_traffic_dict(py, traffic, lifeline, answer)
}

#[cfg(not(target_os = "linux"))]
fn raise_link_needs_linux(_: Python<'_>, _: &Bound<'_, PyAny>, _: i32, _: i32) -> PyResult<i32> {
    Err(pyo3::exceptions::PyOSError::new_err("an emulated link requires Linux"))
}
