//! A lower bound for the number of write-backs.

use std::io;

use crate::policy::{Choice, Ledger};
use crate::string::ReferenceString;
use crate::writes::Writes;

/// Returns a lower bound for the number of write-backs of any policy with memory of `size` pages.
///
/// Between two writes to a page, the page either stays in memory or is written back. The same is true between its last
/// write and the end. At each write, memory can hold `size` − 1 other pages. So the number of intervals in which pages
/// stay is at most the number of hits of OPT on the writes alone, plus the number of pages that OPT can hold at the
/// end. Reads also need memory, but are ignored here. So it is possible that no policy reaches this bound.
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
