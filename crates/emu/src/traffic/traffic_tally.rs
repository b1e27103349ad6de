//! Per-flow packet counters, updated by the link during a run.

use super::format_json_list;
use crate::forwarding::{LATE_THRESHOLD, lateness_reason};
use crate::path::PacketObserver;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tcpcast_link::time::{MICROSECOND, MILLISECOND, Nanos};
use tcpcast_net::DropCause;
use tcpcast_wire::{ACK, SYN};

/// RST flag (RFC 9293, section 3.1).
const RST_FLAG: u8 = 0x04;

/// Resolution of queueing delays.
pub(super) const WAIT_RESOLUTION: Nanos = 20 * MICROSECOND;

/// Upper bounds of the lateness classes; the last class is unbounded.
pub(super) const LATENESS_BOUNDS: [Nanos; 6] = [
    100 * MICROSECOND,
    200 * MICROSECOND,
    500 * MICROSECOND,
    MILLISECOND,
    2 * MILLISECOND,
    5 * MILLISECOND,
];

/// Data packets of a flow in the forward direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FlowTally {
    pub arrived: u64,
    pub queue_drops: u64,
    pub random_drops: u64,
    pub passed: u64,
    pub waited: Nanos,
    pub marked: u64,
}

/// Times and data packets of a file in the forward direction, by the link's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileTally {
    /// Arrival of the connection's first packet from the far side.
    pub opened: Nanos,
    /// Arrival of the first data packet, and departure of the last one.
    pub first_entered: Option<Nanos>,
    pub last_left: Nanos,
    /// Arrival of the acknowledgement of the last byte at the near side.
    pub last_ack: Nanos,
    pub arrived: u64,
    pub drops: u64,
    highest_ack: Option<u32>,
    /// Sequence number after the last byte of data.
    end: Option<u32>,
}

impl FileTally {
    /// Whether all data sent so far are acknowledged.
    pub(super) fn is_acked(&self) -> bool {
        self.highest_ack
            .zip(self.end)
            .is_some_and(|(highest, end)| !is_sequence_after(end, highest))
    }

    /// Starts the next file of the connection.
    pub(super) fn begin_next_file(&mut self) {
        let Self { highest_ack, end, opened, .. } = *self;
        *self = Self { opened, highest_ack, end, ..Self::default() };
    }

    fn record_delivered_ack(&mut self, due: Nanos, ack: u32) {
        if self.highest_ack.is_none_or(|highest| is_sequence_after(ack, highest)) {
            // An acknowledgement of only a FIN does not acknowledge data.
            if self
                .highest_ack
                .zip(self.end)
                .is_none_or(|(highest, end)| is_sequence_after(end, highest))
            {
                self.last_ack = due;
            }
            self.highest_ack = Some(ack);
        }
    }
}

/// Counters of all flows and of the link.
#[derive(Debug, Default)]
pub(super) struct TrafficTally {
    pub flows: Vec<FlowTally>,
    /// Files on open connections of each flow by the receiver's port; `None` for a flow without
    /// files.
    pub files: Vec<Option<HashMap<u16, FileTally>>>,
    /// Link time of the last packet, and the host's time at that moment.
    now: Nanos,
    seen: Option<Instant>,
    last_now: Nanos,
    /// Bytes of all packets delivered in the forward direction.
    pub carried_bytes: u64,
    /// Number of data packets by queueing delay in steps, since the last snapshot.
    pub waits: BTreeMap<u64, u64>,
    /// Number of packets of both directions by lateness class.
    pub lateness: [u64; LATENESS_BOUNDS.len() + 1],
    /// Total lateness of all packets.
    late: Nanos,
    /// Total time for which the link's clock was paused.
    paused: Nanos,
}

/// A tally shared by the forwarding loop and the driver.
#[derive(Clone, Debug)]
pub(super) struct SharedTally(Arc<Mutex<TrafficTally>>);

