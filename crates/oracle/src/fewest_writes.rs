//! The lower bound of write-backs.

use std::io;

use crate::policy::{Choice, Ledger};
use crate::string::ReferenceString;
use crate::writes::Writes;

/// Returns a lower bound of the write-backs of any policy with memory of `size` pages.
///
/// Between two writes to a page, the page stays in memory or there is a write-back. The same holds from its last write
/// to the end. At each write, memory can hold `size` − 1 pages in addition to the written page. So the largest number
/// of intervals in which pages stay is the number of hits of OPT on the writes alone, plus the pages that OPT can hold
/// at the end. Reads need memory as well, but are ignored. So this is a lower bound that is not always reached.
pub(crate) fn fewest_write_backs(
    string: &ReferenceString,
    writes: &Writes,
    size: u32,
) -> io::Result<u64> {
    let all = Writes::alike(true);
    let mut policy = Choice::opt().start(string.pages(), size);
    let mut ledger = Ledger::new(&all, string.pages());
    let mut time = 0;
    let mut written = Vec::new();
    string.each(0, string.references(), |references| {
        written.clear();
        for &page in references {
            if writes.is(time) {
                written.push(page);
            }
            time += 1;
        }
        policy.feed_counting(&written, &mut ledger);
    })?;
    Ok(ledger.finish(&mut *policy))
}
