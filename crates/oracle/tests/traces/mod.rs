//! Writes traces in the formats of other tools, following the descriptions that the readers cite.

use std::fmt::Write;

/// Magic number in the first and in the last 8 bytes of an lcs header.
pub const LCS_MAGIC: u64 = 0x1234_5678_9abc_def0;
/// First line that the sample memtrace_simple of DynamoRIO prints.
pub const SIMPLE: &str = "Format: <data address>: <data size>, <(r)ead/(w)rite/opcode>\n";
/// First line that the sample memtrace_x86 of DynamoRIO prints.
pub const X86: &str = "Format: <instr address>,<(r)ead/(w)rite>,<data size>,<data address>\n";

/// A request to a block device.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Number of the first block, in blocks of 512 bytes.
    pub block: u64,
    pub bytes: u32,
    pub write: bool,
}

/// An access of a program to memory, as traces record it.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub address: u64,
    pub bytes: u64,
    pub write: bool,
}

pub fn text(ids: &[u64]) -> Vec<u8> {
    let mut text = String::new();
    for id in ids {
        let _ = writeln!(text, "{id}");
    }
    text.into_bytes()
}

/// Returns a table with the columns of libCacheSim's sample `cloudPhysicsIO.csv`, with or without a header.
pub fn csv(ids: &[u64], header: bool) -> Vec<u8> {
    let mut text = String::from(if header {
        "version,time,op,size,lbn\n"
    } else {
        ""
    });
    for (time, id) in ids.iter().enumerate() {
        let _ = writeln!(text, "1,{},2a,512,{id}", 5_633_898 + time);
    }
    text.into_bytes()
}

pub fn oracle_general(ids: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (time, id) in (0_u32..).zip(ids) {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(512_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
    }
    bytes
}

pub fn lcs_header(version: u64, requests: u64) -> Vec<u8> {
    let mut header = vec![0; 8192];
    header[..8].copy_from_slice(&LCS_MAGIC.to_le_bytes());
    header[8..16].copy_from_slice(&version.to_le_bytes());
    // These are the statistics of the trace: their version, then the number of requests.
    header[16] = 1;
    header[24..32].copy_from_slice(&requests.to_le_bytes());
    header[8184..].copy_from_slice(&LCS_MAGIC.to_le_bytes());
    header
}

pub fn lcs(ids: &[u64], version: u64) -> Vec<u8> {
    let mut bytes = lcs_header(version, ids.len() as u64);
    for (time, id) in (0_u32..).zip(ids) {
        bytes.extend(time.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        match version {
            1 => bytes.extend(512_u32.to_le_bytes()),
            2 => {
                bytes.extend(512_u32.to_le_bytes());
                bytes.extend([1, 7, 0, 0]);
            }
            _ => {
                bytes.extend(512_i64.to_le_bytes());
                bytes.extend([1, 7, 0, 0]);
                bytes.extend(60_u32.to_le_bytes());
            }
        }
        bytes.extend((-1_i64).to_le_bytes());
        let features = match version {
            4.. => 1 << (version - 4),
            _ => 0,
        };
        bytes.extend(std::iter::repeat_n(9_u32.to_le_bytes(), features).flatten());
    }
    bytes
}

pub fn twitter(ids: &[u64]) -> Vec<u8> {
    let mut text = String::new();
    for (time, id) in ids.iter().enumerate() {
        let operation = if id % 2 == 0 { "get" } else { "set" };
        let _ = writeln!(
            text,
            "{},nz:u:e,eW{id:x},22,{},3,{operation},0",
            time / 9,
            id % 99
        );
    }
    text.into_bytes()
}

pub fn vscsi(requests: &[Request], version: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, request) in (0_u32..).zip(requests) {
        let command = [if request.write { 0x2a } else { 0x28 }, 0, 0, version];
        let sizes = [number, request.bytes, 1].map(u32::to_le_bytes).concat();
        if version == 1 {
            bytes.extend(sizes);
            bytes.extend(command);
        } else {
            bytes.extend(command);
            bytes.extend(sizes);
        }
        bytes.extend(request.block.to_le_bytes());
        bytes.extend((5_633_898_368_802 + u64::from(number)).to_le_bytes());
        if version == 2 {
            bytes.extend(300_u64.to_le_bytes());
        }
    }
    bytes
}

pub fn msr(requests: &[Request]) -> Vec<u8> {
    let mut text = String::new();
    for (number, request) in requests.iter().enumerate() {
        let (kind, offset) = (
            if request.write { "Write" } else { "Read" },
            request.block * 512,
        );
        let time = 128_166_372_003_061_629 + number;
        let _ = writeln!(text, "{time},hm,0,{kind},{offset},{},413", request.bytes);
    }
    text.into_bytes()
}

pub fn lackey(accesses: &[Access]) -> Vec<u8> {
    let mut text = String::from("==7== Lackey, an example Valgrind tool\n");
    for access in accesses {
        let kind = if access.write { 'S' } else { 'L' };
        let _ = writeln!(text, " {kind} {:08x},{}", access.address, access.bytes);
    }
    text.into_bytes()
}

/// Returns the output of DynamoRIO's view tool for these accesses. Between them are markers, a prefetch and the bytes
/// of a long instruction.
pub fn view(accesses: &[Access]) -> Vec<u8> {
    let mut text = String::from(
        "Output format:\n<--record#-> <--instr#->: <Wrkld.Tid> <record details>\n\
         ------------------------------------------------------------\n\
         \x20          1           0: W0.T3256418 <marker: version 6>\n",
    );
    for (number, access) in accesses.iter().enumerate() {
        let kind = if access.write { "write" } else { "read" };
        let _ = writeln!(
            text,
            "{:12}{number:12}: W0.T3256418 {kind:12}{:2} byte(s) @ 0x{:016x} by PC 0x00007fc205a61943",
            number + 2,
            access.bytes,
            access.address
        );
        if number == 3 {
            text += "           9           2: W0.T3256418 pref-r-L1    1 byte(s) @ 0x00007fff00000000 by PC 0x00007fc205a61943\n\
                     \x20          9           2: W0.T3256418                                             00 00 00\n\
                     \x20          9           2: W0.T3256418 <thread W0.T3256418 exited>\n";
        }
    }
    text += "View tool results:\n              8 : total instructions\n";
    text.into_bytes()
}

pub fn memtrace(accesses: &[Access], x86: bool) -> Vec<u8> {
    let mut text = String::from(if x86 { X86 } else { SIMPLE });
    for access in accesses {
        let kind = if access.write { 'w' } else { 'r' };
        let Access { address, bytes, .. } = access;
        let _ = if x86 {
            writeln!(text, "0x00007fc205a61943,{kind},{bytes},0x{address:016x}")
        } else {
            writeln!(text, "0x{address:016x}: {bytes:2}, {kind}")
        };
    }
    text.into_bytes()
}

/// Returns the output of `perf script -F comm,tid,time,event,addr` for these accesses.
pub fn perf(accesses: &[Access]) -> Vec<u8> {
    let mut text =
        String::from("# ========\n# captured on    : Sat Nov 28 02:42:33 2026\n# ========\n#\n");
    for (number, access) in accesses.iter().enumerate() {
        let _ = writeln!(
            text,
            "             a b  3924  1137.{number:06}: page-faults:     {:x}",
            access.address
        );
    }
    text.into_bytes()
}
