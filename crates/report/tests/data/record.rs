//! A record with all kinds of content, and the pages that were present at the end of its trial.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Direction, Metric, Nanos, Unit, Value};
use pagetide_record::{
    ArenaKind, ArenaSpec, Counters, Halts, KernelId, Machine, Maker, MemorySpec, Pass, Record,
    Results, Subject, SwapSpec, Variant, Wall, Warning,
};

use super::{Draw, latencies};

/// The machine of the tests.
pub fn machine() -> Machine {
    Machine {
        cpu: "AMD EPYC 7763".to_owned(),
        cpus: 2,
        memory: Bytes(8 << 30),
        kernel: "6.1.0-50-amd64".to_owned(),
        system: "Debian GNU/Linux 12".to_owned(),
    }
}

/// A valid record with all kinds of content.
pub fn record() -> Record {
    let metric = |name: &str, unit, direction, primary, value| Metric {
        name: name.to_owned(),
        unit,
        direction,
        primary,
        value,
    };
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    Record {
        schema: 1,
        subject: Subject {
            cpus: pagetide_record::CpusSpec::default(),
            nodes: pagetide_record::NodesSpec::default(),
            scenario: "smooth-sin-random".to_owned(),
            as_written: false,
            params: BTreeMap::from([pair("range", "32768"), pair("refs", "2000000")]),
            seed: 3,
            variant: Variant {
                name: "mglru-on".to_owned(),
                kernel: KernelId {
                    source: "debian:bookworm".to_owned(),
                    release: "6.12.117-cloud-amd64".to_owned(),
                    version: "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-10-01)".to_owned(),
                    build_id: Some("4cf7a1b2c3d4e5f60718293a4b5c6d7e8f901234".to_owned()),
                    digest: "9f86d081884c7d659a2feaa0c55ad015".to_owned(),
                },
                boot: vec!["transparent_hugepage=never".to_owned()],
                settings: BTreeMap::from([pair("lru_gen/enabled", "7")]),
            },
            arena: ArenaSpec {
                kind: ArenaKind::Exact,
                emulator: "QEMU 7.2.22".to_owned(),
                machine: "pc-q35-7.2".to_owned(),
                cpu: "Skylake-Server,-erms,-fsrm".to_owned(),
                cmdline: "quiet panic=-1 nokaslr norandmaps transparent_hugepage=never".to_owned(),
                guest: "a1b2c3".to_owned(),
                swap: String::new(),
            },
            memory: MemorySpec::Free(Bytes::from_mib(64)),
            swap: SwapSpec::ZRAM,
            limit: None,
            swap_size: Bytes::from_mib(192),
            files_on: pagetide_record::FilesSpec::default(),
            trace_ring: pagetide_record::TraceRing::default(),
            pass: Pass::Timed,
        },
        maker: Maker {
            version: "0.1.0".to_owned(),
            command: "pagetide run smooth-sin-random --kernel debian:bookworm --seeds 3".to_owned(),
        },
        results: Results {
            warnings: vec![Warning::NotOnThisKernel {
                feature: "MADV_COLLAPSE".to_owned(),
            }],
            settings: BTreeMap::from([
                pair("lru_gen/enabled", "0x0007"),
                pair("vm.page-cluster", "3"),
                pair("vm.swappiness", "60"),
            ]),
            facts: BTreeMap::from([
                pair("free-at-start", "67108864"),
                pair("release", "6.12.117-cloud-amd64"),
            ]),
            metrics: vec![
                metric("swap-outs", Unit::Pages, Direction::Lower, false, Value::Number(71_002.0)),
                metric("access-mean", Unit::Nanos, Direction::Lower, true, Value::Number(21_703.4)),
                metric("swap-ins", Unit::Pages, Direction::Lower, true, Value::Number(55_590.0)),
                metric("hit-share", Unit::Share, Direction::Higher, false, Value::Number(0.9713)),
                metric(
                    "collapse-mean",
                    Unit::Nanos,
                    Direction::Lower,
                    false,
                    Value::Absent("not on this kernel".to_owned()),
                ),
            ],
            counters: BTreeMap::from([(
                "vmstat".to_owned(),
                Counters {
                    values: BTreeMap::from([
                        ("pswpin".to_owned(), [12, 55_602]),
                        ("pswpout".to_owned(), [0, 71_002]),
                    ]),
                },
            )]),
            histograms: BTreeMap::from([(
                "access".to_owned(),
                latencies(41.0, 80_000.0, 0.03, 400_000, 5),
            )]),
            elapsed: Nanos(6_812_345_678),
            halts: Some(Halts {
                idle_calls: Some([7, 7]),
                idle_ticks: [0, 0],
            }),
            kernel_log: "[    1.203] zram0: detected capacity change from 0 to 393216\n[    1.310] Adding 196604k swap on /dev/zram0".to_owned(),
            ..Results::default()
        },
        kernel_config: BTreeMap::new(),
        wall: Wall {
            started: Nanos(1_795_207_180_000_000_000),
            to_first_instruction: Nanos::from_millis(112),
            scenario: Nanos(9_120_000_000),
            to_stored: Nanos::from_millis(23),
            total: Nanos(9_255_000_000),
            side_by_side: 2,
            campaign: "quick".to_owned(),
            machine: machine(),
            ..Wall::default()
        },
        digest: "3b1f0c9d8e7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c".to_owned(),
        sections: Vec::new(),
    }
}

/// Presence of pages after a smooth-sin run: most pages at the peaks of the sine are present, and none at its troughs.
pub fn present() -> Vec<bool> {
    let mut draw = Draw(13);
    (0..25_000)
        .map(|i| {
            let wave = (3.0 * std::f64::consts::PI * f64::from(i) / 25_000.0).sin();
            draw.spread() < wave - 0.1
        })
        .collect()
}
