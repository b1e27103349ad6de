//! Names of servers: TLS server name indication, HTTP host, and DNS answers.
//!
//! Only the first segment with a name of each connection is parsed; for all others, one byte of the
//! payload is compared. Names with characters other than those of host names are ignored, so that
//! they need no escaping. The memory is bounded.

use crate::segment::{Endpoint, Segment};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of names of connections, and of names of addresses.
const MAX_NAMES: usize = 1 << 14;
/// Maximum length of a name (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
/// Maximum number of bytes of an HTTP request that are searched.
const MAX_HTTP: usize = 4096;
/// Maximum number of answers of a DNS message that are read.
const MAX_ANSWERS: u16 = 64;
const DNS_PORT: u16 = 53;
const TLS_HANDSHAKE: u8 = 22;
const METHODS: [&[u8]; 8] =
    [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"CONNECT "];

/// Name of the server of a connection, as its client stated it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName {
    /// Sender of the name.
    pub client: Endpoint,
    /// The named server.
    pub server: Endpoint,
    /// The name.
    pub name: Box<str>,
}

/// Names found so far.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    servers: Vec<ServerName>,
    known: HashSet<(Endpoint, Endpoint)>,
    addresses: HashMap<IpAddr, Box<str>>,
}

impl HostNames {
    /// Names that clients stated, in the order of the capture.
    #[must_use]
    pub fn servers(&self) -> &[ServerName] {
        &self.servers
    }

    /// Names of addresses by DNS answers.
    pub fn addresses(&self) -> impl Iterator<Item = (&IpAddr, &str)> {
        self.addresses.iter().map(|(address, name)| (address, &**name))
    }

    /// Whether a payload that begins with this byte may contain a name.
    #[inline(always)]
    pub(super) fn may_start_name(first: u8) -> bool {
        matches!(first, TLS_HANDSHAKE | b'G' | b'P' | b'H' | b'D' | b'O' | b'C')
    }

    /// Reads the name in a payload, unless the connection has one.
    #[cold]
    pub(super) fn observe_payload(&mut self, segment: &Segment, payload: &[u8]) {
        let is_tls = payload.starts_with(&[TLS_HANDSHAKE, 3]);
        if !is_tls && !METHODS.iter().any(|method| payload.starts_with(method)) {
            return;
        }
        let ends = (segment.source, segment.destination);
        if self.servers.len() >= MAX_NAMES || self.known.contains(&ends) {
            return;
        }
        let name = if is_tls { tls_server_name(payload) } else { http_host(payload) };
        if let Some(name) = name.and_then(valid_name) {
            self.known.insert(ends);
            self.servers.push(ServerName { client: ends.0, server: ends.1, name });
        }
    }

    /// Reads the addresses in a UDP datagram (header and payload) if it is a DNS response.
    pub(super) fn observe_datagram(&mut self, datagram: &[u8]) {
        if datagram.len() < 20 || word(datagram, 0) != Some(DNS_PORT) {
            return;
        }
        let Some(name) = dns_question(&datagram[8..]) else { return };
        for address in dns_addresses(&datagram[8..]) {
            if self.addresses.len() < MAX_NAMES {
                self.addresses.entry(address).or_insert_with(|| name.clone());
            }
        }
    }
}

