//! What the link sees of each flow, counted while it runs.

use crate::path::{Cause, Observer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcpcast_link::time::{MICROSECOND, MILLISECOND, Nanos};
use tcpcast_wire::ACK;

/// The flag of a reset (RFC 9293, section 3.1).
const RESET: u8 = 0x04;

/// Waits are told to this.
pub(super) const WAIT_STEP: Nanos = 20 * MICROSECOND;

/// Ends of the classes of lateness; a last class has what is later.
pub(super) const LATENESS: [Nanos; 6] = [
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
    /// When the first entered, and when the last got through.
    pub first_entered: Option<Nanos>,
    pub last_left: Nanos,
    /// When the first packet of the connection came from the far side, and the ack of the last byte
    /// to the near side.
    pub opened: Option<Nanos>,
    pub last_ack: Nanos,
    highest_ack: Option<u32>,
    /// The sequence number after the last byte of data.
    end: Option<u32>,
}

/// All flows, and the link as a whole.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub flows: Vec<FlowTally>,
    /// The link's time when a packet was seen last.
    pub now: Nanos,
    /// Bytes of all packets that went forward.
    pub carried_bytes: u64,
    /// How many data packets waited so many steps, since it was asked last.
    pub waits: BTreeMap<u64, u64>,
    /// How many packets of both directions were so late.
    pub lateness: [u64; LATENESS.len() + 1],
}

/// A tally that the loop and whoever asks share.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Mutex<Tally>>);

impl Shared {
    /// An empty one, for so many near ports.
    pub(super) fn new(flows: usize) -> Self {
        let flows = vec![FlowTally::default(); flows];
        Self(Arc::new(Mutex::new(Tally { flows, ..Tally::default() })))
    }

    pub(super) fn get(&self) -> MutexGuard<'_, Tally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what a flow did.
    pub(super) fn forget(&self, flow: usize) {
        self.get().flows[flow] = FlowTally::default();
    }
}

/// What is counted of a TCP segment.
struct Segment {
    payload: usize,
    sequence: u32,
    /// Of all packets but the first of a connection, and resets.
    ack: Option<u32>,
}

impl Segment {
    /// Reads an IPv4 packet; `None` if it is not TCP.
    fn read(packet: &[u8]) -> Option<Self> {
        let ip = usize::from(packet.first()? & 15) * 4;
        let tcp = packet.get(ip..).filter(|tcp| tcp.len() >= 20 && packet[9] == 6)?;
        let payload = tcp.len().saturating_sub(usize::from(tcp[12] >> 4) * 4);
        let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        // Resets may have it, too, and acknowledge nothing.
        let acks = tcp[13] & (ACK | RESET) == ACK;
        Some(Self { payload, sequence: word(4), ack: acks.then(|| word(8)) })
    }
}

/// Whether a sequence number is after another (RFC 9293, section 3.4).
fn is_after(number: u32, other: u32) -> bool {
    number.wrapping_sub(other) as i32 > 0
}

/// The sequence number after a segment's data.
fn end_of(packet: &[u8]) -> Option<u32> {
    Segment::read(packet).map(|s| s.sequence.wrapping_add(s.payload as u32))
}

fn has_data(packet: &[u8]) -> bool {
    Segment::read(packet).is_some_and(|segment| segment.payload > 0)
}

impl Tally {
    /// The flow whose port it is, if that is near and the packet has data.
    fn sender(&mut self, port: u16, packet: &[u8]) -> Option<&mut FlowTally> {
        self.flows.get_mut(usize::from(port)).filter(|_| has_data(packet))
    }

    fn acked(&mut self, due: Nanos, port: u16, packet: &[u8]) {
        let Some(flow) = self.flows.get_mut(usize::from(port)) else { return };
        let Some(ack) = Segment::read(packet).and_then(|segment| segment.ack) else { return };
        if flow.highest_ack.is_none_or(|highest| is_after(ack, highest)) {
            // What acknowledges FIN alone is no ack of data.
            if flow.highest_ack.zip(flow.end).is_none_or(|(highest, end)| is_after(end, highest)) {
                flow.last_ack = due;
            }
            flow.highest_ack = Some(ack);
        }
    }
}

