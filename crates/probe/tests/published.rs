//! The table that was published with "Use compaction to reduce a dependency on lumpy reclaim" (Mel Gorman, linux-mm, 11
//! November 2010): a synthetic trace with the published counts and times gives each published ratio to the last digit.

use pagetide_probe::meaning::{CpuTimes, RowId, Value, analyse};
use pagetide_probe::trace::TraceMeta;
use pagetide_quantity::Nanos;
use pagetide_system::Delta;

use crate::written::{
    BIO, DIRECT_BEGIN, DIRECT_END, ISOLATE, KSWAPD, Kernel, SHRINK, SLEEP, SWAP, WAKE, WRITE,
    WRITES, kernel_6_1, meta, value,
};

const REQUEST: &str = "mm_vmscan_wakeup_kswapd";
const TASK: u32 = 7;
/// Flag of a written folio that is anonymous.
const ANON: u64 = 1;
const FILE: u64 = 2;
const SYNC: u64 = 4;
const ASYNC: u64 = 8;

/// Activity of direct reclaim or of kswapd, in pages except for `times` and `time`.
#[derive(Clone, Copy)]
struct Reclaim {
    /// Number of direct reclaims, or of wakeups of kswapd.
    times: u64,
    scanned: u64,
    reclaimed: u64,
    file_async: u64,
    anon_async: u64,
    file_sync: u64,
    anon_sync: u64,
    /// Time in direct reclaim, or time for which kswapd was awake.
    time: Nanos,
}