/// Returns a name in lower case if it consists of the characters of host names, and is no address.
fn valid_name(name: &[u8]) -> Option<Box<str>> {
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.is_empty() || name.len() > MAX_NAME || !name.iter().all(valid) {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    name.parse::<IpAddr>().is_err().then(|| name.to_ascii_lowercase().into())
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Splits off a field whose length precedes it in `width` bytes.
fn split_field(bytes: &[u8], width: usize) -> Option<(&[u8], &[u8])> {
    let length = bytes.get(..width)?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let rest = &bytes[width..];
    // A segment may contain only the beginning of the field.
    Some(rest.split_at(length.min(rest.len())))
}

/// Returns the server name of a `ClientHello` (RFC 8446, section 4.1.2; RFC 6066, section 3).
fn tls_server_name(record: &[u8]) -> Option<&[u8]> {
    const CLIENT_HELLO: u8 = 1;
    let (handshake, _) = split_field(record.get(3..)?, 2)?;
    if *handshake.first()? != CLIENT_HELLO {
        return None;
    }
    let (hello, _) = split_field(&handshake[1..], 3)?;
    let (_session, rest) = split_field(hello.get(2 + 32..)?, 1)?;
    let (_ciphers, rest) = split_field(rest, 2)?;
    let (_compression, rest) = split_field(rest, 1)?;
    let (mut extensions, _) = split_field(rest, 2)?;
    loop {
        let kind = word(extensions, 0)?;
        let (content, rest) = split_field(&extensions[2..], 2)?;
        if kind == 0 {
            let (list, _) = split_field(content, 2)?;
            let length = usize::from(word(list, 1)?);
            // A name that is cut is no name.
            return if list[0] == 0 { list.get(3..3 + length) } else { None };
        }
        extensions = rest;
    }
}

/// Returns the host of an HTTP/1 request, without its port (RFC 9112, section 3.2).
fn http_host(request: &[u8]) -> Option<&[u8]> {
    let text = &request[..request.len().min(MAX_HTTP)];
    let mut lines = text.split(|byte| *byte == b'\n');
    let first = lines.next()?.strip_suffix(b"\r")?;
    if !first.ends_with(b" HTTP/1.1") && !first.ends_with(b" HTTP/1.0") {
        return None;
    }
    for line in lines {
        let line = line.strip_suffix(b"\r")?; // also None for a cut line
        let (name, value) = line.split_at_checked(5)?;
        if name.eq_ignore_ascii_case(b"host:") {
            let host = value.trim_ascii();
            return host.split(|byte| *byte == b':').next();
        }
    }
    None
}

/// Returns the name that a DNS response without error answers (RFC 1035, section 4.1).
fn dns_question(message: &[u8]) -> Option<Box<str>> {
    const RESPONSE: u16 = 0x8000;
    const ERROR_CODE: u16 = 0x000f;
    let flags = word(message, 2)?;
    if flags & RESPONSE == 0 || flags & ERROR_CODE != 0 || word(message, 4)? != 1 {
        return None;
    }
    let mut name = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*message.get(at)?);
        let label = message.get(at + 1..at + 1 + length)?;
        if length == 0 {
            return valid_name(&name);
        }
        if length > 63 || name.len() + length > MAX_NAME {
            return None;
        }
        if !name.is_empty() {
            name.push(b'.');
        }
        name.extend_from_slice(label);
        at += 1 + length;
    }
}

/// Returns the addresses in the answers of a DNS response.
fn dns_addresses(message: &[u8]) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let answers = word(message, 6).unwrap_or(0).min(MAX_ANSWERS);
    let mut next = skip_name(message, 12).map(|at| at + 4);
    for _ in 0..answers {
        let Some(at) = next.and_then(|at| skip_name(message, at)) else { break };
        let (Some(kind), Some(length)) = (word(message, at), word(message, at + 8)) else { break };
        let Some(data) = message.get(at + 10..at + 10 + usize::from(length)) else { break };
        match (kind, data.len()) {
            (1, 4) => found.extend(data.first_chunk::<4>().map(|b| IpAddr::V4(Ipv4Addr::from(*b)))),
            (28, 16) => {
                found.extend(data.first_chunk::<16>().map(|b| IpAddr::V6(Ipv6Addr::from(*b))));
            }
            _ => {}
        }
        next = Some(at + 10 + data.len());
    }
    found
}

