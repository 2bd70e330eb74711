//! `/proc/meminfo`: memory statistics of the whole machine.

use std::fs;

use pagetide_quantity::Bytes;

use crate::counters::{Counters, Syntax};

/// Path of the kernel's memory statistics.
pub const PATH: &str = "/proc/meminfo";

/// Returns the size in the line called `name`, such as `MemTotal`; `None` if there is no such line or no such file.
pub fn amount(name: &str) -> Option<Bytes> {
    let mut counters = Counters::new();
    counters.parse(&fs::read(PATH).ok()?, Syntax::KeyColonKib);
    counters.get(name).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_in_bytes_and_an_unknown_one_is_none() {
        assert!(amount("MemTotal").unwrap() > Bytes::from_mib(64));
        assert_eq!(amount("MemTot"), None);
    }
}
