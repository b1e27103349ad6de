//! TCP options negotiated in the SYNs of both ends.

/// Options that an end announced or, in a report, that apply to a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnouncedOptions {
    /// Largest segment that the end accepts, bytes.
    pub mss: Option<u16>,
    /// Shift of the windows that the end announces.
    pub window_scale: Option<u8>,
    /// The end accepts SACK.
    pub sack: bool,
    /// The end sends timestamps.
    pub timestamps: bool,
    /// The end supports ECN.
    pub ecn: bool,
    /// The end supports accurate ECN feedback (RFC 9768).
    pub accurate_ecn: bool,
    /// True if the SYN was captured completely; if not, absent options may still have been
    /// negotiated.
    pub complete: bool,
}

/// Largest payload of a segment to an end that announced no MSS, for IPv4 and IPv6 (RFC 9293, section
/// 3.7.1).
const DEFAULT_MSS: [u16; 2] = [536, 1220];

impl AnnouncedOptions {
    /// Returns the options that apply to data from an end that announced `sends` to an end that
    /// announced `takes`. `syn` and `answer` tell whether the SYNs of these two ends were captured;
    /// an end whose SYN is missing is assumed to support what the other end announced.
    pub(crate) fn effective(
        (syn, sends): (bool, Self),
        (answer, takes): (bool, Self),
        ipv6: bool,
    ) -> Self {
        let mss = if answer && takes.complete {
            takes.mss.or(Some(DEFAULT_MSS[usize::from(ipv6)]))
        } else {
            takes.mss
        };
        let both = |of: fn(&Self) -> bool| {
            (syn || answer) && (!syn || of(&sends)) && (!answer || of(&takes))
        };
        let scaled = !syn || !sends.complete || sends.window_scale.is_some();
        Self {
            // No end sends larger segments than its interface carries, and it announces this size.
            mss: mss.into_iter().chain(sends.mss).min(),
            window_scale: takes.window_scale.filter(|_| scaled),
            sack: both(|end| end.sack),
            timestamps: both(|end| end.timestamps),
            ecn: both(|end| end.ecn),
            accurate_ecn: both(|end| end.accurate_ecn),
            complete: (!syn || sends.complete) && (!answer || takes.complete),
        }
    }
}

/// Options of a direction that both SYNs negotiated. The options change only with a SYN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NegotiatedOptions {
    /// Shift of the receiver's windows; `None` if the SYNs were not captured.
    pub(super) scale: Option<u8>,
    /// One end does not support SACK.
    pub(super) lacks_sack: bool,
    /// Largest segment that the receiver accepts.
    pub(super) mss: Option<u16>,
    /// Both ends support accurate ECN.
    pub(super) accurate_ecn: bool,
}

impl NegotiatedOptions {
    /// Returns the options for data from an end that announced `sends` to an end that announced
    /// `takes`. `syn` and `answer` tell whether the SYNs of these two ends were captured.
    pub(crate) fn from_announced(
        (syn, sends): (bool, AnnouncedOptions),
        (answer, takes): (bool, AnnouncedOptions),
    ) -> Self {
        let lacks = |seen: bool, end: AnnouncedOptions| seen && end.complete && !end.sack;
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
            accurate_ecn: syn && answer && sends.accurate_ecn && takes.accurate_ecn,
        }
    }
}
