//! Properties of random networks.

mod invariances;
mod random_network;
mod reference;
mod shares;
