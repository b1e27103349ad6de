//! Enums whose values have names.

/// Defines an enum, the list of all values, and their names in tables.
macro_rules! named_enum {
    ($(#[$meta:meta])* pub enum $Name:ident {
        $($(#[$doc:meta])* $Value:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        pub enum $Name {
            $($(#[$doc])* $Value,)+
        }

        impl $Name {
            /// All values, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// Name in tables.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }
        }
    };
}
pub(crate) use named_enum;
