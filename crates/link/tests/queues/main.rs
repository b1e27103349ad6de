//! Queue disciplines against reference models, and properties of all of them.

mod codel_reference;
mod drr_reference;
mod dualpi2_reference;
mod pie_reference;
mod properties;