impl Observer for Shared {
    fn enters(&mut self, now: Nanos, port: u16, packet: &[u8]) {
        let mut tally = self.get();
        tally.now = now;
        if usize::from(port) >= tally.flows.len() {
            let of = packet.get(16..20).map(|to| usize::from(to[2]) * 256 + usize::from(to[3]));
            let flow = of.and_then(|of| tally.flows.get_mut(of.checked_sub(1)?));
            if let Some(flow) = flow {
                flow.opened.get_or_insert(now);
            }
        } else if let Some(flow) = tally.sender(port, packet) {
            flow.arrived += 1;
            flow.first_entered.get_or_insert(now);
            flow.end = end_of(packet)
                .filter(|end| flow.end.is_none_or(|e| is_after(*end, e)))
                .or(flow.end);
        }
    }

    fn drops(&mut self, _now: Nanos, port: u16, packet: &[u8], cause: Cause) {
        if let Some(flow) = self.get().sender(port, packet) {
            match cause {
                Cause::Full | Cause::Early => flow.queue_drops += 1,
                Cause::Random => flow.random_drops += 1,
                Cause::Misaddressed | Cause::Machinery => {}
            }
        }
    }

    fn passed(&mut self, from: u16, packet: &[u8], waited: Nanos, marked: bool) {
        let mut tally = self.get();
        if usize::from(from) >= tally.flows.len() {
            return;
        }
        tally.carried_bytes += packet.len() as u64;
        if let Some(flow) = tally.sender(from, packet) {
            flow.passed += 1;
            flow.waited += waited;
            flow.marked += u64::from(marked);
            *tally.waits.entry(waited / WAIT_STEP).or_default() += 1;
        }
    }

    fn leaves(&mut self, now: Nanos, due: Nanos, port: u16, packet: &[u8]) {
        let mut tally = self.get();
        tally.now = now;
        let class = LATENESS.iter().take_while(|end| now - due > **end).count();
        tally.lateness[class] += 1;
        if usize::from(port) < tally.flows.len() {
            return tally.acked(due, port, packet);
        }
        // To the far side: whose it is, its source says.
        let of = packet.get(12..16).map(|from| usize::from(from[2]) * 256 + usize::from(from[3]));
        let of = of.and_then(|of| u16::try_from(of.checked_sub(1)?).ok());
        if let Some(flow) = of.and_then(|of| tally.sender(of, packet)) {
            flow.last_left = due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{FAR, near};
    use std::net::Ipv4Addr;

    /// A TCP packet of 40 bytes of headers.
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
    fn data_packets_are_those_of_their_senders_port() {
        let mut tally = Shared::new(300);
        let (second, last) = (packet(near(1), FAR, 0, 100), packet(near(299), FAR, 0, 100));
        tally.enters(5, 1, &second);
        tally.enters(6, 299, &last);
        // A handshake's packet is no data packet.
        tally.enters(7, 1, &packet(near(1), FAR, 0, 0));
        tally.drops(8, 299, &last, Cause::Random);
        tally.passed(1, &second, 3 * WAIT_STEP, true);
        tally.leaves(10, 9, 300, &second);
        let seen = tally.get();
        let expected = FlowTally {
            arrived: 1,
            passed: 1,
            waited: 3 * WAIT_STEP,
            marked: 1,
            first_entered: Some(5),
            end: Some(100),
            last_left: 9,
            ..FlowTally::default()
        };
        assert_eq!(seen.flows[1], expected);
        assert_eq!((seen.flows[299].arrived, seen.flows[299].random_drops), (1, 1));
        assert_eq!((seen.carried_bytes, seen.waits.get(&3), seen.now), (140, Some(&1), 10));
    }

    #[test]
    fn a_flow_opens_with_a_packet_of_its_receiver_and_ends_with_its_last_new_ack() {
        let mut tally = Shared::new(2);
        let ack = |number| packet(FAR, near(1), number, 0);
        tally.enters(1, 2, &ack(0));
        tally.enters(9, 2, &ack(1));
        tally.enters(12, 1, &packet(near(1), FAR, 0, 101));
        // The last one is of FIN.
        for (due, number) in [(20, 1), (30, 101), (40, 101), (50, 102)] {
            tally.leaves(due + MILLISECOND, due, 1, &ack(number));
        }
        let seen = tally.get();
        assert_eq!((seen.flows[1].opened, seen.flows[1].last_ack), (Some(1), 30));
        assert_eq!(seen.lateness, [0, 0, 0, 4, 0, 0, 0]);
    }
}
