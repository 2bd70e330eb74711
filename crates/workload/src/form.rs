//! Text forms of single values: sizes, counts and times.

use pagetide_quantity::Nanos;

/// Implements serde for a type through its text form (`FromStr` and `Display`).
macro_rules! text_form {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use text_form;

/// Returns a time as exact text in the largest unit that divides it, such as `50ms`.
pub fn plain_time(time: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let found = units.iter().find(|(unit, _)| time.0.is_multiple_of(*unit));
    match found {
        _ if time.0 == 0 => "0s".to_owned(),
        Some((unit, name)) => format!("{}{name}", time.0 / unit),
        None => format!("{}ns", time.0),
    }
}

/// Serde functions for a time that is written as text, such as `50ms`.
pub(crate) mod time {
    use pagetide_quantity::Nanos;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature that serde calls"
    )]
    pub(crate) fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::plain_time(*time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Nanos, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(Error::custom)
    }
}
