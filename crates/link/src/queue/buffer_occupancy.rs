//! Backlog and limits of a queue.

/// A number of packets and their total length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl Backlog {
    #[inline]
    pub(crate) fn add_packet(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    #[inline]
    pub(crate) fn remove_packet(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// Limits of a buffer, which include the packet in transmission. A limit in packets and a limit in
/// bytes may apply at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BufferLimits {
    /// Maximum number of packets; `None` is unlimited.
    pub packets: Option<u64>,
    /// Maximum number of bytes; `None` is unlimited.
    pub bytes: Option<u64>,
}

impl BufferLimits {
    /// A limit in packets.
    #[must_use]
    pub fn limit_packets(max: u64) -> Self {
        Self { packets: Some(max), ..Self::default() }
    }

    /// A limit in bytes.
    #[must_use]
    pub fn limit_bytes(max: u64) -> Self {
        Self { bytes: Some(max), ..Self::default() }
    }
}

/// Limits as plain numbers, for fast comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaxBacklog {
    pub(crate) packets: u64,
    bytes: u64,
}

impl MaxBacklog {
    pub(crate) fn new(limits: BufferLimits) -> Self {
        Self {
            packets: limits.packets.unwrap_or(u64::MAX),
            bytes: limits.bytes.unwrap_or(u64::MAX),
        }
    }

    /// Whether a packet of `bytes` fits in addition to the backlog `counted`.
    #[inline]
    pub(crate) fn has_room(&self, counted: Backlog, bytes: u32) -> bool {
        counted.packets < self.packets && counted.bytes + u64::from(bytes) <= self.bytes
    }

    /// Whether the backlog `counted` is within the limits.
    #[inline]
    pub(crate) fn is_within_limits(&self, counted: Backlog) -> bool {
        counted.packets <= self.packets && counted.bytes <= self.bytes
    }
}

/// Waiting packets, the packet in transmission, and the limits.
#[derive(Clone, Copy, Debug)]
pub struct BufferOccupancy {
    pub(crate) max: MaxBacklog,
    /// Packets that wait for transmission.
    pub waiting: Backlog,
    /// The packet in transmission: none or one.
    pub in_service: Backlog,
}

impl BufferOccupancy {
    pub(crate) fn new(limits: BufferLimits) -> Self {
        Self {
            max: MaxBacklog::new(limits),
            waiting: Backlog::default(),
            in_service: Backlog::default(),
        }
    }

    /// Backlog, including the packet in transmission.
    #[inline]
    #[must_use]
    pub fn held_backlog(&self) -> Backlog {
        Backlog {
            packets: self.waiting.packets + self.in_service.packets,
            bytes: self.waiting.bytes + self.in_service.bytes,
        }
    }

    /// Whether another packet of `bytes` fits.
    #[inline]
    pub(crate) fn has_room(&self, bytes: u32) -> bool {
        self.max.has_room(self.held_backlog(), bytes)
    }

    /// Moves a waiting packet into transmission.
    #[inline]
    pub(crate) fn move_to_transmission(&mut self, bytes: u32) {
        self.waiting.remove_packet(bytes);
        self.set_in_transmission(bytes);
    }

    /// Moves a packet into transmission that was already removed from `waiting`.
    #[inline]
    pub(crate) fn set_in_transmission(&mut self, bytes: u32) {
        self.in_service = Backlog { packets: 1, bytes: u64::from(bytes) };
    }

    /// Records that the transmitter is idle.
    #[inline]
    pub(crate) fn set_transmitter_idle(&mut self) {
        self.in_service = Backlog::default();
    }
}
