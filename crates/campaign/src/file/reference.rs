//! Defines the keys of a campaign file, for the parser and for the generated reference: `docs/campaigns.md` and the
//! manual page `pagetide-campaign`.

use std::fmt::Write;

/// A key that a table of a campaign file may have.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Form of the value, for the reference.
    pub value: &'static str,
    /// Meaning and default of the key, for the reference.
    pub meaning: &'static str,
}

/// A table of a campaign file, with the keys that it may have.
#[derive(Clone, Copy, Debug)]
pub struct TableKeys {
    /// Header of the table, as in messages.
    pub place: &'static str,
    /// Purpose of the table, for the reference.
    pub meaning: &'static str,
    /// Keys of the table, in the order of the reference.
    pub keys: &'static [Key],
}

impl TableKeys {
    /// True if the table has this key.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Returns the names of the table's keys.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().map(|key| key.name)
    }
}

macro_rules! keys {
    ($($name:literal = $value:literal: $meaning:literal;)*) => {
        &[$(Key { name: $name, value: $value, meaning: $meaning }),*]
    };
}

/// Keys above all tables.
pub const TOP: TableKeys = TableKeys {
    place: "the file",
    meaning: "What a scenario may say as well holds here for those that do not.",
    keys: keys! {
        "name" = "\"…\"": "Name of the campaign in the store: letters, digits, hyphens, underscores. Must be there.";
        "arena" = "\"exact\"": "Kind of arena in which the trials run: exact, or host (the running kernel). Without it: exact.";
        "seed" = "number": "Seed of the order in which trials run. Without it: 1.";
        "kernel" = "\"debian:bookworm/6.12\"": "Kernel of the variants that name none; see `pagetide list kernels`.";
        "source" = "\"debian:6.12\"": "Source of kernels that are built: Debian's, or a git tree as ~/linux or ~/linux@REV. Without it, where a variant has a patch: debian:6.12.";
        "config" = "\"FILE\"": "Kernel options merged over pagetide's own, for kernels that are built; beside this file, or from where pagetide runs.";
        "memory" = "\"64M\", or a list": "Memory that is free at a trial's start; \"total:160M\" leaves the kernel's footprint in. A list makes a matrix. Without it: what the scenario says.";
        "limit" = "\"32M\", or a list": "Limit of a memory group around the whole workload (memory.max). Sizes that depend on memory then depend on it. Without it: no group, and in the arena host: memory.";
        "scale" = "0.25": "The file gives memory and swap-size at the size of an original, and this share of them is used, in whole mebibytes; --scale puts another in its place. Without it: they are used as they stand.";
        "swap" = "\"zram\", or a list": "Kind of swap: zram, zram:COMPRESSOR, ssd, ssd:LATENCY, disk, disk:SEEK,RATE, zswap:COMPRESSOR:POOL+DISK, several devices with sizes and priorities such as zram:8M@100,ssd@10, or none. Without it: zram.";
        "swap-size" = "\"256M\"": "Size of the swap device. Without it: three times the memory.";
        "nodes" = "\"64M,256M:slow\"": "Memory nodes with the free memory of each; :slow is a slow one without a processor. The memory is their sum. Without it: one node.";
        "cpus" = "4": "CPUs of the machine, 1 to 8; \"4:10us\" states the length of their turns, and a list makes cells. Without it: 1.";
        "files-on" = "\"disk:8ms,20MB/s\"": "What files lie on, where a scenario has some or for a program: ssd, null (a disk that takes no time), disk or disk:SEEK,RATE. Without it: ssd.";
        "fs" = "\"xfs\"": "File system, where a scenario has files or for a program: ext4, xfs, btrfs or tmpfs. Without it: ext4.";
        "observe" = "number, \"first\", \"all\" or \"none\"": "How many seeds run a second time, traced, so that differences can be explained. Without it: three, and none with a single variant.";
        "profile" = "number, \"first\", \"all\" or \"none\"": "How many seeds run once more with their instructions counted by function. Without it: none.";
        "references" = "true": "Profiled trials also record references to pages; see docs/references.md. Without profile, the first seed is profiled.";
        "trace-ring" = "\"4M\"": "Ring buffer of observed trials, a power of two from 8K to 4M: a smaller one loses events. Without it: 4M.";
        "accept" = "\"huge-pages\", or a list": "What may differ between variants although nobody asks for it: kinds of difference, or names of settings.";
        "primary" = "\"access-time\", or a list": "Metrics that decide. Without it: those of the scenario.";
        "margins" = "{ access-time = 0.02 }": "Differences up to this share count as equivalent, by metric. Without it: those of the metric.";
        "sampling" = "table": "How many trials: see [sampling].";
        "variant" = "tables": "What is compared: see [[variant]].";
        "scenario" = "tables": "Under which workloads: see [[scenario]].";
        "program" = "tables": "Programs of your own as workloads: see [[program]].";
        "workload" = "table": "A workload that the file describes itself; see docs/workload.md. Without [[scenario]] it is the only one, and without [[variant]] it runs on the file's kernel.";
    },
};

