//! The Ethernet header before a packet.

use crate::path::Slab;

/// The address of every namespace's end: they never meet.
pub(crate) const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// That of the link's ends. What a host sends is addressed to the host's own, as its interface does
/// not ask for neighbours, so the kernel passes it to the packet socket alone.
pub(crate) const LINK_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

const HEADER_BYTES: usize = 14;
const IPV4: [u8; HEADER_BYTES] = header(0x0800);
const IPV6: [u8; HEADER_BYTES] = header(0x86dd);

const fn header(kind: u16) -> [u8; HEADER_BYTES] {
    let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (HOST_MAC, LINK_MAC);
    let [high, low] = kind.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, high, low]
}

/// Writes the header before the packet in a cell, for its host.
#[inline]
pub(super) fn address(slab: &mut Slab, cell: u32) {
    let is_ipv6 = slab.packet(cell).first().is_some_and(|first| first >> 4 == 6);
    slab.set_header(cell, if is_ipv6 { &IPV6 } else { &IPV4 });
}

/// The packet with its header.
#[inline]
pub(super) fn of(slab: &Slab, cell: u32) -> &[u8] {
    slab.framed(cell, HEADER_BYTES)
}