/// Returns the offset behind a name, which may end with a pointer.
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length >= 0xc0 => return Some(at + 2),
            length => at += 1 + usize::from(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::EMPTY_SEGMENT;

    fn field(content: &[u8], width: usize) -> Vec<u8> {
        let length = content.len().to_be_bytes();
        [&length[length.len() - width..], content].concat()
    }

    fn client_hello(name: &[u8]) -> Vec<u8> {
        let entry = [&[0][..], &field(name, 2)].concat();
        let server_name = [&[0, 0][..], &field(&field(&entry, 2), 2)].concat();
        let other = [&[0, 43][..], &field(&[2, 3, 4], 2)].concat();
        let extensions = [other, server_name].concat();
        let hello = [
            &[3, 3][..],
            &[7; 32],
            &field(&[1; 32], 1),
            &field(&[0x13, 1, 0x13, 2], 2),
            &field(&[0], 1),
            &field(&extensions, 2),
        ]
        .concat();
        let handshake = [&[1][..], &field(&hello, 3)].concat();
        [&[22, 3, 1][..], &field(&handshake, 2)].concat()
    }

    fn dns_response(name: &[&[u8]], address: [u8; 4]) -> Vec<u8> {
        let mut message = vec![0, 1, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0];
        name.iter().for_each(|label| message.extend(field(label, 1)));
        message.extend([0, 0, 1, 0, 1]);
        let alias = [&[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 9][..], &field(b"\x01x\xc0\x0c", 2)].concat();
        let answer = [&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9][..], &field(&address, 2)].concat();
        [&[0, 53, 1, 2, 0, 0, 0, 0][..], &message, &alias, &answer].concat()
    }

    fn names(payload: &[u8]) -> Vec<String> {
        let mut names = HostNames::default();
        if payload.first().is_some_and(|first| HostNames::may_start_name(*first)) {
            names.observe_payload(&EMPTY_SEGMENT, payload);
        }
        names.servers().iter().map(|server| server.name.to_string()).collect()
    }

    #[test]
    fn reads_the_server_name_of_tls() {
        assert_eq!(names(&client_hello(b"WWW.example.org")), ["www.example.org"]);
    }

    #[test]
    fn reads_the_host_of_http() {
        let request = b"GET /a HTTP/1.1\r\nAccept: x\r\nhost: example.org:8080\r\n\r\n";
        assert_eq!(names(request), ["example.org"]);
        assert_eq!(names(&request[..40]), [""; 0]);
    }

    #[test]
    fn ignores_addresses_and_names_with_control_characters_or_markup() {
        for name in [&b"a\x1b[2Jb"[..], b"<b>", b"a b", b"", b"a|b", b"192.0.2.1", &[b'x'; 300]] {
            assert_eq!(names(&client_hello(name)), [""; 0]);
        }
        assert_eq!(names(b"GET / HTTP/1.1\r\nHost: \x1b]0;x\x07\r\n\r\n"), [""; 0]);
    }

    #[test]
    fn reads_the_addresses_of_dns() {
        let mut names = HostNames::default();
        names.observe_datagram(&dns_response(&[b"www", b"example", b"org"], [192, 0, 2, 7]));
        let found: Vec<_> = names.addresses().map(|(a, n)| (a.to_string(), n.to_owned())).collect();
        assert_eq!(found, [("192.0.2.7".to_owned(), "www.example.org".to_owned())]);
    }

    #[test]
    fn a_connection_is_parsed_once() {
        let mut names = HostNames::default();
        names.observe_payload(&EMPTY_SEGMENT, &client_hello(b"first.example"));
        names.observe_payload(&EMPTY_SEGMENT, &client_hello(b"second.example"));
        assert_eq!(names.servers().len(), 1);
        assert_eq!(&*names.servers()[0].name, "first.example");
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let mut names = HostNames::default();
        for index in 0..MAX_NAMES as u32 + 10 {
            let [a, b, c, d] = index.to_be_bytes();
            names.observe_datagram(&dns_response(&[b"x"], [a, b, c, d]));
            let mut segment = EMPTY_SEGMENT;
            segment.sequence = index;
            segment.source.address = IpAddr::V4(Ipv4Addr::from_bits(index));
            names.observe_payload(&segment, &client_hello(b"x"));
        }
        assert_eq!(names.addresses().count(), MAX_NAMES);
        assert_eq!(names.servers().len(), MAX_NAMES);
    }

    #[test]
    fn cut_and_random_payloads_give_no_wrong_name() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let request = b"POST / HTTP/1.1\r\nHost: www.example.org\r\n\r\n".to_vec();
        let response = dns_response(&[b"www", b"example", b"org"], [192, 0, 2, 7]);
        for whole in [client_hello(b"www.example.org"), request, response] {
            for length in 0..whole.len() {
                let found = names(&whole[..length]);
                assert!(found.is_empty() || found == ["www.example.org"], "{length}: {found:?}");
                HostNames::default().observe_datagram(&whole[..length]);
            }
            for _ in 0..20_000 {
                let mut damaged = whole.clone();
                for _ in 0..=random() % 4 {
                    let at = random() as usize % damaged.len();
                    damaged[at] = random() as u8;
                }
                damaged.truncate(random() as usize % (damaged.len() + 1));
                let mut found = HostNames::default();
                found.observe_payload(&EMPTY_SEGMENT, &damaged);
                found.observe_datagram(&damaged);
                let all = found.servers().iter().map(|server| &*server.name);
                for name in all.chain(found.addresses().map(|(_, name)| name)) {
                    assert!(valid_name(name.as_bytes()).is_some());
                }
            }
        }
    }
}