/// Keys of `[sampling]`.
pub const SAMPLING: TableKeys = TableKeys {
    place: "[sampling]",
    meaning: "How many trials. A block is one trial of each variant in each cell, with one seed.",
    keys: keys! {
        "seeds" = "number": "Blocks. Without it: eight, or as many as the primary metrics need.";
        "until" = "\"sure\"": "Run until every primary metric is decided; not beside seeds.";
        "cap" = "number": "With until: the most blocks. Without it: 40.";
        "looks" = "number, or [10, 20, 40]": "With until: how often, or after which blocks, it is looked whether all is decided. Without it: planned from the number of metrics.";
        "first-seed" = "number": "Seed of the first block. Without it: 1.";
        "repetitions" = "number": "Trials of each variant, cell and seed; more than one makes sense where results have noise. Without it: 1.";
    },
};

/// Keys of `[[variant]]`.
pub const VARIANT: TableKeys = TableKeys {
    place: "[[variant]]",
    meaning: "One of the things compared; the first is the baseline.",
    keys: keys! {
        "name" = "\"…\"": "Its name: no colon, no comma. Must be there.";
        "kernel" = "\"debian:sid\"": "Its kernel. Without it: that of the file.";
        "source" = "\"debian:6.12\"": "Source of its kernel, where it is built. Without it: that of the file.";
        "config" = "\"FILE\"": "Kernel options of its own. Without it: those of the file.";
        "patch" = "\"FILE\", or a list": "Patches that are applied to the source, in order; beside this file, or from where pagetide runs.";
        "control" = "true": "Builds a nop in the patch's place: what moving code alone does.";
        "boot" = "\"ARGUMENT\", or a list": "Boot arguments.";
        "swap" = "\"zram\"": "Where it swaps to, as above all tables; the kinds of the variants are then compared. Without it: that of the file or the scenario.";
        "swap-size" = "\"256M\"": "Size of its swap device. Without it: that of the file or the scenario.";
        "settings" = "{ \"vm.swappiness\" = 10 }": "Settings, names in quotes: sysctls (vm.swappiness), lru_gen/…, thp/…, swap/…, zswap/…, and limits of a scenario's memory groups (group/NAME/low).";
    },
};

/// Keys of `[[scenario]]`.
pub const SCENARIO: TableKeys = TableKeys {
    place: "[[scenario]]",
    meaning: "A workload. What stands here goes before what stands above all tables.",
    keys: keys! {
        "name" = "\"…\"": "Its name; `pagetide list scenarios` has all. Must be there.";
        "as-written" = "true": "As the historical paper wrote it, with its faults.";
        "params" = "{ pages = \"2 * memory\" }": "Its parameters; a list of values makes a matrix.";
        "memory" = "\"64M\", or a list": "As above all tables.";
        "limit" = "\"32M\", or a list": "As above all tables.";
        "swap" = "\"zram\", or a list": "As above all tables.";
        "swap-size" = "\"256M\"": "As above all tables.";
        "nodes" = "\"64M,256M:slow\"": "As above all tables.";
        "cpus" = "4": "As above all tables.";
        "files-on" = "\"disk:8ms,20MB/s\"": "As above all tables.";
        "fs" = "\"xfs\"": "As above all tables.";
        "primary" = "\"access-time\", or a list": "As above all tables.";
        "margins" = "{ access-time = 0.02 }": "As above all tables.";
    },
};

