//! Captures on several interfaces. `tcpdump -i any` on a forwarding host captures a packet on each
//! interface that it passes, possibly split differently by offload. The same happens in captures on
//! several interfaces, and in merged captures of several hosts. Cooked headers of version 2 and
//! pcapng record the interface. For each direction of a connection, only segments on the interface
//! where they arrive first are read.

use std::collections::{BTreeSet, HashMap};

use crate::segment::{Endpoint, Nanos, Segment};

/// Idle time of an interface after which another one is used, because routes change.
const MAX_IDLE: Nanos = 1_000_000_000;
/// Interfaces share the load if at least one in this many segments on other interfaces is new.
const MIN_NEW_DIVISOR: u64 = 4;
/// Maximum number of stored directions; then all are removed.
const MAX_DIRECTIONS: usize = 1 << 16;
/// Maximum number of interfaces listed in the warning.
const MAX_LISTED: usize = 8;

#[derive(Debug)]
struct InterfaceProgress {
    interface: u32,
    last: Nanos,
    /// Highest sequence and acknowledgement number on this interface.
    reached: (u32, u32),
    /// Segments on other interfaces with and without data or acknowledgements beyond these numbers.
    ahead: u64,
    behind: u64,
}

impl InterfaceProgress {
    /// Whether a segment on another interface is a copy: it has no new data or acknowledgement, and
    /// few earlier segments on other interfaces had any. Otherwise the interfaces share the load.
    fn observe_and_check_copy(&mut self, (data, acknowledged): (u32, u32)) -> bool {
        let ahead =
            is_later_number(data, self.reached.0) || is_later_number(acknowledged, self.reached.1);
        self.ahead += u64::from(ahead);
        self.behind += u64::from(!ahead);
        !ahead && self.ahead * MIN_NEW_DIVISOR < self.behind
    }

    fn add_segment(&mut self, (data, acknowledged): (u32, u32)) {
        if is_later_number(data, self.reached.0) {
            self.reached.0 = data;
        }
        if is_later_number(acknowledged, self.reached.1) {
            self.reached.1 = acknowledged;
        }
    }
}

fn is_later_number(number: u32, than: u32) -> bool {
    number.wrapping_sub(than) as i32 > 0
}

/// State of the interfaces by direction.
#[derive(Debug, Default)]
pub(super) struct InterfaceCopies {
    taps: HashMap<(Endpoint, Endpoint), InterfaceProgress>,
    /// Interfaces whose segments were skipped.
    skipped: BTreeSet<u32>,
    skipped_list: String,
}

impl InterfaceCopies {
    /// Whether the segment is a copy on another interface.
    pub(super) fn observe_and_check_copy(&mut self, segment: &Segment, interface: u32) -> bool {
        if self.taps.len() >= MAX_DIRECTIONS {
            self.taps.clear();
        }
        let direction = (segment.source, segment.destination);
        let numbers = (segment.sequence.wrapping_add(segment.payload), segment.acknowledgement);
        let first = InterfaceProgress {
            interface,
            last: segment.time,
            reached: numbers,
            ahead: 0,
            behind: 0,
        };
        let tap = self.taps.entry(direction).or_insert(first);
        let idle = segment.time.saturating_sub(tap.last) > MAX_IDLE;
        if tap.interface != interface && !idle && tap.observe_and_check_copy(numbers) {
            if self.skipped.len() < MAX_LISTED && self.skipped.insert(interface) {
                let numbers: Vec<_> = self.skipped.iter().map(ToString::to_string).collect();
                self.skipped_list = numbers.join(", ");
            }
            return true;
        }
        (tap.interface, tap.last) = (interface, segment.time);
        tap.add_segment(numbers);
        false
    }

    /// Numbers of the skipped interfaces, separated by commas.
    pub(super) fn skipped_list(&self) -> &str {
        &self.skipped_list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::EMPTY_SEGMENT;

    fn observe_and_check_copy(
        interfaces: &mut InterfaceCopies,
        ms: u64,
        port: u16,
        interface: u32,
    ) -> bool {
        let mut segment = Segment { time: ms * 1_000_000, ..EMPTY_SEGMENT };
        segment.source.port = port;
        interfaces.observe_and_check_copy(&segment, interface)
    }

    #[test]
    fn is_copy_keeps_first_interface_per_direction() {
        let mut interfaces = InterfaceCopies::default();
        let copies = [(0, 80, 2), (0, 80, 3), (1, 90, 3), (1, 90, 2), (2, 80, 2)].map(
            |(ms, port, interface)| observe_and_check_copy(&mut interfaces, ms, port, interface),
        );
        assert_eq!(copies, [false, true, false, true, false]);
        assert_eq!(interfaces.skipped_list(), "2, 3");
    }

    #[test]
    fn is_copy_keeps_interfaces_that_share_load() {
        let mut interfaces = InterfaceCopies::default();
        for n in 0..100_u32 {
            let mut segment = Segment { time: n.into(), payload: 10, ..EMPTY_SEGMENT };
            segment.sequence = (u32::MAX - 500).wrapping_add(10 * n);
            assert!(!interfaces.observe_and_check_copy(&segment, n % 2), "{n}");
        }
        assert_eq!(interfaces.skipped_list(), "");
    }

    #[test]
    fn is_copy_follows_route_change() {
        let mut interfaces = InterfaceCopies::default();
        assert!(!observe_and_check_copy(&mut interfaces, 0, 80, 2));
        assert!(observe_and_check_copy(&mut interfaces, 900, 80, 3));
        assert!(!observe_and_check_copy(&mut interfaces, 1100, 80, 3));
        assert!(observe_and_check_copy(&mut interfaces, 1200, 80, 2));
    }
}
