//! Address spaces: the same address in two address spaces is two different pages.

use std::collections::HashMap;

use super::sink::{MAX_SPACES, Refusal};

/// Maximum length of an address space's name, in bytes.
const LONGEST_NAME_BYTES: usize = 256;

/// Assigns numbers to address spaces by name: volumes of a block trace, or processes of a memory trace.
#[derive(Default)]
pub(super) struct Spaces {
    numbers: HashMap<Vec<u8>, u64>,
    /// Name and number of the most recent request, kept because the next request is usually for the same name.
    last: (Vec<u8>, u64),
}

impl Spaces {
    /// Returns the number of the address space with this name. Numbers start at 0 and are assigned in order of first
    /// use. Fails if there are too many address spaces or the name is too long.
    pub fn number(&mut self, name: &[u8]) -> Result<u64, Refusal> {
        if name == self.last.0 && !self.numbers.is_empty() {
            return Ok(self.last.1);
        }
        let next = self.numbers.len();
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if next >= MAX_SPACES => return Err("one of the first 4,096 volumes".into()),
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