impl SharedTally {
    /// Creates an empty tally for flows with or without files.
    pub(super) fn new(has_files: impl IntoIterator<Item = bool>) -> Self {
        let files: Vec<_> =
            has_files.into_iter().map(|has_files| has_files.then(HashMap::new)).collect();
        let flows = vec![FlowTally::default(); files.len()];
        Self(Arc::new(Mutex::new(TrafficTally { flows, files, ..TrafficTally::default() })))
    }

    pub(super) fn lock_tally(&self) -> MutexGuard<'_, TrafficTally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fields of a TCP segment.
struct SegmentFields {
    source_port: u16,
    destination_port: u16,
    payload: usize,
    sequence: u32,
    /// `None` for the first packet of a connection and for resets.
    ack: Option<u32>,
    opens: bool,
}

impl SegmentFields {
    /// Parses an IPv4 packet; `None` if it is not TCP.
    fn parse_segment(packet: &[u8]) -> Option<Self> {
        let ip = usize::from(packet.first()? & 15) * 4;
        let tcp = packet.get(ip..).filter(|tcp| tcp.len() >= 20 && packet[9] == 6)?;
        let payload = tcp.len().saturating_sub(usize::from(tcp[12] >> 4) * 4);
        let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        // Resets may have the ACK flag, but do not acknowledge data.
        let acks = tcp[13] & (ACK | RST_FLAG) == ACK;
        Some(Self {
            source_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            destination_port: u16::from_be_bytes([tcp[2], tcp[3]]),
            payload,
            sequence: word(4),
            ack: acks.then(|| word(8)),
            opens: tcp[13] & (ACK | SYN) == SYN,
        })
    }
}

/// Whether a sequence number is after another (RFC 9293, section 3.4).
fn is_sequence_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

/// Returns the near port of the address at `offset` in an IPv4 packet.
fn near_port_of_address(packet: &[u8], offset: usize) -> Option<usize> {
    let address = packet.get(offset..offset + 4)?;
    (usize::from(address[2]) * 256 + usize::from(address[3])).checked_sub(1)
}

impl TrafficTally {
    /// Link time, extrapolated since the last packet.
    pub(super) fn current_link_time(&mut self) -> Nanos {
        if let Some(seen) = self.seen {
            let since = seen.elapsed().as_nanos() as Nanos;
            self.last_now = self.last_now.max(self.now + since);
        }
        self.last_now
    }

    /// Returns the punctuality of the link since the start, `elapsed` ago, as JSON.
    pub(super) fn punctuality_json(&self, elapsed: Nanos) -> String {
        let beyond = LATENESS_BOUNDS.iter().take_while(|end| **end <= LATE_THRESHOLD).count();
        let (all, late) = (&self.lateness, &self.lateness[beyond..]);
        let delivered = all.iter().sum();
        let reason = lateness_reason(late.iter().sum(), delivered, self.paused, elapsed);
        let reason = reason.map_or_else(|| "null".to_owned(), |reason| format!("\"{reason}\""));
        format!(
            "{{\"elapsed_ns\":{elapsed},\"away_ns\":{},\"late_ns\":{},\"lateness\":{},\
             \"distortion\":{reason}}}",
            self.paused,
            self.late,
            format_json_list(self.lateness)
        )
    }

    fn set_now(&mut self, now: Nanos) {
        self.now = now;
        self.seen = Some(Instant::now());
    }

    /// File on a connection of a flow, by the receiver's port.
    fn file_tally(&mut self, flow: usize, port: u16) -> Option<&mut FileTally> {
        self.files.get_mut(flow)?.as_mut()?.get_mut(&port)
    }

