use super::*;
use crate::swap::SwapSpec;

fn tiers(text: &str) -> &'static SwapTiers {
    match text.parse().unwrap() {
        SwapSpec::Tiers(tiers) => tiers,
        other => panic!("{text} is the plain kind {other}"),
    }
}

fn why(text: &str) -> String {
    text.parse::<SwapSpec>().unwrap_err().to_string()
}

const MIB: u64 = 1 << 20;

#[test]
fn every_device_survives_its_text_form() {
    for text in [
        "zram:8M@100,ssd:80us@10",
        "zram:8M",
        "ssd:80us:32M,disk:8ms,40MB/s:64M@3",
        "zram:zstd:8M:limit=2M:recompress=deflate:writeback=ssd:80us@100",
        "zram:writeback=disk:8ms,40MB/s:64M",
        "zram:842:limit=4M,zram:lz4hc@7",
        "file+ssd:80us",
        "file:64M+disk:8ms,40MB/s@5",
        "zswap:shrinker+ssd:80us",
        "zswap:lz4:zbud:shrinker:no-writeback+ssd:80us",
        "zswap:no-writeback+ssd:80us@5,disk:8ms,20MB/s@1",
        "disk:8ms,40MB/s,disk:8ms,20MB/s",
        "zram@5,ssd:80us@5",
    ] {
        let swap: SwapSpec = text.parse().unwrap();
        assert!(matches!(swap, SwapSpec::Tiers(_)), "{text}");
        assert_eq!(swap.to_string(), text);
        assert_eq!(swap.to_string().parse::<SwapSpec>().unwrap(), swap);
        let json = serde_json::to_string(&swap).unwrap();
        assert_eq!(serde_json::from_str::<SwapSpec>(&json).unwrap(), swap);
    }
    assert_eq!(
        tiers("zram:8M@100,ssd@10").to_string(),
        "zram:8M@100,ssd:80us@10"
    );
    assert_eq!(tiers("ssd:32M:80us").to_string(), "ssd:80us:32M");
    // Equal values are one value in memory.
    assert!(std::ptr::eq(tiers("zram:8M"), tiers("zram:8192K")));
}

#[test]
fn what_a_plain_kind_says_stays_the_plain_kind() {
    for text in [
        "zram",
        "zram:zstd",
        "ssd:80us",
        "disk:8ms,40MB/s",
        "zswap+ssd:80us",
    ] {
        let swap: SwapSpec = text.parse().unwrap();
        assert!(!matches!(swap, SwapSpec::Tiers(_)), "{text}");
        let same = SwapSpec::of_tiers(&SwapTiers::parse(text).unwrap());
        assert_eq!(same, Some(swap));
    }
}

#[test]
fn what_is_wrong_is_named() {
    assert!(why("ssd@10@20").contains("two values for its priority"));
    assert!(why("zram:8M:16M").contains("two values for its size"));
    assert!(why("zram:lz4:zstd:8M").contains("two values for its compressor"));
    assert!(why("ssd@x").contains("from 0 to 32767") && why("ssd@40000").contains("`40000`"));
    for text in [
        "zram:8M:writeback",
        "zram:writeback=",
        "zram:8M:writeback=zram",
        "zram:writeback@3",
    ] {
        assert!(
            why(text).contains("the writeback of zram needs a disk"),
            "{text}: {}",
            why(text)
        );
    }
    assert!(why("file:64M+ssd:32M").contains("a swap file of 64M does not fit on a disk of 32M"));
    assert!(why("file:16M+ssd:32M").contains("as large as the file needs"));
    assert!(why("zswap+zram:8M@3").contains("compress pages twice"));
    assert!(why("zram:8M,tape").contains("`tape` is no kind of swap"));
    assert!(why("zram:100K").contains("at least 1M"));
    assert!(why("zram:limit=4Q").contains("4Q"));
    assert!(why("zram:recompress=ztsd").contains("did you mean `zstd`"));
    assert!(why("zswap:shrinker:ztsd+ssd").contains("did you mean `zstd`"));
    assert!(why(&["zram:1M"; 9].join(",")).contains("9 swap devices"));
    for text in [
        "@",
        "@5",
        "zram@",
        "zram:8M,",
        ",ssd",
        "zram:8M@1,,ssd",
        "=",
        "none@3",
        "file:",
        "zram:8M+ssd",
        "none,ssd",
    ] {
        assert!(text.parse::<SwapSpec>().is_err(), "{text}");
    }
}

