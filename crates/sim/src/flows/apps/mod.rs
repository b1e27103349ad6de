//! Applications other than files, one file per kind.

mod messages;
mod pages;
mod requests;
mod stepped;
mod stream;

use super::FlowSimulation;
use super::config::FlowTraffic;
use crate::random::RandomStream;
use pages::PageState;
use requests::RequestState;
use stepped::SteppedState;
use stream::StreamState;

/// State of the application of a flow.
#[derive(Clone, Debug)]
pub(crate) enum AppState {
    /// Files, and endless data.
    Files,
    /// Messages and pings; nothing more is sent after the end.
    Messages {
        /// Whether the flow has stopped.
        stopped: bool,
    },
    /// Requests and answers.
    Requests(RequestState),
    /// Files and endless data whose applications read or write in steps.
    Stepped(Box<SteppedState>),
    /// Segments for a player.
    Stream(StreamState),
    /// A connection of a browser.
    Page(Box<PageState>),
}

impl AppState {
    /// State of flow `flow`, which has the index `in_class` in its class. With `stepped` random
    /// numbers, applications read or write in steps.
    pub fn new(
        traffic: &FlowTraffic,
        flow: usize,
        in_class: usize,
        stepped: Option<RandomStream>,
    ) -> Self {
        if let Some(draws) = stepped {
            return Self::Stepped(Box::new(SteppedState::new(draws)));
        }
        let first = flow - in_class % traffic.sources_per_user();
        match traffic {
            FlowTraffic::Files(_) => Self::Files,
            FlowTraffic::Messages(_) | FlowTraffic::Ping(_) => Self::Messages { stopped: false },
            FlowTraffic::Requests(_) => Self::Requests(RequestState::new(first)),
            FlowTraffic::Page(_) => Self::Page(Box::new(PageState::new(first))),
            FlowTraffic::Stream(_) => Self::Stream(StreamState::default()),
        }
    }

    /// Stops the application.
    pub fn stop(&mut self) {
        match self {
            Self::Files => (),
            Self::Messages { stopped } => *stopped = true,
            Self::Requests(requests) => requests.stop(),
            Self::Stepped(stepped) => stepped.stop(),
            Self::Stream(stream) => stream.stop(),
            Self::Page(page) => page.stop(),
        }
    }
}

impl FlowSimulation {
    /// An end has received the bytes for which its application waits.
    #[inline(never)]
    pub(super) fn on_received(&mut self, flow: usize, end: usize) {
        match &self.flows[flow].app {
            AppState::Requests(_) => self.on_request_or_answer(flow, end),
            AppState::Stream(_) => self.on_segment_or_request(flow, end),
            AppState::Page(_) => self.on_page_data(flow, end),
            AppState::Stepped(_) => self.on_data_for_stepped(flow, end),
            AppState::Files | AppState::Messages { .. } => (),
        }
    }

    /// The send buffer of an end has space again.
    #[inline(never)]
    pub(super) fn on_writable(&mut self, flow: usize, end: usize) {
        match &self.flows[flow].app {
            AppState::Page(_) => self.write_answers(flow),
            _ => self.on_writable_for_stepped(flow, end),
        }
    }

    /// The timer of the application of an end expired.
    #[inline(never)]
    pub(super) fn on_application_timer(&mut self, flow: usize, end: usize) {
        match &self.flows[flow].app {
            AppState::Requests(_) => self.on_request_timer(flow, end),
            AppState::Stream(_) => self.on_stream_timer(flow, end),
            AppState::Page(_) => self.on_page_timer(flow, end),
            AppState::Stepped(_) => self.on_stepped_timer(flow, end),
            AppState::Messages { stopped: false } => self.send_message(flow, end),
            AppState::Files | AppState::Messages { stopped: true } => (),
        }
    }
}
