//! Configurations as Python gives them: plain data, read into the Rust types by serde.
//!
//! The walk over Python's objects is a serde data format of its own, of what plain data is made of:
//! None, truths, numbers, texts, lists, tuples and dicts.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::{self, Display};

/// An argument of plain data that is a configuration.
pub(crate) struct Plain<T>(pub T);

impl<T: DeserializeOwned> FromPyObject<'_, '_> for Plain<T> {
    type Error = PyErr;

    fn extract(data: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let read = serde_path_to_error::deserialize(Value(data.to_owned()));
        read.map(Self).map_err(|e| PyValueError::new_err(format!("{}: {}", e.path(), e.inner())))
    }
}

/// A Python object as serde reads it.
struct Value<'py>(Bound<'py, PyAny>);

/// What is wrong with one, in words.
#[derive(Debug)]
struct Fault(String);

impl Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self(error.to_string())
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Value<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a dict.
fn entries<'py>(
    dict: &Bound<'py, PyDict>,
) -> MapDeserializer<'static, impl Iterator<Item = (Value<'py>, Value<'py>)>, Fault> {
    let dict = dict.clone();
    MapDeserializer::new(dict.into_iter().map(|(key, value)| (Value(key), Value(value))))
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let object = &self.0;
        if let Ok(dict) = object.cast::<PyDict>() {
            visitor.visit_map(entries(dict))
        } else if let Ok(text) = object.cast::<PyString>() {
            visitor.visit_str(&text.to_cow()?)
        } else if let Ok(truth) = object.cast::<PyBool>() {
            visitor.visit_bool(truth.is_true())
        } else if object.is_instance_of::<PyInt>() {
            // Whatever is negative fits into an i64, or else says so.
            match object.extract::<u64>() {
                Ok(count) => visitor.visit_u64(count),
                Err(_) => visitor.visit_i64(object.extract()?),
            }
        } else if object.is_instance_of::<PyFloat>() {
            visitor.visit_f64(object.extract()?)
        } else if let Ok(list) = object.cast::<PyList>() {
            visitor.visit_seq(SeqDeserializer::new(list.iter().map(Value)))
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            visitor.visit_seq(SeqDeserializer::new(tuple.iter().map(Value)))
        } else if object.is_none() {
            visitor.visit_unit()
        } else {
            Err(Fault(format!("{} is no plain data", object.get_type())))
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.is_none() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// A choice is its name, or a dict of one key, the name.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.0.cast::<PyDict>() {
            Ok(dict) if dict.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(entries(dict)))
            }
            Ok(dict) => Err(Fault(format!("a choice has one key, not {}", dict.len()))),
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