    /// Flow of a data packet from a near port.
    fn flow_of_data_packet(
        &mut self,
        port: u16,
        packet: &[u8],
    ) -> Option<(&mut FlowTally, SegmentFields)> {
        let flow = self.flows.get_mut(usize::from(port))?;
        let segment = SegmentFields::parse_segment(packet).filter(|segment| segment.payload > 0)?;
        Some((flow, segment))
    }
}

impl PacketObserver for SharedTally {
    fn on_enter(&mut self, now: Nanos, port: u16, packet: &[u8]) {
        let mut tally = self.lock_tally();
        tally.set_now(now);
        if usize::from(port) >= tally.flows.len() {
            let opens = SegmentFields::parse_segment(packet).filter(|segment| segment.opens);
            let (Some(segment), Some(flow)) = (opens, near_port_of_address(packet, 16)) else {
                return;
            };
            if let Some(Some(files)) = tally.files.get_mut(flow) {
                let new = FileTally { opened: now, ..FileTally::default() };
                files.entry(segment.source_port).or_insert(new);
            }
        } else if let Some((flow, segment)) = tally.flow_of_data_packet(port, packet) {
            flow.arrived += 1;
            let ends = segment.sequence.wrapping_add(segment.payload as u32);
            if let Some(file) = tally.file_tally(port.into(), segment.destination_port) {
                file.arrived += 1;
                file.first_entered.get_or_insert(now);
                if file.end.is_none_or(|end| is_sequence_after(ends, end)) {
                    file.end = Some(ends);
                }
            }
        }
    }

    fn on_drop(&mut self, _now: Nanos, port: u16, packet: &[u8], cause: DropCause) {
        let mut tally = self.lock_tally();
        let Some((flow, segment)) = tally.flow_of_data_packet(port, packet) else { return };
        match cause {
            DropCause::Full | DropCause::Early | DropCause::Superseded => flow.queue_drops += 1,
            DropCause::Random => flow.random_drops += 1,
        }
        if let Some(file) = tally.file_tally(port.into(), segment.destination_port) {
            file.drops += 1;
        }
    }

    fn on_transmitted(&mut self, from: u16, packet: &[u8], waited: Nanos, marked: bool) {
        let mut tally = self.lock_tally();
        if usize::from(from) >= tally.flows.len() {
            return;
        }
        tally.carried_bytes += packet.len() as u64;
        if let Some((flow, _)) = tally.flow_of_data_packet(from, packet) {
            flow.passed += 1;
            flow.waited += waited;
            flow.marked += u64::from(marked);
            *tally.waits.entry(waited / WAIT_RESOLUTION).or_default() += 1;
        }
    }

    fn on_deliver(&mut self, now: Nanos, due: Nanos, port: u16, packet: &[u8]) {
        let mut tally = self.lock_tally();
        tally.set_now(now);
        let class = LATENESS_BOUNDS.iter().take_while(|end| now - due > **end).count();
        tally.lateness[class] += 1;
        tally.late += now - due;
        let Some(segment) = SegmentFields::parse_segment(packet) else { return };
        let near = usize::from(port);
        if near < tally.flows.len() {
            let file = tally.file_tally(near, segment.source_port);
            if let Some((file, ack)) = file.zip(segment.ack) {
                file.record_delivered_ack(due, ack);
            }
        } else if let Some(flow) = near_port_of_address(packet, 12).filter(|_| segment.payload > 0)
        {
            if let Some(file) = tally.file_tally(flow, segment.destination_port) {
                file.last_left = due;
            }
        }
    }

    fn on_clock_pause(&mut self, paused: Nanos) {
        self.lock_tally().paused = paused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::FAR_ADDRESS;
    use crate::traffic::near_address_of_flow;
    use std::net::Ipv4Addr;

    /// A TCP packet with 40 bytes of headers.
    fn packet(from: Ipv4Addr, to: Ipv4Addr, ack: u32, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0_u8; 40 + payload];
        (bytes[0], bytes[9], bytes[32]) = (0x45, 6, 0x50);
        bytes[33] = if ack > 0 { ACK } else { 0 };
        bytes[12..16].copy_from_slice(&from.octets());
        bytes[16..20].copy_from_slice(&to.octets());
        bytes[28..32].copy_from_slice(&ack.to_be_bytes());
        bytes
    }

