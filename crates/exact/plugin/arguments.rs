//! Arguments of the plugin, and the file of functions.

use alloc::vec::Vec;
use core::ffi::CStr;

use crate::format::MAGIC;
use crate::span::Span;

/// Value of the argument `name=value`; `None` if it is not given.
pub fn argument<'a>(arguments: &[&'a CStr], name: &str) -> Option<&'a CStr> {
    arguments.iter().find_map(|argument| {
        let bytes = argument.to_bytes_with_nul();
        let value = bytes.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        CStr::from_bytes_with_nul(value).ok()
    })
}

/// Parses a decimal number.
pub fn decimal(text: &CStr) -> Option<u64> {
    text.to_str().ok()?.parse().ok()
}

/// Parses decimal numbers with a plus sign between them. `None` if the text has another form.
pub fn numbers(text: &CStr) -> Option<Vec<u64>> {
    let numbers = text.to_str().ok()?.split('+');
    numbers.map(|number| number.parse().ok()).collect()
}

/// Content of the file of functions.
pub struct Functions {
    pub spans: Vec<Span>,
    /// Number of functions.
    pub count: usize,
    /// Lowest number of a function of a program.
    pub programs: u32,
    pub watched: Vec<u64>,
}

/// Parses the file of functions. `None` if the file is damaged.
pub fn read_functions(bytes: &[u8]) -> Option<Functions> {
    let number = |at: usize| {
        let bytes = bytes.get(8 * at..8 * at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    (number(0)? == MAGIC).then_some(())?;
    let functions = number(1)? as usize;
    let mut spans = Vec::new();
    let ranges = number(2)? as usize;
    for at in 0..ranges {
        let span = Span::new(number(5 + 2 * at)?, number(6 + 2 * at)?);
        if span.function as usize >= functions {
            return None;
        }
        spans.push(span);
    }
    let watched = (0..number(4)? as usize).map(|at| number(5 + 2 * ranges + at));
    Some(Functions {
        spans,
        count: functions,
        programs: number(3)? as u32,
        watched: watched.collect::<Option<_>>()?,
    })
}
