//! Queue disciplines against reference models, and properties of all of them.

mod cake_reference;
mod codel_reference;
mod drr_reference;
mod dualpi2_reference;
mod pie_reference;
mod properties;