/// Keys of `[[program]]`.
pub const PROGRAM_KEYS: TableKeys = TableKeys {
    place: "[[program]]",
    meaning: "A program of your own as a workload, unmodified. Paths of this machine are written PATH or PATH:INSIDE.",
    keys: keys! {
        "command" = "\"sort numbers\", or a list": "The command, quoted as for a shell, or its words. {seed} in it is the trial's seed. Must be there.";
        "server" = "\"redis-server --save ''\", or a list": "Server that is started first, likewise; the command is then its load, on loopback, and the result is the load's.";
        "ready" = "\"port 6379\"": "When the server is ready: port N, line REGEX or file PATH. Must be there beside server.";
        "root" = "\"deb:sqlite3/bookworm\"": "Folder, tar archive, saved image (oci:FILE), or Debian packages with all that it finds, its libraries too. Without it: its executable and libraries are taken from this machine.";
        "file" = "\"PATH\", or a list": "Files that it finds, with the libraries they need; beside this file, or from where pagetide runs.";
        "dir" = "\"PATH\", or a list": "Folders that it finds, with all that they hold.";
        "env" = "{ NAME = \"VALUE\" }": "Variables of its environment, beside PATH, HOME, USER, LANG and TZ.";
        "folder" = "\"/work\"": "Folder inside in which it starts. Without it: /work.";
        "input" = "\"PATH\"": "File of this machine that it reads as its standard input. Without it: nothing to read.";
        "space" = "\"64M\"": "Free space for what it writes. Without it: as much as its files take, at least 32M.";
        "expect-exit" = "number": "Status with which it must end. Without it: 0.";
        "time-limit" = "\"60s\"": "It is ended after so much time of the guest. Without it: 600s.";
        "takes" = "\"9s\"": "About how long a trial takes, for forecasts before its first alone: beside another, on an AMD EPYC of 2017. Scaled by the speed of this machine. Without it: 20s are assumed.";
        "limit" = "\"32M\"": "Limit of its memory group (memory.max). Without it and the next two: no group.";
        "high" = "\"24M\"": "Memory above which its group is slowed down and reclaimed (memory.high).";
        "swap-max" = "\"8M\"": "Most swap that its group may take (memory.swap.max).";
        "low" = "\"8M\"": "Memory of its group that is reclaimed only if nothing else is left (memory.low).";
        "min" = "\"8M\"": "Memory of its group that is never reclaimed (memory.min).";
        "beside" = "\"sort numbers\", or a list": "Second program that runs beside it in a memory group of its own; the trial ends when both have ended, and the time of each decides.";
        "beside-limit" = "\"32M\"": "Limit of the group of the program beside it (memory.max).";
        "beside-high" = "\"24M\"": "Memory above which that group is slowed down and reclaimed (memory.high).";
        "beside-low" = "\"8M\"": "Memory of that group that is reclaimed only if nothing else is left (memory.low).";
        "beside-min" = "\"8M\"": "Memory of that group that is never reclaimed (memory.min).";
        "beside-swap-max" = "\"8M\"": "Maximum swap of that group (memory.swap.max).";
        "metric" = "'ops=([0-9.]+) per second:higher', or a list": "Numbers to read from its output, which then decide. Without it: the elapsed time decides.";
        "memory" = "\"64M\", or a list": "As above all tables.";
        "swap" = "\"zram\", or a list": "As above all tables.";
        "swap-size" = "\"256M\"": "As above all tables.";
        "nodes" = "\"64M,256M:slow\"": "As above all tables.";
        "cpus" = "4": "As above all tables.";
        "files-on" = "\"disk:8ms,20MB/s\"": "As above all tables.";
        "fs" = "\"xfs\"": "As above all tables.";
        "margins" = "{ elapsed = 0.02 }": "As above all tables.";
    },
};

/// All tables, in the order in which a file has them.
pub const TABLES: [TableKeys; 5] = [TOP, SAMPLING, VARIANT, SCENARIO, PROGRAM_KEYS];

