//! Captures on several interfaces. `tcpdump -i any` on a host that forwards captures a packet on each interface that it
//! passes, and offload may split it differently on each; so does a capture on several interfaces, or a file merged from
//! captures of several hosts. Cooked headers of version 2 and pcapng have the number of the interface: of each
//! direction of a connection, only the interface on which it arrives first is read.

use std::collections::{BTreeSet, HashMap};

use crate::segment::{Endpoint, Nanos, Segment};

/// Another interface is read if the first has been silent for so long: routes change.
const SILENT: Nanos = 1_000_000_000;
/// Interfaces share the load if one segment in so many on another interface was new.
const SHARED: u64 = 4;
/// Directions that are remembered; then all are forgotten.
const MAX_DIRECTIONS: usize = 1 << 16;
/// Numbers of interfaces that are kept for the warning.
const MAX_NAMED: usize = 8;

#[derive(Debug)]
struct Tap {
    interface: u32,
    last: Nanos,
    /// Highest sequence and acknowledgement number that it carried.
    reached: (u32, u32),
    /// Segments on other interfaces that had data or acknowledgements beyond these, and those that had not.
    ahead: u64,
    behind: u64,
}

impl Tap {
    /// Whether a segment on another interface is a copy: it has no new data or acknowledgement, and few had.
    /// Otherwise the interfaces share the load.
    fn has_carried(&mut self, (data, acknowledged): (u32, u32)) -> bool {
        let ahead = is_later(data, self.reached.0) || is_later(acknowledged, self.reached.1);
        self.ahead += u64::from(ahead);
        self.behind += u64::from(!ahead);
        !ahead && self.ahead * SHARED < self.behind
    }

    fn carry(&mut self, (data, acknowledged): (u32, u32)) {
        if is_later(data, self.reached.0) {
            self.reached.0 = data;
        }
        if is_later(acknowledged, self.reached.1) {
            self.reached.1 = acknowledged;
        }
    }
}

fn is_later(number: u32, than: u32) -> bool {
    number.wrapping_sub(than) as i32 > 0
}

/// Interfaces by direction.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    taps: HashMap<(Endpoint, Endpoint), Tap>,
    /// Interfaces whose segments were left out.
    others: BTreeSet<u32>,
    left_out: String,
}

impl Interfaces {
    /// Whether the segment is a copy on another interface.
    pub(super) fn is_copy(&mut self, segment: &Segment, interface: u32) -> bool {
        if self.taps.len() >= MAX_DIRECTIONS {
            self.taps.clear();
        }
        let direction = (segment.source, segment.destination);
        let numbers = (segment.sequence.wrapping_add(segment.payload), segment.acknowledgement);
        let first = Tap { interface, last: segment.time, reached: numbers, ahead: 0, behind: 0 };
        let tap = self.taps.entry(direction).or_insert(first);
        let silent = segment.time.saturating_sub(tap.last) > SILENT;
        if tap.interface != interface && !silent && tap.has_carried(numbers) {
            if self.others.len() < MAX_NAMED && self.others.insert(interface) {
                let numbers: Vec<_> = self.others.iter().map(ToString::to_string).collect();
                self.left_out = numbers.join(", ");
            }
            return true;
        }
        (tap.interface, tap.last) = (interface, segment.time);
        tap.carry(numbers);
        false
    }

    /// Numbers of the interfaces whose segments were left out, separated by commas.
    pub(super) fn left_out(&self) -> &str {
        &self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::BLANK;

    fn seen(interfaces: &mut Interfaces, ms: u64, port: u16, interface: u32) -> bool {
        let mut segment = Segment { time: ms * 1_000_000, ..BLANK };
        segment.source.port = port;
        interfaces.is_copy(&segment, interface)
    }

    #[test]
    fn each_direction_is_read_where_it_arrives() {
        let mut interfaces = Interfaces::default();
        let found = [(0, 80, 2), (0, 80, 3), (1, 90, 3), (1, 90, 2), (2, 80, 2)]
            .map(|(ms, port, interface)| seen(&mut interfaces, ms, port, interface));
        assert_eq!(found, [false, true, false, true, false]);
        assert_eq!(interfaces.left_out(), "2, 3");
    }

    #[test]
    fn interfaces_that_share_the_load_are_all_read() {
        let mut interfaces = Interfaces::default();
        for n in 0..100_u32 {
            let mut segment = Segment { time: n.into(), payload: 10, ..BLANK };
            segment.sequence = (u32::MAX - 500).wrapping_add(10 * n);
            assert!(!interfaces.is_copy(&segment, n % 2), "{n}");
        }
        assert_eq!(interfaces.left_out(), "");
    }

    #[test]
    fn a_new_route_is_followed() {
        let mut interfaces = Interfaces::default();
        assert!(!seen(&mut interfaces, 0, 80, 2));
        assert!(seen(&mut interfaces, 900, 80, 3));
        assert!(!seen(&mut interfaces, 1100, 80, 3));
        assert!(seen(&mut interfaces, 1200, 80, 2));
    }
}
