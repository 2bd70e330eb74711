//! The reclaim table on kernels with different events and fields.
//!
//! The formats are written with the field names of these kernels' print formats (include/trace/events/vmscan.h and
//! compaction.h of 6.1, 6.12 and 7.2). IDs and offsets are invented, because they differ with every boot.

use pagetide_probe::meaning::{CpuTimes, PairKind, ReclaimTable, Reclaimer, RowId, Value, analyse};
use pagetide_probe::trace::{Losses, TraceFile, TraceMeta};
use pagetide_quantity::Nanos;
use pagetide_system::Delta;

use crate::written::{
    BIO, DIRECT_BEGIN, DIRECT_END, ISOLATE, KSWAPD, Kernel, MEMCG_BEGIN, MEMCG_END, SHRINK, SLEEP,
    SWAP, WAKE, WRITE, WRITES, kernel_6_1, meta, value,
};

fn kernel_7_2() -> Kernel {
    Kernel::default()
        .with(
            "vmscan",
            &[DIRECT_BEGIN, MEMCG_BEGIN],
            &[("gfp_flags", 8), ("memcg_id", 8), ("order", 4)],
        )
        .with(
            "vmscan",
            &[DIRECT_END, MEMCG_END],
            &[("nr_reclaimed", 8), ("memcg_id", 8)],
        )
        .with(
            "vmscan",
            &[ISOLATE],
            &[
                ("lru", 4),
                ("nr_scanned", 8),
                ("nr_skipped", 8),
                ("nr_taken", 8),
            ],
        )
        .with(
            "vmscan",
            &[SHRINK],
            &[("nr_reclaimed", 8), ("nr_scanned", 8)],
        )
}

fn table(trace: &TraceFile, vmstat: &[(&str, i64)]) -> ReclaimTable {
    let delta: Delta = vmstat.iter().copied().collect();
    analyse(trace, Some(&delta), None).expect("the formats are sound")
}

/// A trace of direct reclaim on the classic lists. It swaps out a huge page, a single page and a page without traced
/// I/O.
fn huge(queued: bool) -> TraceFile {
    let kernel = kernel_6_1()
        .with(
            "block",
            &[BIO],
            &[("dev", 4), ("sector", 8), ("nr_sector", 4), ("rwbs[8]", 8)],
        )
        .event(100, 7, DIRECT_BEGIN, &[0, 0])
        // I/O for another folio, before this batch.
        .event(105, 7, BIO, &[SWAP, 0, 80, WRITES])
        .event(110, 7, ISOLATE, &[2, 0, 32, 1000, 0, 600, 0, 0]);
    let kernel = if queued {
        // The huge page is written in two bios; I/O of another device must not count.
        kernel
            .event(115, 7, BIO, &[SWAP, 0, 2048, WRITES])
            .event(116, 7, BIO, &[SWAP + 1, 0, 64, WRITES])
            .event(117, 7, BIO, &[SWAP, 2048, 2048, WRITES])
    } else {
        kernel
    };
    kernel
        .event(120, 7, WRITE, &[512, 1 | 8])
        .event(121, 7, BIO, &[SWAP, 8192, 8, WRITES])
        .event(122, 7, WRITE, &[5, 1 | 8])
        .event(123, 7, WRITE, &[6, 2 | 8])
        .event(130, 7, SHRINK, &[0, 1000, 514])
        .event(200, 7, DIRECT_END, &[514])
        .trace(TraceMeta {
            swap_devices: vec![SWAP],
            ..meta(None)
        })
}

#[test]
fn a_huge_page_that_is_written_counts_with_all_of_its_pages() {
    let table = table(&huge(true), &[("nr_vmscan_write", 514)]);
    for (id, wanted) in [
        (RowId::DirectWriteAnonAsync, Value::Count(513)),
        (RowId::DirectWriteFileAsync, Value::Count(1)),
        (RowId::AllWritten, Value::Count(514)),
        (RowId::AllFoliosWritten, Value::Count(3)),
        (RowId::WrittenOfScanned, Value::Percent(51.4)),
        (RowId::FileWrittenOfScanned, Value::Percent(0.1)),
    ] {
        assert_eq!(value(&table, id), &wanted, "{id:?}");
    }
    let check = table.row(RowId::AllWritten).unwrap().check.clone().unwrap();
    assert!(!check.disagrees, "{check:?}");
}

#[test]
fn where_the_trace_cannot_tell_how_large_folios_were_vmstat_does_and_the_rows_say_so() {
    let table = table(&huge(false), &[("nr_vmscan_write", 514)]);
    assert_eq!(value(&table, RowId::AllWritten), &Value::Count(514));
    assert_eq!(
        value(&table, RowId::WrittenOfScanned),
        &Value::Percent(51.4)
    );
    let note = |id| table.row(id).unwrap().note.clone().unwrap_or_default();
    for id in [RowId::AllWritten, RowId::WrittenOfScanned] {
        assert!(note(id).starts_with("from vmstat's nr_vmscan_write"));
    }
    assert!(note(RowId::DirectWriteAnonAsync).starts_with("at least"));
}