/// Returns the name of the table, other than `here`, that has this key; `None` if no other table has it.
pub fn place_of(key: &str, here: &str) -> Option<&'static str> {
    let mut tables = TABLES.iter().filter(|table| table.place != here);
    let table = tables.find(|table| table.has(key))?;
    Some(if table.place == TOP.place {
        "above all tables"
    } else {
        table.place
    })
}

/// Example of a whole campaign file.
const EXAMPLE: &str = include_str!("../../../../campaigns/quick.toml");

const SUMMARY: &str = "A campaign file says in TOML what is compared, under which workloads, and with how many trials. \
    `pagetide plan FILE` says what it would run and how long that takes, `pagetide run FILE` runs it, and goes on where it was \
    interrupted. Keys may be written with hyphens or underscores. Every mistake is told with its line.";

/// Returns the reference in Markdown: the content of `docs/campaigns.md`.
pub fn markdown() -> String {
    let mut text = format!(
        "<!-- Made by `cargo run -p pagetide-campaign --example reference`, not by hand. -->\n\n# Campaign files\n\n{SUMMARY}\n"
    );
    for table in &TABLES {
        let head = if table.place == TOP.place {
            "Above all tables".to_owned()
        } else {
            format!("`{}`", table.place)
        };
        let _ = write!(
            text,
            "\n## {head}\n\n{}\n\n| key | value | meaning |\n|---|---|---|\n",
            table.meaning
        );
        for key in table.keys {
            let _ = writeln!(
                text,
                "| `{}` | `{}` | {} |",
                key.name, key.value, key.meaning
            );
        }
    }
    let _ = write!(text, "\n## Example\n\n```toml\n{EXAMPLE}```\n");
    text
}

/// Returns the reference in roff: the manual page `pagetide-campaign`, section 5.
pub fn man() -> String {
    let mut text = format!(
        ".TH PAGETIDE\\-CAMPAIGN 5\n.SH NAME\npagetide\\-campaign \\- campaign files of pagetide\n.SH DESCRIPTION\n{}\n",
        roff(SUMMARY)
    );
    for table in &TABLES {
        let head = if table.place == TOP.place {
            "ABOVE ALL TABLES"
        } else {
            table.place
        };
        let _ = write!(text, ".SH {}\n{}\n", roff(head), roff(table.meaning));
        for key in table.keys {
            let _ = write!(
                text,
                ".TP\n\\fB{}\\fR = {}\n{}\n",
                roff(key.name),
                roff(key.value),
                roff(key.meaning)
            );
        }
    }
    let _ = write!(
        text,
        ".SH EXAMPLE\n.nf\n{}.fi\n.SH SEE ALSO\n.BR pagetide\\-run (1),\n.BR pagetide\\-plan (1),\n.BR pagetide\\-scenarios (7)\n",
        roff(EXAMPLE)
    );
    text
}

/// Converts text with Markdown code marks to roff, which has no markup for code.
fn roff(text: &str) -> String {
    pagetide_quantity::roff(&text.replace('`', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_reference_is_what_the_keys_give() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/campaigns.md");
        let committed = std::fs::read_to_string(path).unwrap();
        assert!(
            committed == markdown(),
            "docs/campaigns.md is stale: cargo run -p pagetide-campaign --example reference"
        );
    }

    #[test]
    fn a_page_of_the_manual_has_every_key_and_no_line_that_groff_would_take_for_a_request() {
        let page = man();
        for key in TABLES.iter().flat_map(|table| table.keys) {
            assert!(
                page.contains(&format!("\\fB{}\\fR", key.name.replace('-', "\\-"))),
                "{}",
                key.name
            );
        }
        let requests = [".TH", ".SH", ".TP", ".nf", ".fi", ".BR"];
        for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(
                requests.iter().any(|known| line.starts_with(known)),
                "{line}"
            );
        }
    }

    #[test]
    fn a_key_is_told_where_it_belongs() {
        assert_eq!(
            place_of("observe", SAMPLING.place),
            Some("above all tables")
        );
        assert_eq!(place_of("seeds", TOP.place), Some("[sampling]"));
        assert_eq!(place_of("patch", TOP.place), Some("[[variant]]"));
        assert_eq!(place_of("nonsense", TOP.place), None);
    }
}
