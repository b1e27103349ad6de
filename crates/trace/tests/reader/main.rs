//! The reader, on files made here and on captures that are kept outside.

mod captures;
mod damage;
mod formats;
mod links;
mod packets;
mod properties;
mod repetition;
mod tunnels;
mod writing;