/// A trace of direct reclaim, kswapd and an active list, on the classic lists of 6.1.
fn classic() -> TraceFile {
    kernel_6_1()
        .event(100, 7, DIRECT_BEGIN, &[0, 0])
        .event(110, 7, ISOLATE, &[2, 0, 32, 40, 8, 32, 0, 0])
        // An active list: not a scan in the sense of the table.
        .event(115, 7, ISOLATE, &[2, 0, 32, 99, 0, 32, 0, 1])
        .event(120, 7, WRITE, &[5, 1 | 8])
        .event(121, 7, WRITE, &[6, 2 | 4])
        .event(130, 7, SHRINK, &[0, 40, 20])
        .event(200, 7, DIRECT_END, &[25])
        .event(1000, KSWAPD, WAKE, &[0, 0, 0])
        .event(1100, KSWAPD, ISOLATE, &[2, 0, 32, 60, 0, 32, 0, 2])
        .event(1200, KSWAPD, SHRINK, &[0, 60, 30])
        .event(1300, KSWAPD, WAKE, &[0, 0, 3])
        .event(3000, KSWAPD, SLEEP, &[0])
        .event(4000, 9, ISOLATE, &[2, 0, 32, 3, 0, 3, 0, 0])
        .trace(meta(None))
}

#[test]
fn the_classic_table_is_made_row_for_row() {
    let trace = classic();
    let delta: Delta = [
        ("allocstall_movable", 1_i64),
        ("pgscan_direct", 40),
        ("pgscan_kswapd", 60),
        ("pgsteal_direct", 20),
        ("pgsteal_kswapd", 31),
        ("pageoutrun", 2),
        ("pswpin", 4),
    ]
    .into_iter()
    .collect();
    let cpu = CpuTimes {
        user: Nanos(300),
        system: Nanos(600),
        elapsed: Nanos(20_000),
    };
    let table = analyse(&trace, Some(&delta), Some(cpu)).unwrap();
    let expected = [
        (RowId::DirectReclaims, Value::Count(1)),
        (RowId::DirectScanned, Value::Count(40)),
        (RowId::DirectReclaimed, Value::Count(20)),
        (RowId::DirectWriteAnonAsync, Value::Count(1)),
        (RowId::DirectWriteFileSync, Value::Count(1)),
        (RowId::DirectWriteFileAsync, Value::Count(0)),
        (RowId::KswapdWakeups, Value::Count(1)),
        (RowId::KswapdScanned, Value::Count(60)),
        (RowId::KswapdReclaimed, Value::Count(30)),
        (RowId::TimeStalled, Value::Time(Nanos(100))),
        (RowId::TimeKswapdAwake, Value::Time(Nanos(2000))),
        (RowId::TotalScanned, Value::Count(100)),
        (RowId::ReclaimedOfScanned, Value::Percent(50.0)),
        (RowId::WrittenOfScanned, Value::Percent(2.0)),
        (RowId::FileWrittenOfScanned, Value::Percent(1.0)),
        (RowId::TimeInDirectReclaim, Value::Percent(10.0)),
        (RowId::TimeKswapdAwakeShare, Value::Percent(10.0)),
        (RowId::UnknownScanned, Value::Count(3)),
        (RowId::SwapIns, Value::Count(4)),
    ];
    for (id, wanted) in expected {
        assert_eq!(value(&table, id), &wanted, "{id:?}");
    }
    let check = |id| table.row(id).unwrap().check.clone().unwrap();
    assert!(!check(RowId::DirectScanned).disagrees);
    assert!(!check(RowId::KswapdWakeups).disagrees);
    // 30 against 31 differs by more than one percent.
    assert!(check(RowId::KswapdReclaimed).disagrees);
    let wrong: Vec<_> = table.disagreements().map(|row| row.id).collect();
    assert_eq!(wrong, [RowId::KswapdReclaimed, RowId::TotalReclaimed]);
    assert_eq!(table.tasks[0].name, "touch");
}

#[test]
fn what_a_kernel_lacks_is_never_zero() {
    let mut trace = classic();
    trace.meta.absent = vec!["vmscan/mm_vmscan_reclaim_pages".into()];
    let table = table(&trace, &[("pswpin", 1)]);
    let why = |id| match value(&table, id) {
        Value::NotOnThisKernel(why) => why.clone(),
        other => panic!("{id:?}: {other:?}"),
    };
    assert!(why(RowId::OnRequestReclaimed).contains("mm_vmscan_reclaim_pages"));
    assert!(why(RowId::SwapReadAhead).contains("swap_ra"));
    // An event that was not requested is reported differently from one that does not exist.
    assert!(matches!(
        value(&table, RowId::PagesMigrated),
        Value::NotObserved(_)
    ));
    assert!(matches!(
        value(&table, RowId::TimeInDirectReclaim),
        Value::NotObserved(_)
    ));
}