    #[test]
    fn tally_counts_data_packets_by_port() {
        let mut tally = SharedTally::new([false; 300]);
        let (second, last) = (
            packet(near_address_of_flow(1), FAR_ADDRESS, 0, 100),
            packet(near_address_of_flow(299), FAR_ADDRESS, 0, 100),
        );
        tally.on_enter(5, 1, &second);
        tally.on_enter(6, 299, &last);
        // A handshake packet is not a data packet.
        tally.on_enter(7, 1, &packet(near_address_of_flow(1), FAR_ADDRESS, 0, 0));
        tally.on_drop(8, 299, &last, DropCause::Random);
        tally.on_transmitted(1, &second, 3 * WAIT_RESOLUTION, true);
        tally.on_deliver(10, 9, 300, &second);
        let counters = tally.lock_tally();
        let expected = FlowTally {
            arrived: 1,
            passed: 1,
            waited: 3 * WAIT_RESOLUTION,
            marked: 1,
            ..FlowTally::default()
        };
        assert_eq!(counters.flows[1], expected);
        assert_eq!((counters.flows[299].arrived, counters.flows[299].random_drops), (1, 1));
        assert_eq!(
            (counters.carried_bytes, counters.waits.get(&3), counters.now),
            (140, Some(&1), 10)
        );
        assert_eq!(counters.files[1], None);
    }

    #[test]
    fn file_begins_with_syn_and_ends_with_last_new_ack() {
        let mut tally = SharedTally::new([true, true]);
        let ack = |number| packet(FAR_ADDRESS, near_address_of_flow(1), number, 0);
        let mut open = ack(0);
        open[33] = SYN;
        tally.on_enter(1, 2, &open);
        tally.on_enter(2, 2, &open);
        tally.on_enter(9, 2, &ack(1));
        let data = packet(near_address_of_flow(1), FAR_ADDRESS, 0, 101);
        tally.on_enter(12, 1, &data);
        tally.on_drop(12, 1, &data, DropCause::Full);
        tally.on_deliver(16, 15, 2, &data);
        // The last acknowledgement is for the FIN.
        for (due, number) in [(20, 1), (30, 101), (40, 101), (50, 102)] {
            tally.on_deliver(due + MILLISECOND, due, 1, &ack(number));
            assert_eq!(tally.lock_tally().files[1].as_ref().unwrap()[&0].is_acked(), due > 20);
        }
        let file = tally.lock_tally().files[1].as_ref().unwrap()[&0];
        assert_eq!((file.opened, file.first_entered, file.last_left), (1, Some(12), 15));
        assert_eq!((file.last_ack, file.arrived, file.drops), (30, 1, 1));
        assert_eq!(tally.lock_tally().lateness, [1, 0, 0, 4, 0, 0, 0]);
        tally.on_clock_pause(60);
        let punctuality = tally.lock_tally().punctuality_json(1000);
        let numbers = r#""away_ns":60,"late_ns":4000001,"lateness":[1,0,0,4,0,0,0],"distortion":"#;
        assert!(punctuality.contains(numbers), "{punctuality}");
        assert!(punctuality.ends_with(r#""this machine stalled for 6.0 % of the time"}"#));
        assert!(tally.lock_tally().files[0].as_ref().unwrap().is_empty());
    }

    #[test]
    fn files_of_one_connection_are_counted_separately() {
        let mut tally = SharedTally::new([true]);
        let mut open = packet(FAR_ADDRESS, near_address_of_flow(0), 0, 0);
        open[33] = SYN;
        tally.on_enter(1, 1, &open);
        let mut data = packet(near_address_of_flow(0), FAR_ADDRESS, 0, 100);
        tally.on_enter(5, 0, &data);
        tally.on_deliver(9, 9, 0, &packet(FAR_ADDRESS, near_address_of_flow(0), 100, 0));
        tally.lock_tally().files[0].as_mut().unwrap().get_mut(&0).unwrap().begin_next_file();
        data[24..28].copy_from_slice(&100_u32.to_be_bytes());
        tally.on_enter(20, 0, &data);
        let file = |tally: &SharedTally| tally.lock_tally().files[0].as_ref().unwrap()[&0];
        assert!(!file(&tally).is_acked());
        tally.on_deliver(30, 29, 0, &packet(FAR_ADDRESS, near_address_of_flow(0), 200, 0));
        let file = file(&tally);
        assert!(file.is_acked());
        assert_eq!((file.opened, file.first_entered, file.last_ack), (1, Some(20), 29));
        assert_eq!(file.arrived, 1);
    }
}
