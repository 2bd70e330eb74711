//! Kernel stacks in a trace, and the names of their functions.

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use super::access::FieldAccess;
use super::container::{Function, TraceFile};
use super::event_name::SLEEP_STACK;
use super::format::{EventFormat, FieldShape};
use crate::ProbeError;

/// Position of the stack entries in a stack event (`struct stack_entry`, kernel/trace/trace_entries.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackAccess {
    count: FieldAccess,
    entries: usize,
}

/// Maximum length of a function in bytes. An address further from a function's start belongs to other code.
const LONGEST: u64 = 1 << 20;
/// Marker that the kernel uses for the end of a stack.
const END: u64 = u64::MAX;

impl StackAccess {
    /// Creates an accessor for the stack event; `None` if its format is not known.
    pub fn new(format: &EventFormat) -> Option<Self> {
        let callers = format.field("caller")?;
        let long = matches!(callers.shape, FieldShape::Array(count) if count * 8 == callers.size);
        long.then(|| {
            Some(Self {
                count: FieldAccess::first_of(format, &["size"])?,
                entries: callers.offset,
            })
        })?
    }

    /// Returns the entries of the stack, innermost function first. If the data contains fewer entries than the event
    /// states, only these are returned. `None` if it ends before the entries.
    pub fn get(self, data: &[u8]) -> Option<impl Iterator<Item = u64> + Clone> {
        let count = usize::try_from(self.count.get_signed(data)?).unwrap_or(0);
        let (entries, _) = data.get(self.entries..)?.as_chunks::<8>();
        Some(
            entries
                .iter()
                .take(count)
                .map(|entry| u64::from_le_bytes(*entry))
                .take_while(|address| *address != END),
        )
    }
}

impl TraceFile {
    /// Adds the names of the functions in the stacks of this trace. `kallsyms` has the format of `/proc/kallsyms` and
    /// must come from the kernel that recorded the trace. An address outside of all functions gets no name.
    pub fn name_functions(&mut self, kallsyms: impl BufRead) -> Result<(), ProbeError> {
        let addresses = self.stack_addresses()?;
        if addresses.is_empty() {
            return Ok(());
        }
        let functions = functions(kallsyms)
            .map_err(|error| ProbeError::io("read", "the kernel's list of functions", error))?;
        self.meta.functions = addresses
            .into_iter()
            .filter_map(|address| {
                // A return address is after the call instruction, so within the calling function or at its very end.
                let at = functions.partition_point(|(start, _)| *start < address);
                let (start, name) = functions.get(at.checked_sub(1)?)?;
                (address - start <= LONGEST).then(|| Function {
                    address,
                    name: name.clone(),
                })
            })
            .collect();
        Ok(())
    }

    /// Returns the distinct addresses in all stacks of the trace.
    fn stack_addresses(&self) -> Result<BTreeSet<u64>, ProbeError> {
        let formats = self.formats()?;
        let stack = formats.iter().find(|format| {
            (format.system.as_str(), format.name.as_str()) == (SLEEP_STACK.system, SLEEP_STACK.name)
        });
        let Some((id, access)) = stack.and_then(|stack| Some((stack.id, StackAccess::new(stack)?)))
        else {
            return Ok(BTreeSet::new());
        };
        Ok(self
            .events()
            .filter(|event| event.id == id)
            .filter_map(|event| access.get(event.data))
            .flatten()
            .collect())
    }
}

/// Returns start address and name of functions, from lines `address type name [module]`. Ignores other lines, data
/// symbols and hidden addresses.
fn functions(kallsyms: impl BufRead) -> io::Result<Vec<(u64, String)>> {
    let mut functions = Vec::new();
    for line in kallsyms.split(b'\n') {
        let line = line?;
        let mut words = str::from_utf8(&line)
            .unwrap_or_default()
            .split_ascii_whitespace();
        let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        match u64::from_str_radix(address, 16) {
            Ok(address) if address > 0 => functions.push((address, name.to_owned())),
            _ => {}
        }
    }
    // If an address has several names, the first is used.
    functions.sort_by_key(|(address, _)| *address);
    functions.dedup_by_key(|(address, _)| *address);
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: kernel_stack
ID: 4
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:int size;	offset:8;	size:4;	signed:1;
	field:unsigned long caller[8];	offset:16;	size:64;	signed:0;

print fmt: \"\"
";

    fn entries(count: i32, addresses: &[u64], cut: usize) -> Option<Vec<u64>> {
        let access = StackAccess::new(&EventFormat::parse("ftrace", FORMAT).unwrap()).unwrap();
        let mut data = vec![4, 0, 0, 0, 7, 0, 0, 0];
        data.extend(count.to_le_bytes());
        data.extend([0; 4]);
        data.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
        data.truncate(data.len() - cut);
        access.get(&data).map(Iterator::collect)
    }

    #[test]
    fn a_stack_has_as_many_entries_as_it_says_and_as_are_there() {
        assert_eq!(entries(2, &[10, 20], 0), Some(vec![10, 20]));
        // The stack is longer than the eight entries of its format, as real stacks are.
        let long: Vec<u64> = (1..=40).collect();
        assert_eq!(entries(40, &long, 0), Some(long));
        assert_eq!(entries(0, &[10], 0), Some(vec![]));
        assert_eq!(entries(-1, &[10], 0), Some(vec![]));
        assert_eq!(entries(i32::MAX, &[10, 20], 0), Some(vec![10, 20]));
        // The data ends within an entry, and before the first entry.
        assert_eq!(entries(2, &[10, 20], 3), Some(vec![10]));
        assert_eq!(entries(2, &[], 0), Some(vec![]));
        assert_eq!(entries(2, &[], 5), None);
        assert_eq!(entries(3, &[10, u64::MAX, 20], 0), Some(vec![10]));
    }

    #[test]
    fn an_event_of_another_form_is_no_stack() {
        let other = FORMAT.replace("caller[8]", "caller");
        assert!(StackAccess::new(&EventFormat::parse("ftrace", &other).unwrap()).is_none());
        let narrow = FORMAT.replace("size:64", "size:32");
        assert!(StackAccess::new(&EventFormat::parse("ftrace", &narrow).unwrap()).is_none());
    }

    #[test]
    fn functions_are_named_by_what_begins_before_and_hidden_addresses_by_nothing() {
        let list = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T _text\n\
                    ffffffff81000100 t helper.isra.0\nffffffff81000180 d data\nnonsense\n\
                    ffffffffc0000000 t zram_read\t[zram]\n";
        let found = functions(list.as_bytes()).unwrap();
        let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["_stext", "helper.isra.0", "zram_read"]);
        let hidden = "0000000000000000 T _stext\n";
        assert!(functions(hidden.as_bytes()).unwrap().is_empty());
    }
}
