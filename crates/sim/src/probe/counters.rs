//! Sums over a run, cut in equal slots of time so that statistics can be done on them afterwards.

use crate::clock::Nanos;

macro_rules! cells {
    ($(#[$doc:meta])* $name:ident, $names:ident: $($(#[$cell_doc:meta])* $cell:ident = $text:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$cell_doc])* $cell,)+ }
        /// The names of the cells, in their order.
        pub const $names: [&str; [$($text,)+].len()] = [$($text,)+];
    };
}

cells! {
    /// Sums of the bottleneck.
    LinkCell, LINK_CELLS:
    /// Time measured.
    Time = "time_ns",
    /// Queue length times time, in packet nanoseconds.
    QueueIntegral = "queue_integral",
    /// Time in which the link was busy.
    Busy = "busy_ns",
    /// Data packets dropped at other hops.
    HopDrops = "hop_drops",
    /// Acknowledgements arrived at the return link.
    ReturnArrived = "return_arrived",
    /// Dropped there, by the queue or at random.
    ReturnDrops = "return_drops",
    /// Time in which it was busy.
    ReturnBusy = "return_busy_ns",
    /// Acknowledgements that got through.
    ReturnPassed = "return_passed",
    /// The times that these waited for their transmission to begin.
    ReturnWaited = "return_waited_ns",
    /// Bytes that its link took, where its rate is not constant.
    Carried = "carried_bytes",
    /// Bytes that such a link could have taken.
    Capacity = "capacity_bytes",
}

cells! {
    /// Sums of one class of sources.
    ClassCell, CLASS_CELLS:
    /// Transfers finished.
    Transfers = "transfers",
    /// Their packets.
    TransferPackets = "transfer_packets",
    /// Their ON times: first packet sent to last acknowledgement received.
    OnTime = "on_time_ns",
    /// Of single transfers: first packet sent to last packet delivered.
    DeliveryTime = "delivery_time_ns",
    /// Data packets sent.
    Sent = "sent",
    /// Of these, retransmitted.
    Retransmitted = "retransmitted",
    /// Distinct data packets delivered.
    Delivered = "delivered",
    /// Bytes that these lack of full ones.
    Lacking = "lacking_bytes",
    /// Data packets arrived at the bottleneck.
    Arrived = "arrived",
    /// Taken by its link, where the time is kept that they waited.
    Passed = "passed",
    /// The times that these waited for their transmission to begin.
    Waited = "waited_ns",
    /// Of these, marked there (RFC 3168).
    Marked = "marked",
    /// Dropped there by the queue: it was full, or they were dropped early.
    QueueDrops = "queue_drops",
    /// Lost there at random.
    RandomDrops = "random_drops",
    /// Dropped on the sources' and the receivers' own links.
    AccessDrops = "access_drops",
    /// Sum of the round-trip samples.
    RttSum = "rtt_sum_ns",
    /// Their number.
    RttSamples = "rtt_samples",
    /// Packets acknowledged: of finished transfers, and of endless flows.
    Acked = "acked",
    /// Their times in flight, of senders that find losses by acknowledgements.
    InFlight = "in_flight_ns",
    /// Fast retransmits: recoveries begun.
    FastRetransmits = "fast_retransmits",
    /// Of these, undone as unnecessary.
    SpuriousRecoveries = "spurious_recoveries",
    /// Tail loss probes (RFC 8985).
    TailLossProbes = "tail_loss_probes",
    /// Of these, retransmissions.
    TailRetransmissions = "tail_retransmissions",
    /// Retransmissions of data that the receiver had, of today's TCP.
    SpuriousRetransmissions = "spurious_retransmissions",
    /// Sequences of timeouts of one packet.
    TimeoutSequences = "timeout_sequences",
    /// Of these, sequences of two timeouts or more.
    Reached2 = "sequences_of_2",
    /// Of three or more.
    Reached3 = "sequences_of_3",
    /// Of four or more.
    Reached4 = "sequences_of_4",
    /// Of five or more.
    Reached5 = "sequences_of_5",
    /// Of six or more.
    Reached6 = "sequences_of_6",
    /// Timeouts.
    Timeouts = "timeouts",
    /// Reductions after timeouts that were undone as unnecessary.
    SpuriousTimeouts = "spurious_timeouts",
    /// Sum of the first timeouts of the sequences.
    FirstTimeout = "first_timeout_ns",
    /// Sum of the windows at loss indications.
    WindowAtLoss = "window_at_loss",
    /// Windows that began anew after an OFF time.
    IdleRestarts = "idle_restarts",
    /// OFF times begun, of a fixed point.
    OffTimes = "off_times",
    /// Their lengths.
    OffTime = "off_time_ns",
    /// Packets of their own flow that arrivals found at the bottleneck, of a fixed point.
    OwnFound = "own_found",
    /// Aggregated service times of packets at the bottleneck, of a fixed point.
    Service = "service_ns",
    /// Time that packets spent at the bottleneck, those that had to go too, of a fixed point.
    Inside = "inside_ns",
    /// Of transfers that opened their connections: SYN sent to last packet delivered.
    TotalTime = "total_time_ns",
}

cells! {
    /// Sums of the transfers of one size interval.
    SizeCell, SIZE_CELLS:
    /// Transfers finished.
    Transfers = "transfers",
    /// Their packets.
    Packets = "packets",
    /// Their ON times.
    OnTime = "on_time_ns",
    /// Sum of their rates, each its size over its ON time, in `RATE_UNITS`.
    RateSum = "rate_sum",
    /// Packets arrived at the bottleneck.
    Arrived = "arrived",
    /// Sum of the queues they found.
    QueueSeen = "queue_seen",
    /// Drops there.
    Drops = "drops",
    /// Timeouts.
    Timeouts = "timeouts",
    /// Time between the last sending and the timeout.
    Stalled = "stalled_ns",
    /// Retransmissions of successful recoveries.
    Recovered = "recovered",
}

/// No more snapshots than this are kept; then every second is dropped and slots are twice as long.
const MAX_SLOTS: usize = 128;
/// The first slots are this long.
const FIRST_SLOT: Nanos = 1_000_000;

/// The sums of a class. Each packet asks for those of its class a few times, and where they are a
/// power of two of bytes apart they are found by a shift.
#[derive(Clone, Debug)]
#[repr(align(256))]
struct ClassRow([u64; CLASS_CELLS.len()]);

/// The sums of a size interval, likewise.
#[derive(Clone, Debug)]
#[repr(align(128))]
struct SizeRow([u64; SIZE_CELLS.len()]);

/// The cells of a run and their snapshots. All count modulo 2^64: sums of times come that far.
///
/// A snapshot holds the sums since the warm-up, so dropping one loses nothing: the run stays cut
/// in 64 to 128 equal slots however long it gets.
#[derive(Clone, Debug)]
pub struct Counters {
    link: [u64; LINK_CELLS.len()],
    classes: Vec<ClassRow>,
    sizes: Vec<SizeRow>,
    began: Nanos,
    slot: Nanos,
    next: Nanos,
    snapshots: Vec<u64>,
    remainder: Vec<u64>,
}

impl Counters {
    /// Empty counters.
    #[must_use]
    pub fn new(classes: usize, sizes: usize) -> Self {
        Self {
            link: [0; LINK_CELLS.len()],
            classes: vec![ClassRow([0; CLASS_CELLS.len()]); classes],
            sizes: vec![SizeRow([0; SIZE_CELLS.len()]); sizes],
            began: 0,
            slot: FIRST_SLOT,
            next: FIRST_SLOT,
            snapshots: Vec::new(),
            remainder: Vec::new(),
        }
    }

    /// Forgets the sums; time counts from now.
    pub fn begin(&mut self, now: Nanos) {
        let (classes, sizes) = (self.classes.len(), self.sizes.len());
        *self = Self { began: now, next: now + FIRST_SLOT, ..Self::new(classes, sizes) };
    }

    /// Adds to a cell of a class.
    #[inline]
    pub fn add(&mut self, class: usize, cell: ClassCell, amount: u64) {
        let cell = &mut self.classes[class].0[cell as usize];
        *cell = cell.wrapping_add(amount);
    }

    /// A sequence of timeouts goes on, `depth` timeouts deep before; 0 for one that is not counted.
    pub fn count_repeated_timeout(&mut self, class: usize, depth: &mut u8) {
        if *depth == 0 {
            return;
        }
        let reached = ClassCell::Reached2 as usize..=ClassCell::Reached6 as usize;
        if let Some(cell) = self.classes[class].0[reached].get_mut(usize::from(*depth) - 1) {
            *cell += 1;
        }
        *depth = depth.saturating_add(1);
    }

    /// Sets a cell of a class.
    pub fn set(&mut self, class: usize, cell: ClassCell, value: u64) {
        self.classes[class].0[cell as usize] = value;
    }

    /// Adds to a cell of a size interval.
    #[inline]
    pub fn add_size(&mut self, row: usize, cell: SizeCell, amount: u64) {
        let cell = &mut self.sizes[row].0[cell as usize];
        *cell = cell.wrapping_add(amount);
    }

    /// The cells of a class.
    #[inline(always)]
    pub fn class_mut(&mut self, class: usize) -> &mut [u64; CLASS_CELLS.len()] {
        &mut self.classes[class].0
    }

    /// The cells of a size interval.
    #[inline]
    pub fn size_mut(&mut self, row: usize) -> &mut [u64; SIZE_CELLS.len()] {
        &mut self.sizes[row].0
    }

    /// A packet was dropped at a hop that is not the bottleneck.
    pub fn add_hop_drop(&mut self) {
        self.link[LinkCell::HopDrops as usize] += 1;
    }

    /// Sets a cell of the bottleneck.
    pub fn set_link(&mut self, cell: LinkCell, value: u64) {
        self.link[cell as usize] = value;
    }

    /// A sum over all classes.
    #[must_use]
    pub fn total(&self, cell: ClassCell) -> u64 {
        self.classes.iter().map(|class| class.0[cell as usize]).sum()
    }

    /// A sum of one class.
    #[must_use]
    pub fn of_class(&self, class: usize, cell: ClassCell) -> u64 {
        self.classes[class].0[cell as usize]
    }

    /// When the slot that is open ends.
    #[must_use]
    pub fn slot_ends(&self) -> Nanos {
        self.next
    }

    /// Takes a snapshot at the end of a slot, or the last one wherever the run ended; says whether
    /// each two slots became one.
    pub fn snapshot(&mut self, now: Nanos, last: bool) -> bool {
        self.link[LinkCell::Time as usize] = now - self.began;
        self.remainder.clear();
        let cells = self.link.iter().chain(self.classes.iter().flat_map(|row| &row.0));
        let cells = cells.chain(self.sizes.iter().flat_map(|row| &row.0));
        if last {
            self.remainder.extend(cells);
            return false;
        }
        self.snapshots.extend(cells);
        let width = self.width();
        let full = self.snapshots.len() == MAX_SLOTS * width;
        if full {
            every_second(&mut self.snapshots, width);
            self.slot *= 2;
        }
        self.next = now + self.slot;
        full
    }

    /// Cells in a snapshot: those of the link, of each class, of each size interval.
    #[must_use]
    pub fn width(&self) -> usize {
        LINK_CELLS.len()
            + self.classes.len() * CLASS_CELLS.len()
            + self.sizes.len() * SIZE_CELLS.len()
    }

    /// The snapshots one after the other, zeros first, the end of the run last.
    #[must_use]
    pub fn rows(&self) -> Vec<u64> {
        let mut rows = vec![0; self.width()];
        rows.extend_from_slice(&self.snapshots);
        rows.extend_from_slice(&self.remainder);
        rows
    }
}

/// Leaves every second row of so many columns, the second one first.
pub(super) fn every_second(rows: &mut Vec<u64>, width: usize) {
    let left = rows.len() / width / 2;
    for kept in 0..left {
        let from = (2 * kept + 1) * width;
        rows.copy_within(from..from + width, kept * width);
    }
    rows.truncate(left * width);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_of_timeouts_counts_at_each_depth_it_reaches() {
        let mut counters = Counters::new(2, 1);
        let reached = |counters: &Counters| {
            let first = ClassCell::Reached2 as usize;
            counters.classes[1].0[first..first + 5].to_vec()
        };
        let mut depth = 1;
        counters.count_repeated_timeout(1, &mut depth);
        counters.count_repeated_timeout(1, &mut depth);
        assert_eq!((depth, reached(&counters)), (3, vec![1, 1, 0, 0, 0]));
        depth = 1;
        (0..300).for_each(|_| counters.count_repeated_timeout(1, &mut depth));
        assert_eq!((depth, reached(&counters)), (255, vec![2, 2, 1, 1, 1]));
        depth = 0;
        counters.count_repeated_timeout(1, &mut depth);
        assert_eq!((depth, reached(&counters)), (0, vec![2, 2, 1, 1, 1]));
        assert!(counters.classes[0].0.iter().all(|cell| *cell == 0));
        assert_eq!(counters.total(ClassCell::Timeouts), 0);
    }

    #[test]
    fn slots_stay_equal_while_a_run_grows() {
        let mut counters = Counters::new(1, 1);
        counters.begin(500);
        for _ in 0..1000 {
            let end = counters.slot_ends();
            counters.add(0, ClassCell::Sent, end - 500 - counters.total(ClassCell::Sent));
            counters.snapshot(end, false);
        }
        let width = counters.width();
        let rows = counters.rows();
        let times: Vec<u64> = rows.chunks(width).map(|row| row[LinkCell::Time as usize]).collect();
        assert!(times.len() > MAX_SLOTS / 2 && times.len() <= MAX_SLOTS);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == times[1]));
        let sent = LINK_CELLS.len() + ClassCell::Sent as usize;
        assert!(rows.chunks(width).all(|row| row[sent] == row[LinkCell::Time as usize]));
    }
}
