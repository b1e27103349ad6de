//! What the link sees of each flow, counted while it runs.

use crate::path::{Cause, Observer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcpcast_link::time::{MICROSECOND, MILLISECOND, Nanos};

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
    /// When the first packet of the connection came from the far side, and the last ack of new
    /// data to the near side.
    pub opened: Option<Nanos>,
    pub last_ack: Nanos,
    highest_ack: Option<u32>,
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
    ack: u32,
}

impl Segment {
    /// Reads an IPv4 packet; `None` if it is not TCP.
    fn read(packet: &[u8]) -> Option<Self> {
        let ip = usize::from(packet.first()? & 15) * 4;
        let tcp = packet.get(ip..).filter(|tcp| tcp.len() >= 20 && packet[9] == 6)?;
        let payload = tcp.len().saturating_sub(usize::from(tcp[12] >> 4) * 4);
        Some(Self { payload, ack: u32::from_be_bytes([tcp[8], tcp[9], tcp[10], tcp[11]]) })
    }
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
        let Some(segment) = Segment::read(packet) else { return };
        if flow.highest_ack.is_none_or(|highest| segment.ack.wrapping_sub(highest) as i32 > 0) {
            flow.highest_ack = Some(segment.ack);
            flow.last_ack = due;
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
