//! Tests of the reader, with generated files and with captures outside the project.

mod captures;
mod damage;
mod formats;
mod links;
mod packets;
mod properties;
mod repetition;
mod tunnels;
mod writing;
