//! TCP options negotiated in the SYNs of both ends.

use super::flow::Flow;
use super::report::AnnouncedOptions;

/// Options of a direction that both SYNs negotiated. The options change only with a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NegotiatedOptions {
    /// Shift of the receiver's windows; `None` if the SYNs were not captured.
    pub(super) scale: Option<u8>,
    /// One end does not support SACK.
    pub(super) lacks_sack: bool,
    /// Largest segment that the receiver accepts.
    pub(super) mss: Option<u16>,
}

impl NegotiatedOptions {
    /// Returns the options for data from `own` to `peer`.
    pub(crate) fn from_flows(own: &Flow, peer: &Flow) -> Self {
        let (sends, takes) = (&own.announced, &peer.announced);
        let (syn, answer) = (own.isn.is_some(), peer.isn.is_some());
        let lacks = |seen: bool, end: &AnnouncedOptions| seen && end.complete && !end.sack;
        Self {
            // RFC 7323, section 2.2: scaling applies only if both ends sent the option. A SYN-ACK
            // with the option implies both.
            scale: match (answer, syn) {
                (false, _) => None,
                (true, true) if sends.complete && sends.window_scale.is_none() => Some(0),
                (true, _) if takes.complete || takes.window_scale.is_some() => {
                    Some(takes.window_scale.unwrap_or(0))
                }
                _ => None,
            },
            lacks_sack: lacks(syn, sends) || lacks(answer, takes),
            mss: takes.mss,
        }
    }
}
