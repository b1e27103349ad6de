//! An nftables table that is removed when its socket closes (linux/netfilter/nf_tables.h).

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use std::io;
use std::net::Ipv4Addr;

const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_NEWTABLE: u16 = NFNL_SUBSYS_NFTABLES << 8;
const NFT_MSG_NEWCHAIN: u16 = NFNL_SUBSYS_NFTABLES << 8 | 3;
const NFT_MSG_NEWRULE: u16 = NFNL_SUBSYS_NFTABLES << 8 | 6;

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;

/// The table is owned by its socket and removed with it.
const NFT_TABLE_F_OWNER: u32 = 0x2;
const NFPROTO_IPV4: u8 = 2;
const NLA_F_NESTED: u16 = 0x8000;

/// Type, hook and priority of a chain: after the addresses of replies are restored, and before
/// routing.
const PREROUTING_CHAIN: (&str, u32, i32) = ("filter", 0, -50);
const POSTROUTING_CHAIN: (&str, u32, i32) = ("nat", 4, 100);

/// Offsets of the 4-byte addresses in an IPv4 header.
const SOURCE_OFFSET: u32 = 12;
const DESTINATION_OFFSET: u32 = 16;

/// A table under construction; [`NftablesTable::commit_table`] creates it.
#[derive(Debug)]
pub(super) struct NftablesTable {
    socket: Socket,
    table: String,
    batch: Vec<u8>,
    /// Start of the last message in `batch`.
    last: usize,
    sequence: u32,
}

/// Encodes an attribute with padding.
fn encode_attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn encode_nested_attribute(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    encode_attribute(kind | NLA_F_NESTED, &parts.concat())
}

fn encode_number(kind: u16, value: u32) -> Vec<u8> {
    encode_attribute(kind, &value.to_be_bytes())
}

fn encode_text(kind: u16, value: &str) -> Vec<u8> {
    encode_attribute(kind, format!("{value}\0").as_bytes())
}

/// Encodes an expression of a rule.
fn encode_expression(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    encode_nested_attribute(1, &[encode_text(1, name), encode_nested_attribute(2, parts)])
}

/// Loads an address of the packet into the first register.
fn encode_address_load(offset: u32) -> Vec<u8> {
    const NETWORK_HEADER: u32 = 1;
    let parts = [
        encode_number(1, 1),
        encode_number(2, NETWORK_HEADER),
        encode_number(3, offset),
        encode_number(4, 4),
    ];
    encode_expression("payload", &parts)
}

/// Tests whether the first register equals a value (operation 0) or differs (1).
fn encode_register_comparison(operation: u32, value: &[u8]) -> Vec<u8> {
    let data = encode_nested_attribute(3, &[encode_attribute(1, value)]);
    encode_expression("cmp", &[encode_number(1, 1), encode_number(2, operation), data])
}

