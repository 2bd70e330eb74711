//! Spaces of addresses: the same address in two of them is two pages.

use std::collections::HashMap;

use super::sink::{MOST_SPACES, Refusal};

/// Longest name of a space.
const LONGEST_NAME_BYTES: usize = 256;

/// Numbers of spaces by their names: volumes of a block trace, address spaces of a memory trace.
#[derive(Default)]
pub(super) struct Spaces {
    numbers: HashMap<Vec<u8>, u64>,
    /// The name asked for last, which is most often the next one too.
    last: (Vec<u8>, u64),
}

impl Spaces {
    /// The number of this space, from 0 in order of first use.
    pub fn number(&mut self, name: &[u8]) -> Result<u64, Refusal> {
        if name == self.last.0 && !self.numbers.is_empty() {
            return Ok(self.last.1);
        }
        let next = self.numbers.len();
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if next >= MOST_SPACES => return Err("one of the first 4,096 volumes".into()),
            None if name.len() > LONGEST_NAME_BYTES => {
                return Err("volume with a name of at most 256 bytes".into());
            }
            None => {
                self.numbers.insert(name.to_owned(), next as u64);
                next as u64
            }
        };
        self.last = (name.to_owned(), number);
        Ok(number)
    }
}
