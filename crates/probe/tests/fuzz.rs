//! Fuzzes stored traces, their descriptions with the kernel's formats, and ring buffers.

use std::io::Read;

use pagetide_probe::meaning::analyse;
use pagetide_probe::trace::TraceFile;
use pagetide_testing::fuzz::fuzz;

/// Number of bytes of the golden trace in an input: enough for a thousand events.
const PART: usize = 48 << 10;

fn golden() -> TraceFile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reclaim-6.18.trace");
    let mut trace = TraceFile::read(std::fs::File::open(path).unwrap()).unwrap();
    for cpu in &mut trace.cpus {
        cpu.bytes.truncate(PART);
    }
    trace
}

/// Runs every analysis on a trace.
fn understand(trace: &TraceFile) -> Result<(), String> {
    analyse(trace, None, None)
        .map(drop)
        .map_err(|why| why.to_string())
}

/// The uncompressed bytes of a stored trace.
fn unpacked(trace: &TraceFile) -> Vec<u8> {
    let mut packed = Vec::new();
    trace.write(&mut packed).unwrap();
    let mut plain = Vec::new();
    zstd::Decoder::new(packed.as_slice())
        .unwrap()
        .read_to_end(&mut plain)
        .unwrap();
    plain
}

#[test]
fn stored_traces() {
    let mut packed = Vec::new();
    golden().write(&mut packed).unwrap();
    let corpus = [packed.clone(), packed[..packed.len() / 2].to_vec()];
    fuzz("trace, packed", &corpus, |bytes| {
        let trace = TraceFile::read(bytes).map_err(|why| why.to_string())?;
        understand(&trace)
    });
    // Most changes to compressed data only break the compression, so they are made before compressing.
    let corpus = [unpacked(&golden()), unpacked(&TraceFile::default())];
    fuzz("trace", &corpus, |bytes| {
        let packed = zstd::encode_all(bytes, 1).unwrap();
        let trace = TraceFile::read(packed.as_slice()).map_err(|why| why.to_string())?;
        understand(&trace)
    });
}

#[test]
fn ring_buffers() {
    let mut trace = golden();
    let corpus: Vec<Vec<u8>> = trace.cpus.iter().map(|cpu| cpu.bytes.clone()).collect();
    let (_, refused) = fuzz("ring buffer", &corpus, |bytes| {
        trace.cpus[0].bytes = bytes.to_vec();
        understand(&trace)
    });
    assert_eq!(refused, 0, "what a buffer lacks is a loss, not an error");
}

#[test]
fn formats_of_events() {
    let trace = golden();
    let corpus: Vec<Vec<u8>> = trace
        .meta
        .formats
        .iter()
        .map(|format| format.text.clone().into_bytes())
        .collect();
    let mut number = 0;
    fuzz("format", &corpus, |bytes| {
        let mut trace = trace.clone();
        let formats = &mut trace.meta.formats;
        number = (number + 1) % formats.len();
        formats[number].text = String::from_utf8_lossy(bytes).into_owned();
        understand(&trace)
    });
}
