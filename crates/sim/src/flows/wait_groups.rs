//! Groups of the histograms of queueing delays: see [`Probes::link_waits`](crate::probe::Probes).

use super::config::NetworkConfig;

/// Numbers of the groups.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitGroups {
    /// Position of class 0 of each link in `groups`, modulo 2^64: a link has entries only from its
    /// first to its last class.
    rows: Vec<usize>,
    groups: Vec<u32>,
    /// Number of pairs of link and class.
    pairs: usize,
}

impl WaitGroups {
    pub fn new(config: &NetworkConfig) -> Self {
        let pairs = config.link_classes();
        let mut all = Self { pairs: pairs.len(), ..Self::default() };
        for (number, (link, class)) in (0..).zip(pairs) {
            if all.rows.len() <= link {
                all.rows.resize(link + 1, all.groups.len().wrapping_sub(class));
            }
            all.groups.resize(all.rows[link].wrapping_add(class), u32::MAX);
            all.groups.push(number);
        }
        all
    }

    /// Number of groups of `links` links.
    pub fn count(&self, links: usize) -> usize {
        self.pairs + links
    }

    /// Group of a class on a link of its route.
    #[inline(always)]
    pub fn of_class(&self, link: u32, class: usize) -> usize {
        self.groups[self.rows[link as usize].wrapping_add(class)] as usize
    }

    /// Group of the cross traffic of a link.
    pub fn of_cross(&self, link: u32) -> usize {
        self.pairs + link as usize
    }
}