#[test]
fn an_event_that_lost_a_field_is_not_on_this_kernel() {
    let mut trace = classic();
    for format in &mut trace.meta.formats {
        format.text = format.text.replace("nr_taken", "nr_grabbed");
    }
    match value(&table(&trace, &[]), RowId::DirectScanned) {
        Value::NotOnThisKernel(why) => assert!(why.contains("nr_taken"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lost_events_invalidate_every_traced_row_and_leave_vmstat_alone() {
    let mut trace = classic();
    trace.meta.losses = Losses {
        events: 7,
        ..Losses::default()
    };
    let table = table(&trace, &[("pswpin", 1)]);
    assert!(matches!(
        value(&table, RowId::DirectReclaims),
        Value::Invalid(_)
    ));
    assert_eq!(value(&table, RowId::SwapIns), &Value::Count(1));
}

#[test]
fn generations_before_6_8_tell_no_scans_but_what_each_reclaim_got() {
    let trace = kernel_6_1()
        .event(100, 7, DIRECT_BEGIN, &[0, 0])
        .event(200, 7, DIRECT_END, &[25])
        .event(1000, KSWAPD, WAKE, &[0, 0, 0])
        .event(3000, KSWAPD, SLEEP, &[0])
        .trace(meta(Some(7)));
    let table = table(&trace, &[("pgscan_anon", 90), ("pgscan_file", 10)]);
    for id in [
        RowId::DirectScanned,
        RowId::KswapdReclaimed,
        RowId::ReclaimedOfScanned,
    ] {
        assert!(
            matches!(value(&table, id), Value::NotOnThisKernel(_)),
            "{id:?}"
        );
    }
    assert_eq!(value(&table, RowId::DirectReclaimed), &Value::Count(25));
    assert!(table.row(RowId::DirectReclaimed).unwrap().note.is_some());
    assert_eq!(value(&table, RowId::TimeStalled), &Value::Time(Nanos(100)));
}

#[test]
fn generations_count_as_scanned_what_they_take() {
    let trace = kernel_7_2()
        .event(100, 7, DIRECT_BEGIN, &[0, 0, 0])
        .event(110, 7, ISOLATE, &[2, 64, 0, 50])
        .event(120, 7, SHRINK, &[40, 64])
        // The same batch is processed again: its pages could not be freed the first time.
        .event(125, 7, SHRINK, &[5, 64])
        .event(200, 7, DIRECT_END, &[45, 0])
        .trace(meta(Some(7)));
    let table = table(
        &trace,
        &[
            ("pgscan_direct", 50),
            ("pgscan_file", 50),
            ("pgsteal_direct", 45),
        ],
    );
    for (id, wanted) in [(RowId::DirectScanned, 50), (RowId::DirectReclaimed, 45)] {
        let row = table.row(id).unwrap();
        assert_eq!(row.value, Value::Count(wanted));
        assert!(!row.check.as_ref().unwrap().disagrees, "{row:?}");
    }
}

#[test]
fn a_kernel_that_counts_groups_as_direct_reclaim_is_recognised() {
    let trace = kernel_7_2()
        .event(100, 7, DIRECT_BEGIN, &[0, 0, 0])
        .event(110, 7, ISOLATE, &[0, 10, 0, 10])
        .event(200, 7, DIRECT_END, &[5, 0])
        .event(300, 7, MEMCG_BEGIN, &[0, 99, 0])
        .event(310, 7, ISOLATE, &[0, 30, 0, 30])
        .event(400, 7, MEMCG_END, &[8, 99])
        .trace(meta(None));
    // 7.x: the counter per reclaimer includes the group's 30; 6.x: it does not.
    for counted in [40, 10] {
        let table = table(&trace, &[("pgscan_direct", counted), ("pgscan_anon", 40)]);
        let row = table.row(RowId::DirectScanned).unwrap();
        assert_eq!(row.value, Value::Count(10));
        let check = row.check.as_ref().unwrap();
        assert!(!check.disagrees, "{check:?}");
        assert_eq!(check.reason.is_some(), counted == 40);
        assert_eq!(value(&table, RowId::MemcgScanned), &Value::Count(30));
        assert_eq!(table.memcgs[0].0, 99);
        assert_eq!(table.memcgs[0].1.stalled, Nanos(100));
    }
}

#[test]
fn pairs_without_partner_are_shown() {
    let trace = kernel_6_1()
        .event(50, 8, DIRECT_END, &[1])
        .event(100, 7, DIRECT_BEGIN, &[0, 0])
        .event(150, 7, MEMCG_BEGIN, &[0, 0])
        .event(170, 7, MEMCG_END, &[1])
        .trace(meta(None));
    let table = table(&trace, &[]);
    let direct = PairKind::Reclaim(Reclaimer::Direct);
    let row = table.pairs.iter().find(|row| row.kind == direct).unwrap();
    assert_eq!((row.unmatched_begins, row.unmatched_ends), (1, 1));
    assert_eq!(row.latency.count, 0);
}
