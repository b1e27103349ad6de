//! The Python module `tcpcast._native`.

use pyo3::prelude::*;

/// The compiled half of tcpcast.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
