//! Changes of the ECN field by middleboxes on the path.

use crate::packet::Ecn;
use crate::random::{RandomSource, RandomStream};
use serde::Deserialize;

/// What a middlebox does with the ECN field.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EcnRemarkConfig {
    /// New codepoints of packets with Not-ECT, ECT(1), ECT(0) and CE; `None`: one of the four at
    /// random.
    pub to: Option<[Ecn; 4]>,
    /// Probability with which a packet is changed.
    pub share: f64,
}

/// A middlebox that changes the ECN field.
#[derive(Clone, Debug)]
pub struct EcnRemark {
    config: EcnRemarkConfig,
    draws: RandomStream,
}

impl EcnRemark {
    /// Creates a middlebox that decides by `draws`.
    #[must_use]
    pub fn new(config: EcnRemarkConfig, draws: RandomStream) -> Self {
        Self { config, draws }
    }

    /// Codepoint of a packet behind the middlebox.
    pub fn remark(&mut self, ecn: Ecn) -> Ecn {
        let EcnRemarkConfig { to, share } = self.config;
        if share < 1.0 && !self.draws.draw_chance(share) {
            return ecn;
        }
        match to {
            Some(to) => to[ecn as usize],
            None => Ecn::from_bits((self.draws.next_bits() >> 62) as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    fn counts(config: EcnRemarkConfig, from: Ecn) -> [u32; 4] {
        let mut middlebox = EcnRemark::new(config, RandomStream::from_seed(1));
        let mut counts = [0; 4];
        (0..10_000).for_each(|_| counts[middlebox.remark(from) as usize] += 1);
        counts
    }

    #[test]
    fn codepoints_are_replaced_for_a_share_of_the_packets() {
        let to = Some([Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct]);
        let all = EcnRemarkConfig { to, share: 1.0 };
        for (from, to) in ALL.into_iter().zip([0, 2, 2, 0]) {
            assert_eq!(counts(all, from)[to], 10_000);
        }
        let [changed, _, _, kept] = counts(EcnRemarkConfig { to, share: 0.2 }, Ecn::Ce);
        assert_eq!(changed + kept, 10_000);
        assert!(changed.abs_diff(2000) < 150, "{changed}");
    }

    #[test]
    fn random_codepoints_are_equally_frequent() {
        for count in counts(EcnRemarkConfig { to: None, share: 1.0 }, Ecn::Ect1) {
            assert!(count.abs_diff(2500) < 200, "{count}");
        }
    }
}
