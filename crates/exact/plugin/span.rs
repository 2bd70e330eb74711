//! Named ranges of addresses.

/// A range of addresses that belong to `function`: from `start` to the start of the next range.
pub struct Span {
    pub start: u64,
    pub function: u32,
    pub flags: u32,
}

impl Span {
    /// Unpacks a range from its form in a file: the function in the lower half of `what`, the flags in the upper half.
    pub const fn new(start: u64, what: u64) -> Self {
        Self {
            start,
            function: what as u32,
            flags: (what >> 32) as u32,
        }
    }

    /// Function of an address, and the flags of its range if the address is the start of this range. `None` if the
    /// address is before all ranges, which must be in the order of addresses.
    pub fn find(spans: &[Self], address: u64) -> Option<(u32, u32)> {
        Nearest::default().find(spans, address)
    }
}

/// The range that was found last. Most addresses are in the same range as the one before.
#[derive(Default)]
pub struct Nearest {
    /// Index of the range.
    at: usize,
}

impl Nearest {
    /// Same as [`Span::find`].
    pub fn find(&mut self, spans: &[Span], address: u64) -> Option<(u32, u32)> {
        let is_here = |at: usize| {
            let begins = spans.get(at).is_some_and(|span| span.start <= address);
            begins && spans.get(at + 1).is_none_or(|next| next.start > address)
        };
        if !is_here(self.at) {
            let after = spans.partition_point(|span| span.start <= address);
            self.at = after.checked_sub(1)?;
        }
        let span = spans.get(self.at)?;
        let flags = if span.start == address { span.flags } else { 0 };
        Some((span.function, flags))
    }
}
