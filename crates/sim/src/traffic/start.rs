//! Initial state of a source.

use super::{Distribution, OnOffInitialState, SizeRounding, Traffic};
use crate::random::{RandomSource, RandomStream};

/// Whether the source at index `index_in_class` of its class starts with a file. In a scaled
/// population the number of such sources is not random.
fn starts_with_file(
    share: f64,
    index_in_class: usize,
    scaled: bool,
    stream: &mut RandomStream,
) -> bool {
    if !scaled {
        return stream.draw_chance(share);
    }
    let before = index_in_class as f64;
    libm::floor((before + 1.0) * share) > libm::floor(before * share)
}

/// Initial state of a source; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceStart {
    /// The source starts to send.
    Sends {
        /// Start time.
        after: f64,
        /// Residual file size in packets; 0 if the size is drawn at the start.
        size: u32,
    },
    /// The source is in an OFF time.
    Off {
        /// Remaining OFF time.
        left: f64,
        /// Elapsed OFF time.
        elapsed: f64,
    },
}

/// Draws the initial state of a source; `None` if the source does not start on its own.
/// `index_in_class` is its index within the class.
#[must_use]
pub fn draw_source_start(
    traffic: &Traffic,
    index_in_class: usize,
    scaled: bool,
    off_times: &mut RandomStream,
    sizes: &mut RandomStream,
) -> Option<SourceStart> {
    Some(match traffic {
        Traffic::OnOff {
            size, begin: OnOffInitialState::Equilibrium { active, within }, ..
        } if starts_with_file(*active, index_in_class, scaled, off_times) => {
            let left = libm::ceil(size.draw_residual_time(sizes));
            let after = Distribution::Uniform { low: 0.0, high: *within }.draw_value(off_times);
            SourceStart::Sends {
                after,
                size: SizeRounding::Nearest.round_to_file_size(left).packets,
            }
        }
        // The elapsed and the remaining OFF time have the same distribution.
        Traffic::OnOff { off, begin: OnOffInitialState::Equilibrium { .. }, .. } => {
            let left = off.draw_residual_time(off_times);
            SourceStart::Off { left, elapsed: left }
        }
        Traffic::OnOff { off, begin: OnOffInitialState::Off, .. } => {
            SourceStart::Off { left: off.draw_value(off_times), elapsed: 0.0 }
        }
        Traffic::Bulk { start, .. } => {
            SourceStart::Sends { after: start.start_time(index_in_class, off_times), size: 0 }
        }
        Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return None,
    })
}