#[test]
fn devices_without_a_size_share_what_the_others_leave() {
    let sizes = |text: &str, total: u64| {
        tiers(text)
            .sizes(Bytes(total * MIB))
            .map(|all| all.iter().map(|one| one.0 / MIB).collect::<Vec<_>>())
    };
    assert_eq!(sizes("zram:8M@100,ssd@10", 48), Ok(vec![8, 40]));
    assert_eq!(sizes("zram@100,ssd:16M@10,disk", 48), Ok(vec![16, 16, 16]));
    assert_eq!(sizes("zram:8M,ssd:16M", 24), Ok(vec![8, 16]));
    assert!(sizes("zram:8M,ssd:16M", 32).is_err() && sizes("zram:64M,ssd", 48).is_err());
    let total = |text: &str, asked: Option<u64>| {
        let swap: SwapSpec = text.parse().unwrap();
        swap.total(asked.map(|mib| Bytes(mib * MIB)), Bytes(48 * MIB))
            .map(|total| total.0 / MIB)
    };
    assert_eq!(total("zram:8M,ssd:16M", None), Ok(24));
    assert_eq!(total("zram:8M,ssd", None), Ok(48));
    assert_eq!(total("zram:8M,ssd", Some(20)), Ok(20));
    assert_eq!(total("zram", None), Ok(48));
    assert_eq!(total("none", Some(3)), Ok(0));
    let text = total("zram:64M@100,ssd@10", None).unwrap_err().to_string();
    assert!(
        text.contains("64M together")
            && text.contains("all swap has 48M")
            && text.contains("without a size: 1,"),
        "{text}"
    );
}

#[test]
fn tiers_are_ordered_as_the_kernel_fills_them() {
    let names = |text: &str| {
        let swap: SwapSpec = text.parse().unwrap();
        swap.tiers()
            .into_iter()
            .map(|tier| tier.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names("none"), [""; 0]);
    assert_eq!(names("zram"), ["zram"]);
    assert_eq!(names("zswap"), ["zswap", "ssd:80us"]);
    assert_eq!(names("ssd@10,zram:8M@100"), ["zram:8M@100", "ssd:80us@10"]);
    assert_eq!(names("ssd,zram@0"), ["zram@0", "ssd:80us"]);
    assert_eq!(names("disk,ssd"), ["disk:8ms,40MB/s", "ssd:80us"]);
    // Devices of one priority are one tier; without a priority they are not.
    assert_eq!(
        names("zram@5,ssd@5,file"),
        ["zram@5 and ssd:80us@5", "file+ssd:80us"]
    );
    assert_eq!(
        names("zram:8M:writeback=ssd"),
        ["zram:8M:writeback=ssd:80us", "writeback to ssd:80us"]
    );
    assert_eq!(tiers("ssd@3,zram@9,ssd@3").ranks(), [vec![1], vec![0, 2]]);
}

#[test]
fn every_disk_behind_swap_is_counted() {
    let swap: SwapSpec = "zram:8M:writeback=disk,file:16M+ssd,zram:4M"
        .parse()
        .unwrap();
    let disks: Vec<(String, u64)> = swap
        .disks(Bytes(28 * MIB))
        .into_iter()
        .map(|(disk, size)| (disk.to_string(), size.0 / MIB))
        .collect();
    assert_eq!(
        disks,
        [
            ("disk:8ms,40MB/s".to_owned(), 8),
            ("ssd:80us".to_owned(), 21)
        ]
    );
    assert_eq!((swap.rotating_disks(), swap.is_zram()), (1, false));
    assert!("zram:8M@1,zram@2".parse::<SwapSpec>().unwrap().is_zram());
    let plain: SwapSpec = "zswap".parse().unwrap();
    assert_eq!(
        plain.disks(Bytes(7)),
        [(SwapDisk::Ssd(SSD_LATENCY), Bytes(7))]
    );
}
