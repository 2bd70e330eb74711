//! Campaigns of variants without any relevant difference.

use crate::tool::{Row, Tool, causes, rows};

/// Differences without effect: an argument that nothing reads, or a setting with its default value.
const HARMLESS: [&str; 4] = [
    "boot=pagetide.unread=1",
    "kernel.pid_max=32768",
    "vm.stat_interval=1",
    "vm.page_lock_unfairness=5",
];

/// The scenarios of the campaigns with their options, one cell each.
const CELLS: [&[&str]; 6] = [
    &[
        "linear",
        "-p",
        "pages=20M",
        "-p",
        "refs=6000",
        "--swap",
        "zram",
    ],
    &[
        "random",
        "-p",
        "pages=22M",
        "-p",
        "refs=6000",
        "--swap",
        "ssd:80us",
    ],
    &[
        "smooth-sin-random",
        "-p",
        "pages=24M",
        "-p",
        "refs=6000",
        "--swap",
        "zram",
    ],
    &[
        "scan-with-hot-core",
        "-p",
        "pages=24M",
        "-p",
        "refs=8000",
        "--swap",
        "ssd:80us",
    ],
    &[
        "swapbench",
        "-p",
        "locked=4M",
        "-p",
        "processes=4",
        "-p",
        "size=4M",
        "--swap",
        "zram",
    ],
    &[
        "filecopy",
        "-p",
        "methods=rw-cp",
        "-p",
        "size=24M",
        "-p",
        "victim=6M",
        "-p",
        "verify=false",
    ],
];

/// Number of seeds of each campaign.
const SEEDS: u32 = 8;

/// Maximum share of campaigns with a false claim about a primary metric: 5 %, plus 3 percentage points for chance.
const PRIMARY: f64 = 0.08;
/// Maximum share of campaigns with a false improvement or regression in any row.
const ANY: f64 = 0.10;

/// Runs the campaigns; returns true if all ran, the error rates are within the limits, and no difference was explained.
pub fn run(tool: &Tool, campaigns: u32) -> bool {
    let [mut ran, mut primary, mut any, mut reasons] = [0_u32; 4];
    for number in 0..campaigns {
        let cell = CELLS[number as usize % CELLS.len()];
        // Each cell is combined with each of these differences in turn.
        let other = HARMLESS[(number as usize / CELLS.len() + number as usize) % HARMLESS.len()];
        let first = (1 + number * SEEDS).to_string();
        let seeds = SEEDS.to_string();
        let vs = format!("name=harmless,{other}");
        let mut words = cell.to_vec();
        words.extend(["--memory", "16M", "--swap-size", "64M", "--vs", &vs]);
        words.extend(["--first-seed", &first, "--seeds", &seeds]);
        let name = format!("harmless-{number}");
        // Only sure differences are explained, so observed passes are not needed otherwise.
        let timed = [&words[..], &["--observe=none"]].concat();
        let Some(comparison) = tool.run(&name, &timed) else {
            continue;
        };
        ran += 1;
        let rows = rows(&comparison);
        let claims: Vec<&Row> = rows.iter().filter(|row| row.claims()).collect();
        let mut found = Vec::new();
        if !claims.is_empty() {
            let observed = [&words[..], &["--observe=3"]].concat();
            let again = format!("{name}-observed");
            if tool.run(&again, &observed).is_some() {
                found = causes(&tool.explain(&[&again]));
            }
        }
        primary += u32::from(claims.iter().any(|row| row.primary));
        any += u32::from(!claims.is_empty());
        reasons += u32::from(!found.is_empty());
        let claims: Vec<String> = claims
            .iter()
            .map(|row| format!("{} {} {:.4}", row.name, row.verdict, row.estimate))
            .collect();
        let all = rows
            .iter()
            .filter(|row| row.verdict == "equivalent")
            .count();
        println!(
            "{name} {} {other}: {} rows, {all} equivalent; false: {claims:?} {found:?}",
            cell[0],
            rows.len()
        );
    }
    let share = |count: u32| f64::from(count) / f64::from(ran.max(1));
    println!(
        "{ran} campaigns of harmless variants: {primary} with a false claim among primary metrics ({:.1} %, bound {:.0} %), \
         {any} with any false improvement or regression ({:.1} %, bound {:.0} %), {reasons} with a false cause",
        100.0 * share(primary),
        100.0 * PRIMARY,
        100.0 * share(any),
        100.0 * ANY,
    );
    ran == campaigns && share(primary) <= PRIMARY && share(any) <= ANY && reasons == 0
}