impl NftablesTable {
    /// Creates an IPv4 table in the calling thread's network namespace.
    pub(super) fn new(table: &str) -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut made =
            Self { socket, table: table.to_owned(), batch: Vec::new(), last: 0, sequence: 0 };
        made.add_message(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, &[]);
        made.add_message(
            NFT_MSG_NEWTABLE,
            NLM_F_REQUEST | NLM_F_CREATE,
            &[encode_text(1, table), encode_number(2, NFT_TABLE_F_OWNER)],
        );
        for (name, (kind, hook, priority)) in
            [("prerouting", PREROUTING_CHAIN), ("postrouting", POSTROUTING_CHAIN)]
        {
            let hooks = encode_nested_attribute(
                4,
                &[encode_number(1, hook), encode_number(2, priority as u32)],
            );
            let parts = [encode_text(1, table), encode_text(3, name), hooks, encode_text(7, kind)];
            made.add_message(NFT_MSG_NEWCHAIN, NLM_F_REQUEST | NLM_F_CREATE, &parts);
        }
        Ok(made)
    }

    /// Replaces the source address of packets by the address of the outgoing interface.
    pub(super) fn add_masquerade_rule(mut self, source: Ipv4Addr) -> Self {
        let parts = [
            encode_address_load(SOURCE_OFFSET),
            encode_register_comparison(0, &source.octets()),
            encode_expression("masq", &[]),
        ];
        self.add_rule("postrouting", &parts);
        self
    }

    /// Forwards replies to masqueraded packets to an address, on any interface and without enabling
    /// forwarding.
    pub(super) fn add_reply_forwarding_rule(mut self, destination: Ipv4Addr) -> Self {
        const ESTABLISHED_OR_RELATED: u32 = 2 | 4;
        let value =
            |value: u32| encode_nested_attribute(4, &[encode_attribute(1, &value.to_ne_bytes())]);
        let nothing = encode_nested_attribute(5, &[encode_attribute(1, &0_u32.to_ne_bytes())]);
        let mask = value(ESTABLISHED_OR_RELATED);
        let verdict =
            encode_nested_attribute(2, &[encode_nested_attribute(2, &[encode_number(1, 0)])]);
        let parts = [
            // Connection tracking state.
            encode_expression("ct", &[encode_number(1, 1), encode_number(2, 0)]),
            encode_expression(
                "bitwise",
                &[encode_number(1, 1), encode_number(2, 1), encode_number(3, 4), mask, nothing],
            ),
            encode_register_comparison(1, &[0; 4]),
            encode_address_load(DESTINATION_OFFSET),
            encode_register_comparison(0, &destination.octets()),
            // Sends a copy to the destination as a local packet. The original, which would need
            // forwarding, is dropped.
            encode_expression("dup", &[encode_number(1, 1)]),
            encode_expression("immediate", &[encode_number(1, 0), verdict]),
        ];
        self.add_rule("prerouting", &parts);
        self
    }

    fn add_rule(&mut self, chain: &str, expressions: &[Vec<u8>]) {
        let parts = [
            encode_text(1, &self.table),
            encode_text(2, chain),
            encode_nested_attribute(4, expressions),
        ];
        self.add_message(NFT_MSG_NEWRULE, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_APPEND, &parts);
    }

    fn add_message(&mut self, kind: u16, flags: u16, parts: &[Vec<u8>]) {
        let (family, resource) = match kind {
            NFNL_MSG_BATCH_BEGIN | NFNL_MSG_BATCH_END => (0, NFNL_SUBSYS_NFTABLES),
            _ => (NFPROTO_IPV4, 0),
        };
        let body = parts.concat();
        let length = 16 + 4 + body.len() as u32;
        self.last = self.batch.len();
        self.batch.extend(length.to_ne_bytes());
        self.batch.extend(kind.to_ne_bytes());
        self.batch.extend(flags.to_ne_bytes());
        self.batch.extend(self.sequence.to_ne_bytes());
        self.batch.extend(0_u32.to_ne_bytes());
        self.batch.extend([family, 0]);
        self.batch.extend(resource.to_be_bytes());
        self.batch.extend(body);
        self.sequence += 1;
    }

    /// Creates the table in one transaction.
    ///
    /// # Errors
    /// Fails if the kernel does not support nftables or one of these expressions.
    pub(super) fn commit_table(mut self) -> io::Result<Self> {
        // Requests an acknowledgement of the last rule; the error of a failing message is reported
        // first.
        let flags = self.last + 6;
        let with_ack = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK;
        self.batch[flags..flags + 2].copy_from_slice(&with_ack.to_ne_bytes());
        self.add_message(NFNL_MSG_BATCH_END, NLM_F_REQUEST, &[]);
        self.socket.send(&self.batch, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        match answer.get(16..20).and_then(|code| code.try_into().ok()).map(i32::from_ne_bytes) {
            Some(0) => Ok(self),
            Some(code) => {
                let error = io::Error::from_raw_os_error(-code);
                Err(io::Error::other(format!("the kernel rejects the nftables rules: {error}")))
            }
            None => Err(io::Error::other("the kernel's answer about nftables cannot be parsed")),
        }
    }
}
