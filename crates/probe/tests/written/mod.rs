//! Synthetic traces in the format that kernels write, built event by event.

#![allow(dead_code, reason = "not every program of tests needs everything")]

use std::collections::BTreeMap;
use std::fmt::Write;

use pagetide_probe::meaning::{ReclaimTable, RowId, Value};
use pagetide_probe::trace::{CpuBuffer, StoredFormat, TraceFile, TraceMeta};
use pagetide_quantity::Nanos;

/// The fields of an event, each with its name and its size in bytes.
pub type Fields = &'static [(&'static str, usize)];

/// Builds a trace as a kernel with these events would write it.
#[derive(Default)]
pub struct Kernel {
    formats: Vec<StoredFormat>,
    ids: BTreeMap<&'static str, (u16, Fields)>,
    events: Vec<(u64, Vec<u8>)>,
}

impl Kernel {
    pub fn with(mut self, system: &str, names: &[&'static str], fields: Fields) -> Self {
        for &name in names {
            let id = u16::try_from(300 + self.ids.len()).expect("few events");
            let mut text = format!(
                "name: {name}\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
            );
            let mut offset = 8;
            for (field, size) in fields {
                writeln!(
                    text,
                    "\tfield:t {field};\toffset:{offset};\tsize:{size};\tsigned:0;"
                )
                .expect("a string takes everything");
                offset += 8;
            }
            text += "\nprint fmt: \"\"\n";
            self.formats.push(StoredFormat {
                system: system.into(),
                name: name.into(),
                text,
            });
            self.ids.insert(name, (id, fields));
        }
        self
    }

    /// Adds one event. `values` are in the order of the event's fields.
    pub fn event(mut self, time: u64, pid: u32, name: &str, values: &[u64]) -> Self {
        let (id, fields) = self.ids[name];
        assert_eq!(fields.len(), values.len(), "{name}");
        let mut data = id.to_le_bytes().to_vec();
        data.extend([0; 2]);
        data.extend(pid.to_le_bytes());
        for value in values {
            data.extend(value.to_le_bytes());
        }
        self.events.push((time, data));
        self
    }

    pub fn trace(self, meta: TraceMeta) -> TraceFile {
        let mut bytes = Vec::new();
        for (time, data) in self.events {
            // One page for each event: header, then a length word and the data.
            bytes.extend(time.to_le_bytes());
            bytes.extend((data.len() as u64 + 8).to_le_bytes());
            bytes.extend(0_u32.to_le_bytes());
            bytes.extend((u32::try_from(data.len()).expect("small") + 4).to_le_bytes());
            bytes.extend(data);
        }
        TraceFile {
            meta: TraceMeta {
                formats: self.formats,
                ..meta
            },
            cpus: vec![CpuBuffer { cpu: 0, bytes }],
        }
    }
}

pub const DIRECT_BEGIN: &str = "mm_vmscan_direct_reclaim_begin";
pub const DIRECT_END: &str = "mm_vmscan_direct_reclaim_end";
pub const MEMCG_BEGIN: &str = "mm_vmscan_memcg_reclaim_begin";
pub const MEMCG_END: &str = "mm_vmscan_memcg_reclaim_end";
pub const ISOLATE: &str = "mm_vmscan_lru_isolate";
pub const SHRINK: &str = "mm_vmscan_lru_shrink_inactive";
pub const WRITE: &str = "mm_vmscan_write_folio";
pub const WAKE: &str = "mm_vmscan_kswapd_wake";
pub const SLEEP: &str = "mm_vmscan_kswapd_sleep";
pub const BIO: &str = "block_bio_queue";
pub const KSWAPD: u32 = 40;
/// Device number of the swap device.
pub const SWAP: u64 = 0x0080_0010;
/// The string "W" as the bytes of the field `rwbs`.
pub const WRITES: u64 = 0x57;

pub fn kernel_6_1() -> Kernel {
    Kernel::default()
        .with(
            "vmscan",
            &[DIRECT_BEGIN, MEMCG_BEGIN],
            &[("order", 4), ("gfp_flags", 8)],
        )
        .with("vmscan", &[DIRECT_END, MEMCG_END], &[("nr_reclaimed", 8)])
        .with(
            "vmscan",
            &[ISOLATE],
            &[
                ("highest_zoneidx", 4),
                ("order", 4),
                ("nr_requested", 8),
                ("nr_scanned", 8),
                ("nr_skipped", 8),
                ("nr_taken", 8),
                ("isolate_mode", 4),
                ("lru", 4),
            ],
        )
        .with(
            "vmscan",
            &[SHRINK],
            &[("nid", 4), ("nr_scanned", 8), ("nr_reclaimed", 8)],
        )
        .with("vmscan", &[WRITE], &[("pfn", 8), ("reclaim_flags", 4)])
        .with("vmscan", &[WAKE], &[("nid", 4), ("zid", 4), ("order", 4)])
        .with("vmscan", &[SLEEP], &[("nid", 4)])
}

pub fn meta(lru_gen: Option<u64>) -> TraceMeta {
    TraceMeta {
        lru_gen,
        tasks: vec![(KSWAPD, "kswapd0".into()), (7, "touch".into())],
        begin: Nanos(0),
        end: Nanos(10_000),
        ..TraceMeta::default()
    }
}

pub fn value(table: &ReclaimTable, id: RowId) -> &Value {
    &table.row(id).expect("every row is there").value
}
