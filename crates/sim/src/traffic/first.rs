//! How a source begins.

use super::{Begin, Law, Rounding, Traffic};
use crate::random::{Draws, Stream};

/// Whether the source at `place` begins with a file: of a crowd, as many as there should be.
fn begins_active(share: f64, place: usize, crowd: bool, stream: &mut Stream) -> bool {
    if !crowd {
        return stream.chance(share);
    }
    let before = place as f64;
    libm::floor((before + 1.0) * share) > libm::floor(before * share)
}

/// How a source begins; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum First {
    /// It sends after that: what is left of a file, so many packets, or 0 where that is drawn then.
    Sends {
        /// When it does.
        after: f64,
        /// In packets.
        size: u32,
    },
    /// So much is left of a silence, and so much over.
    Silent {
        /// Until it sends.
        left: f64,
        /// Since it last did.
        over: f64,
    },
}

/// How a source begins; `None` if it does not by itself. `place` counts the sources of its class.
#[must_use]
pub fn first(
    traffic: &Traffic,
    place: usize,
    crowd: bool,
    silences: &mut Stream,
    sizes: &mut Stream,
) -> Option<First> {
    Some(match traffic {
        Traffic::OnOff { size, begin: Begin::Equilibrium { active, within }, .. }
            if begins_active(*active, place, crowd, silences) =>
        {
            let left = libm::ceil(size.draw_excess(sizes));
            let after = Law::Uniform { low: 0.0, high: *within }.draw(silences);
            First::Sends { after, size: Rounding::Nearest.file(left).packets }
        }
        // As much of a silence is over as is left of it: the two have the same law.
        Traffic::OnOff { off, begin: Begin::Equilibrium { .. }, .. } => {
            let left = off.draw_excess(silences);
            First::Silent { left, over: left }
        }
        Traffic::OnOff { off, begin: Begin::Silent, .. } => {
            First::Silent { left: off.draw(silences), over: 0.0 }
        }
        Traffic::Bulk { start, .. } => First::Sends { after: start.of(place, silences), size: 0 },
        Traffic::Transfers { .. } | Traffic::Arrivals { .. } => return None,
    })
}
