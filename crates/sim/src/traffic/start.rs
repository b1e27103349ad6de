//! How a source begins.

use super::{Begin, Distribution, Rounding, Traffic};
use crate::random::{Draws, Stream};

/// Whether the source at `place` begins with a file: of a scaled population, as many as there
/// should be.
fn begins_active(share: f64, place: usize, scaled: bool, stream: &mut Stream) -> bool {
    if !scaled {
        return stream.chance(share);
    }
    let before = place as f64;
    libm::floor((before + 1.0) * share) > libm::floor(before * share)
}

/// How a source begins; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceStart {
    /// It sends after that: what is left of a file, so many packets, or 0 where that is drawn then.
    Sends {
        /// When it does.
        after: f64,
        /// In packets.
        size: u32,
    },
    /// So much is left of an OFF time, and so much over.
    Off {
        /// Until it sends.
        left: f64,
        /// Since it last did.
        over: f64,
    },
}

/// How a source begins; `None` if it does not by itself. `place` counts the sources of its class.
#[must_use]
pub fn draw_start(
    traffic: &Traffic,
    place: usize,
    scaled: bool,
    off_times: &mut Stream,
    sizes: &mut Stream,
) -> Option<SourceStart> {
    Some(match traffic {
        Traffic::OnOff { size, begin: Begin::Equilibrium { active, within }, .. }
            if begins_active(*active, place, scaled, off_times) =>
        {
            let left = libm::ceil(size.draw_residual(sizes));
            let after = Distribution::Uniform { low: 0.0, high: *within }.draw(off_times);
            SourceStart::Sends { after, size: Rounding::Nearest.file(left).packets }
        }
        // As much of an OFF time is over as is left of it: the two have the same distribution.
        Traffic::OnOff { off, begin: Begin::Equilibrium { .. }, .. } => {
            let left = off.draw_residual(off_times);
            SourceStart::Off { left, over: left }
        }
        Traffic::OnOff { off, begin: Begin::Off, .. } => {
            SourceStart::Off { left: off.draw(off_times), over: 0.0 }
        }
        Traffic::Bulk { start, .. } => {
            SourceStart::Sends { after: start.of(place, off_times), size: 0 }
        }
        Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return None,
    })
}
