//! Conversion of configurations from plain Python data to Rust types by serde.
//!
//! The module implements a serde data format for None, bool, int, float, str, list, tuple and dict.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::{self, Display};

/// A configuration, extracted from an argument of plain data.
pub(crate) struct ConfigFromPython<T>(pub T);

impl<T: DeserializeOwned> FromPyObject<'_, '_> for ConfigFromPython<T> {
    type Error = PyErr;

    fn extract(data: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let read = serde_path_to_error::deserialize(PythonValue(data.to_owned()));
        read.map(Self).map_err(|e| PyValueError::new_err(format!("{}: {}", e.path(), e.inner())))
    }
}

/// A Python object as a serde deserializer.
struct PythonValue<'py>(Bound<'py, PyAny>);

/// Error message of a conversion.
#[derive(Debug)]
struct ConfigError(String);

impl Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

impl de::Error for ConfigError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<PyErr> for ConfigError {
    fn from(error: PyErr) -> Self {
        Self(error.to_string())
    }
}

impl<'de> IntoDeserializer<'de, ConfigError> for PythonValue<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a dict.
fn dict_entries<'py>(
    dict: &Bound<'py, PyDict>,
) -> MapDeserializer<'static, impl Iterator<Item = (PythonValue<'py>, PythonValue<'py>)>, ConfigError>
{
    let dict = dict.clone();
    MapDeserializer::new(
        dict.into_iter().map(|(key, value)| (PythonValue(key), PythonValue(value))),
    )
}

impl<'de> Deserializer<'de> for PythonValue<'_> {
    type Error = ConfigError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        let object = &self.0;
        if let Ok(dict) = object.cast::<PyDict>() {
            visitor.visit_map(dict_entries(dict))
        } else if let Ok(text) = object.cast::<PyString>() {
            visitor.visit_str(&text.to_cow()?)
        } else if let Ok(truth) = object.cast::<PyBool>() {
            visitor.visit_bool(truth.is_true())
        } else if object.is_instance_of::<PyInt>() {
            // Negative numbers that do not fit into an i64 raise an error.
            match object.extract::<u64>() {
                Ok(count) => visitor.visit_u64(count),
                Err(_) => visitor.visit_i64(object.extract()?),
            }
        } else if object.is_instance_of::<PyFloat>() {
            visitor.visit_f64(object.extract()?)
        } else if let Ok(list) = object.cast::<PyList>() {
            visitor.visit_seq(SeqDeserializer::new(list.iter().map(PythonValue)))
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            visitor.visit_seq(SeqDeserializer::new(tuple.iter().map(PythonValue)))
        } else if object.is_none() {
            visitor.visit_unit()
        } else {
            Err(ConfigError(format!("{} is not plain data", object.get_type())))
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        if self.0.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        visitor.visit_newtype_struct(self)
    }

    /// An enum is a name, or a dict with the name as its only key.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        match self.0.cast::<PyDict>() {
            Ok(dict) if dict.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(dict_entries(dict)))
            }
            Ok(dict) => Err(ConfigError(format!("a choice must have one key, not {}", dict.len()))),
            Err(_) => {
                let name: String = self.0.extract::<String>()?;
                visitor.visit_enum(name.into_deserializer())
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
