//! Profiles in the format of pprof: a protocol buffer. Source: https://github.com/google/pprof,
//! `proto/profile.proto`; encoding: https://protobuf.dev/programming-guides/encoding.

use std::collections::HashMap;

use crate::profile::Profile;

/// Wire type for a number.
const NUMBER: u64 = 0;
/// Wire type for bytes with a length.
const BYTES: u64 = 2;

/// Bytes of a message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// Appends a field with a number.
    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | NUMBER);
        self.varint(value);
    }

    /// Appends a field with bytes: a text or another message.
    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Appends a field with several numbers.
    fn numbers(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut packed = Self::default();
        for value in values {
            packed.varint(value);
        }
        self.bytes(field, &packed.0);
    }
}

/// The texts of a profile, each stored once. The first one is empty.
struct Texts {
    all: Vec<String>,
    places: HashMap<String, u64>,
}

impl Texts {
    fn put(&mut self, text: &str) -> u64 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// Returns a profile in the format of pprof, without compression. Each call stack is a sample with its time in
/// nanoseconds. The task is the outermost function of a stack.
pub fn pprof(profile: &Profile) -> Vec<u8> {
    let mut texts = Texts {
        all: vec![String::new()],
        places: HashMap::from([(String::new(), 0)]),
    };
    let mut out = Message::default();
    let mut kind = Message::default();
    kind.number(1, texts.put("time"));
    kind.number(2, texts.put("nanoseconds"));
    out.bytes(1, &kind.0);
    let functions = profile.functions.len();
    // Numbers of functions and locations start at 1.
    let id = |node: usize| {
        let what = profile.nodes[node].what as usize;
        (if profile.is_root(node) {
            functions + what
        } else {
            what
        }) as u64
            + 1
    };
    for (at, node) in profile.nodes.iter().enumerate() {
        if node.own > 0 {
            let mut sample = Message::default();
            sample.numbers(1, profile.up(at).map(id));
            sample.numbers(2, [node.own]);
            out.bytes(2, &sample.0);
        }
    }
    let names = profile
        .functions
        .iter()
        .map(|one| (one.name.as_str(), one.module.as_deref()));
    let tasks = profile.tasks.iter().map(|task| (task.as_str(), None));
    for (number, (name, module)) in (1..).zip(names.chain(tasks)) {
        let mut line = Message::default();
        line.number(1, number);
        let mut location = Message::default();
        location.number(1, number);
        location.bytes(4, &line.0);
        out.bytes(4, &location.0);
        let mut function = Message::default();
        function.number(1, number);
        function.number(2, texts.put(name));
        function.number(4, texts.put(module.unwrap_or_default()));
        out.bytes(5, &function.0);
    }
    for text in &texts.all {
        out.bytes(6, text.as_bytes());
    }
    out.number(10, profile.elapsed);
    out.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::sample;

    /// Parses the fields of a message. Returns each field's number, its bytes, and its value if it is a number.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>, u64)> {
        let mut all = Vec::new();
        let varint = |bytes: &mut &[u8]| {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        };
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            if key & 7 == BYTES {
                let (own, rest) = bytes.split_at(usize::try_from(value).unwrap());
                all.push((key >> 3, own.to_vec(), 0));
                bytes = rest;
            } else {
                all.push((key >> 3, Vec::new(), value));
            }
        }
        all
    }

    #[test]
    fn every_stack_is_a_sample_with_its_functions_innermost_first() {
        let bytes = pprof(&sample());
        let all = fields(&bytes);
        let texts: Vec<String> = all
            .iter()
            .filter(|(field, ..)| *field == 6)
            .map(|(_, text, _)| String::from_utf8(text.clone()).unwrap())
            .collect();
        let name = |number: u8| {
            let own = all
                .iter()
                .filter(|(field, ..)| *field == 5)
                .map(|(_, one, _)| fields(one));
            let found = own
                .into_iter()
                .find(|one| one[0].2 == u64::from(number))
                .unwrap();
            texts[usize::try_from(found[1].2).unwrap()].clone()
        };
        let samples: Vec<(Vec<String>, Vec<u8>)> = all
            .iter()
            .filter(|(field, ..)| *field == 2)
            .map(|(_, sample, _)| fields(sample))
            .map(|sample| {
                (
                    sample[0].1.iter().map(|at| name(*at)).collect(),
                    sample[1].1.clone(),
                )
            })
            .collect();
        let stack = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let expected = [
            (stack(&["user code", "workload"]), vec![5]),
            (stack(&["zram_write", "user code", "workload"]), vec![7]),
        ];
        assert_eq!(samples, expected);
        assert_eq!(texts[0], "");
    }
}
