//! A queue of any discipline, selected at run time. The selection costs one branch per call, but
//! avoids a copy of the caller's code per discipline.

/// Defines [`QueueConfig`](super::QueueConfig) and [`AnyQueue`](super::AnyQueue), with a variant
/// per discipline, from rows `Variant(parameters) -> queue { expression that creates it }`.
/// The first line names the other arguments of these expressions.
macro_rules! define_any_queue {
    (($limits:ident, $draws:ident) $(
        $(#[$doc:meta])*
        $kind:ident $(($config:ident: $Config:ty))? -> $Queue:ty { $create:expr }
    )*) => {
        /// A queue discipline with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum QueueConfig {
            $($(#[$doc])* $kind $(($Config))?,)*
        }

        /// A queue of any discipline.
        #[derive(Clone, Debug)]
        pub enum AnyQueue<T = u32> {
            $($(#[$doc])* $kind($Queue),)*
        }

        impl<T: Copy> AnyQueue<T> {
            /// Creates an empty queue. `draws` is used for early drops and for ties of queues.
            #[must_use]
            pub fn new(config: QueueConfig, $limits: BufferLimits, $draws: RandomStream) -> Self {
                match config {
                    $(QueueConfig::$kind $(($config))? => Self::$kind($create),)*
                }
            }
        }

        impl<T: Copy> QueueDiscipline<T> for AnyQueue<T> {
            #[inline]
            fn enqueue(
                &mut self,
                now: Nanos,
                packet: Packet<T>,
                probe: &mut impl QueueProbe<T>,
            ) -> EnqueueOutcome {
                match self { $(Self::$kind(queue) => queue.enqueue(now, packet, probe),)* }
            }

            #[inline]
            fn dequeue(&mut self, now: Nanos, probe: &mut impl QueueProbe<T>) -> Option<Packet<T>> {
                match self { $(Self::$kind(queue) => queue.dequeue(now, probe),)* }
            }

            #[inline]
            fn next_release(&self) -> Nanos {
                match self { $(Self::$kind(queue) => queue.next_release(),)* }
            }

            fn occupancy(&self) -> &BufferOccupancy {
                match self { $(Self::$kind(queue) => queue.occupancy(),)* }
            }

            fn deadline(&self) -> Nanos {
                match self { $(Self::$kind(queue) => queue.deadline(),)* }
            }

            fn on_deadline(&mut self, now: Nanos) {
                match self { $(Self::$kind(queue) => queue.on_deadline(now),)* }
            }

            fn reset_when_empty(&mut self, now: Nanos) {
                match self { $(Self::$kind(queue) => queue.reset_when_empty(now),)* }
            }
        }
    };
}
pub(super) use define_any_queue;
