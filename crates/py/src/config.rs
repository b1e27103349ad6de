//! Configurations as Python gives them: plain data, which goes as JSON text into the Rust types.
//!
//! JSON rather than a walk over Python's objects: the standard library writes it, floats keep every
//! bit, and an error says the path of the key that is wrong.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use serde::de::DeserializeOwned;

/// An argument of plain data that is a configuration.
pub(crate) struct Plain<T>(pub T);

impl<T: DeserializeOwned> FromPyObject<'_, '_> for Plain<T> {
    type Error = PyErr;

    fn extract(data: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let py = data.py();
        let options = PyDict::new(py);
        options.set_item(intern!(py, "allow_nan"), false)?;
        let json = PyModule::import(py, intern!(py, "json"))?;
        let text = json.call_method(intern!(py, "dumps"), (data,), Some(&options))?;
        let text: PyBackedStr = text.extract()?;
        let mut reader = serde_json::Deserializer::from_str(&text);
        let read = serde_path_to_error::deserialize(&mut reader);
        read.map(Self).map_err(|e| PyValueError::new_err(format!("{}: {}", e.path(), e.inner())))
    }
}
