//! The links and routes of a simulated network for the emulator.

use std::sync::Arc;
use tcpcast_emu::path::PacketInTransit;
use tcpcast_emu::traffic::{LinkRole, NetworkSums, TrafficNetwork};
use tcpcast_net::{Network, RouteId};
use tcpcast_sim::flows::{NetworkConfig, NetworkLinks, RouteUser};

/// A network whose links are created with the routes that use them.
pub(super) struct NetworkBuilder {
    config: Arc<NetworkConfig>,
    network: Network<PacketInTransit>,
    links: NetworkLinks,
    roles: Vec<LinkRole>,
}

/// Number of the client among the ends of a flow; 0 is the server.
const CLIENT: usize = 1;

impl NetworkBuilder {
    /// Creates a network with the random streams of a replication.
    pub fn new(config: NetworkConfig, replication: u32) -> Self {
        let config = Arc::new(config);
        let links = NetworkLinks::new(&config, replication);
        Self { config, network: Network::default(), links, roles: Vec::new() }
    }

    /// Configuration of the network.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// Equal routes of a source from its server, and from its client.
    pub fn add_routes(&mut self, class: usize, source: u32, member: u32) -> [Vec<RouteId>; 2] {
        // As with several sources, packets have an event at each link.
        let user = RouteUser { class, source, member, host: 0, sources: u32::MAX };
        let (roles, headline) = (&mut self.roles, self.config.headline);
        let on_new = |network: &Network<PacketInTransit>, link, declared: usize| {
            roles.push(LinkRole {
                declared: declared as u32,
                is_headline: declared == headline,
                has_queue: network.link(link).has_queue(),
            });
        };
        let set = self.links.find_or_add_routes(user, 0, &mut self.network, on_new);
        let set = self.links.route_set(set);
        [1 - CLIENT, CLIENT].map(|end| set.alternatives_from(end).to_vec())
    }

    /// The network without the roles of its links.
    pub fn into_network(self) -> Network<PacketInTransit> {
        self.network
    }

    /// The network with the counters of its links.
    pub fn into_traffic_network(self) -> TrafficNetwork {
        let Self { config, network, links: of_config, roles } = self;
        TrafficNetwork {
            network,
            links: roles,
            declared_links: config.links.len() as u32,
            classes: config.classes.len() as u32,
            sums: NetworkSums(Box::new(move |network, now| of_config.sums(network, now))),
        }
    }
}