/// One column of the published table: counts, times, and the ratios computed from them.
struct Column {
    direct: Reclaim,
    requests: u64,
    kswapd: Reclaim,
    /// User time plus system time.
    cpu: Nanos,
    elapsed: Nanos,
    totals: [u64; 2],
    percents: [&'static str; 5],
}

const fn time(seconds: u64, hundredths: u64) -> Nanos {
    Nanos((seconds * 100 + hundredths) * 10_000_000)
}

const BEFORE: Column = Column {
    direct: Reclaim {
        times: 673,
        scanned: 60_521,
        reclaimed: 37_300,
        file_async: 1_459,
        anon_async: 7_989,
        file_sync: 0,
        anon_sync: 92,
        time: time(139, 75),
    },
    requests: 823,
    kswapd: Reclaim {
        times: 608,
        scanned: 4_509_407,
        reclaimed: 2_278_056,
        file_async: 58_446,
        anon_async: 696_616,
        file_sync: 0,
        anon_sync: 0,
        time: time(833, 3),
    },
    cpu: time(3356, 15),
    elapsed: time(2052, 7),
    totals: [4_569_928, 2_315_356],
    percents: ["50.67", "16.73", "1.31", "4.00", "40.59"],
};

const AFTER: Column = Column {
    direct: Reclaim {
        times: 468,
        scanned: 108_221,
        reclaimed: 67_114,
        file_async: 3_825,
        anon_async: 10_694,
        file_sync: 0,
        anon_sync: 53,
        time: time(128, 9),
    },
    requests: 11_681,
    kswapd: Reclaim {
        times: 558,
        scanned: 3_682_736,
        reclaimed: 2_176_076,
        file_async: 46_853,
        anon_async: 410_210,
        file_sync: 0,
        anon_sync: 0,
        time: time(669, 29),
    },
    cpu: time(3336, 46),
    elapsed: time(1853, 79),
    totals: [3_790_957, 2_243_190],
    percents: ["59.17", "12.44", "1.34", "3.70", "36.10"],
};

impl Column {
    /// A synthetic trace of a run with these counts and times.
    fn trace(&self) -> pagetide_probe::trace::TraceFile {
        let kernel = kernel_6_1()
            .with(
                "vmscan",
                &[REQUEST],
                &[("nid", 4), ("zid", 4), ("order", 4), ("gfp_flags", 8)],
            )
            .with(
                "block",
                &[BIO],
                &[("dev", 4), ("sector", 8), ("nr_sector", 4), ("rwbs[8]", 8)],
            );
        let (kernel, now) = reclaimed(kernel, TASK, self.direct, 0);
        let kernel = (0..self.requests).fold(kernel, |kernel, _| {
            kernel.event(now, TASK, REQUEST, &[0, 0, 0, 0])
        });
        let (kernel, _) = reclaimed(kernel, KSWAPD, self.kswapd, now);
        kernel.trace(TraceMeta {
            swap_devices: vec![SWAP],
            end: self.elapsed,
            ..meta(None)
        })
    }
}

/// Adds the events of one reclaimer from time `now` on, and returns the end time. All scans and writes belong to its
/// first run.
fn reclaimed(mut kernel: Kernel, pid: u32, all: Reclaim, mut now: u64) -> (Kernel, u64) {
    let (begin, end): (_, &[u64]) = if pid == KSWAPD {
        ((WAKE, vec![0, 0, 0]), &[0])
    } else {
        ((DIRECT_BEGIN, vec![0, 0]), &[0])
    };
    let last = if pid == KSWAPD { SLEEP } else { DIRECT_END };
    let each = all.time.0 / all.times;
    for time in 0..all.times {
        kernel = kernel.event(now, pid, begin.0, &begin.1);
        let mut takes = each;
        if time == 0 {
            takes += all.time.0 % all.times;
            kernel = worked(kernel, pid, all, now);
        }
        now += takes;
        kernel = kernel.event(now, pid, last, end);
    }
    (kernel, now)
}

/// Adds scans, writes and frees. Anonymous pages are written as one large folio in each mode, file pages one by one.
fn worked(mut kernel: Kernel, pid: u32, all: Reclaim, now: u64) -> Kernel {
    kernel = kernel.event(
        now,
        pid,
        ISOLATE,
        &[2, 0, 32, all.scanned, 0, all.scanned, 0, 0],
    );
    for (pages, kind) in [(all.anon_async, ANON | ASYNC), (all.anon_sync, ANON | SYNC)] {
        if pages > 0 {
            kernel = kernel
                .event(now, pid, BIO, &[SWAP, 0, pages * 8, WRITES])
                .event(now, pid, WRITE, &[512, kind]);
        }
    }
    for (pages, kind) in [(all.file_async, FILE | ASYNC), (all.file_sync, FILE | SYNC)] {
        for page in 0..pages {
            kernel = kernel.event(now, pid, WRITE, &[page, kind]);
        }
    }
    kernel.event(now, pid, SHRINK, &[0, all.scanned, all.reclaimed])
}

#[test]
fn every_ratio_of_the_published_table_follows_from_its_counts() {
    for column in [BEFORE, AFTER] {
        let cpu = CpuTimes {
            user: Nanos(column.cpu.0 / 3),
            system: Nanos(column.cpu.0 - column.cpu.0 / 3),
            elapsed: column.elapsed,
        };
        let table = analyse(&column.trace(), Some(&Delta::default()), Some(cpu))
            .expect("the formats are sound");
        let (direct, kswapd) = (column.direct, column.kswapd);
        for (id, count) in [
            (RowId::DirectReclaims, direct.times),
            (RowId::DirectScanned, direct.scanned),
            (RowId::DirectReclaimed, direct.reclaimed),
            (RowId::DirectWriteFileAsync, direct.file_async),
            (RowId::DirectWriteAnonAsync, direct.anon_async),
            (RowId::DirectWriteFileSync, direct.file_sync),
            (RowId::DirectWriteAnonSync, direct.anon_sync),
            (RowId::WakeKswapdRequests, column.requests),
            (RowId::KswapdWakeups, kswapd.times),
            (RowId::KswapdScanned, kswapd.scanned),
            (RowId::KswapdReclaimed, kswapd.reclaimed),
            (RowId::KswapdWriteFileAsync, kswapd.file_async),
            (RowId::KswapdWriteAnonAsync, kswapd.anon_async),
            (RowId::KswapdWriteFileSync, kswapd.file_sync),
            (RowId::KswapdWriteAnonSync, kswapd.anon_sync),
            (RowId::TotalScanned, column.totals[0]),
            (RowId::TotalReclaimed, column.totals[1]),
        ] {
            assert_eq!(value(&table, id), &Value::Count(count), "{id:?}");
        }
        for (id, time) in [
            (RowId::TimeStalled, direct.time),
            (RowId::TimeKswapdAwake, kswapd.time),
        ] {
            assert_eq!(value(&table, id), &Value::Time(time), "{id:?}");
        }
        let ratios = [
            RowId::ReclaimedOfScanned,
            RowId::WrittenOfScanned,
            RowId::FileWrittenOfScanned,
            RowId::TimeInDirectReclaim,
            RowId::TimeKswapdAwakeShare,
        ];
        for (id, published) in ratios.into_iter().zip(column.percents) {
            let Value::Percent(percent) = value(&table, id) else {
                panic!("{id:?}: {:?}", value(&table, id));
            };
            assert_eq!(format!("{percent:.2}"), published, "{id:?}");
        }
    }
}
