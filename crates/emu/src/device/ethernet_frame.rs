//! Ethernet headers of packets.

use crate::path::PacketSlab;

/// Address of all host ends, which are never on the same network.
pub(crate) const HOST_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Address of all link ends. Packets from a host have the host's own address as destination,
/// because its interface does not resolve neighbours. At the end of the link, the destination is
/// therefore another host, and the kernel passes the packets only to the packet socket.
pub(crate) const LINK_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

const HEADER_BYTES: usize = 14;
const IPV4_ETHERNET_HEADER: [u8; HEADER_BYTES] = ethernet_header(0x0800);
const IPV6_ETHERNET_HEADER: [u8; HEADER_BYTES] = ethernet_header(0x86dd);

const fn ethernet_header(kind: u16) -> [u8; HEADER_BYTES] {
    let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (HOST_MAC, LINK_MAC);
    let [high, low] = kind.to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l, high, low]
}

/// Writes the header before the packet in a cell, addressed to its host.
#[inline]
pub(super) fn write_ethernet_header(slab: &mut PacketSlab, cell: u32) {
    let is_ipv6 = slab.packet(cell).first().is_some_and(|first| first >> 4 == 6);
    slab.set_header(cell, if is_ipv6 { &IPV6_ETHERNET_HEADER } else { &IPV4_ETHERNET_HEADER });
}

/// Returns the packet with its header.
#[inline]
pub(super) fn frame_of_cell(slab: &PacketSlab, cell: u32) -> &[u8] {
    slab.packet_with_headroom(cell, HEADER_BYTES)
}
