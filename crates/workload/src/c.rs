//! Writes a workload as one C file without dependencies, which does the same on any Linux machine within a memory
//! limit.

use std::fmt::Write;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_reference::Pattern;

use crate::group::Group;
use crate::instances::{group_names, instances, started};
use crate::phase::{Access, Advice, Amount, By, Part, Phase};
use crate::process::Process;
use crate::segment::{Kind, PageSize, Segment};
use crate::size::Size;
use crate::workload::Workload;

/// The part of the C file that is the same for all workloads.
const RUNTIME: &str = include_str!("c/runtime.c");

/// Name of the cgroup for processes without a group, used if the workload has groups: the C file then puts every
/// process into a cgroup.
const UNGROUPED: &str = "ungrouped";

/// Description of a case's machine, for the comment at the top of a C file.
#[derive(Clone, Debug, Default)]
pub struct CaseMachine {
    /// Name of the case.
    pub name: String,
    /// Description of the failure that the case shows, as sentences.
    pub about: String,
    /// Memory available to the workload.
    pub memory: Bytes,
    /// Kind and size of swap, as text.
    pub swap: String,
    /// Device and file system of files, as text; empty if the workload has none.
    pub files: String,
    /// Settings of the kernel as name and value.
    pub settings: Vec<(String, String)>,
}

/// Returns the text of a C file that runs the workload. `compressed` returns, for the name of a content, the compressed
/// size of its pages as a fraction of their size.
pub fn c_file(
    workload: &Workload,
    machine: &CaseMachine,
    compressed: &dyn Fn(&str) -> f64,
) -> String {
    let names = workload.names();
    let writer = Writer {
        workload,
        names: &names,
        compressed,
    };
    let defines = format!(
        "/* Memory that sizes refer to, in bytes. */\n#ifndef MEMORY\n#define MEMORY {}UL\n#endif\n#define TIME_LIMIT {}UL\n\
         #define PROCESSES {}\n#define FORKED {}\n#define MARKS {}",
        machine.memory.0,
        workload.time_limit.0,
        instances(workload),
        // An array has at least one element.
        (started(workload) - instances(workload)).max(1),
        names.len(),
    );
    let body = RUNTIME
        .replace("@DEFINES@", &defines)
        .replace("@PROCESSES@", &writer.processes());
    format!("{}{body}", head(workload, machine))
}

/// Returns the comment at the top of the file: the failure that the case shows, and how to set up the machine.
fn head(workload: &Workload, machine: &CaseMachine) -> String {
    let mut text = format!("/*\n * {}", machine.name);
    let about = machine.about.trim();
    if !about.is_empty() {
        text.push_str("\n *");
        for line in about.lines() {
            let line = format!("\n * {}", line.replace("*/", "* /"));
            text.push_str(line.trim_end());
        }
    }
    let mut line = |words: &str| {
        let _ = write!(text, "\n * {}", words.replace("*/", "* /"));
    };
    line("");
    line("cc -O1 -Wall -Wextra -Werror -o case case.c");
    line("");
    line(&format!(
        "A machine with {} of free memory, swap on {}{}. On a larger machine, as root:",
        machine.memory, machine.swap, machine.files
    ));
    line("");
    line("  mkdir /sys/fs/cgroup/case");
    line("  echo +memory > /sys/fs/cgroup/cgroup.subtree_control");
    line(&format!(
        "  echo {} > /sys/fs/cgroup/case/memory.max",
        machine.memory.0
    ));
    for (name, value) in &machine.settings {
        line(&format!("  {}", setting(name, value)));
    }
    if workload.groups.is_empty() {
        line("  echo $$ > /sys/fs/cgroup/case/cgroup.procs; ./case");
    } else {
        // The protection of a cgroup is at most that of its parent.
        let of_group = |file: &str| {
            let mut groups = workload.groups.iter();
            groups.any(|group| group.sizes().iter().any(|(own, _)| *own == file))
        };
        for file in ["low", "min"].into_iter().filter(|file| of_group(file)) {
            line(&format!("  echo max > /sys/fs/cgroup/case/memory.{file}"));
        }
        line("  ./case --groups /sys/fs/cgroup/case");
        line("");
        line("It makes these groups itself; --no-groups runs it without:");
        for group in &workload.groups {
            let limits: Vec<String> = group
                .sizes()
                .into_iter()
                .map(|(file, size)| format!("memory.{file} = {}", size.limit_of(machine.memory).0))
                .collect();
            let each = if group.each {
                ", one for each process"
            } else {
                ""
            };
            line(&format!(
                "  {}{each}: {}",
                group.name,
                if limits.is_empty() {
                    "no limits".to_owned()
                } else {
                    limits.join(", ")
                }
            ));
        }
    }
    line("");
    line(
        "It prints its time, its accesses and what was killed. Files go to the folder given, or to the current one.",
    );
    text.push_str("\n */\n");
    // Lines of a comment do not end with a space.
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n"
}

/// Returns a shell command that applies a setting of the kernel.
fn setting(name: &str, value: &str) -> String {
    if let Some(rest) = name.strip_prefix("lru_gen/") {
        return format!("echo {value} > /sys/kernel/mm/lru_gen/{rest}");
    }
    if let Some(rest) = name.strip_prefix("thp/") {
        return format!("echo {value} > /sys/kernel/mm/transparent_hugepage/{rest}");
    }
    if let Some(rest) = name.strip_prefix("zswap/") {
        return format!("echo {value} > /sys/module/zswap/parameters/{rest}");
    }
    format!("sysctl {name}={value}")
}

struct Writer<'w> {
    workload: &'w Workload,
    names: &'w [&'w str],
    compressed: &'w dyn Fn(&str) -> f64,
}

/// Text of the C function of one kind of process.
struct Body<'p> {
    process: &'p Process,
    text: String,
    /// Number of C variables named so far. Nested loops need variables with different names.
    variables: u32,
}

impl Body<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "\t".repeat(depth));
    }

    fn variable(&mut self) -> String {
        self.variables += 1;
        format!("i{}", self.variables)
    }
}

impl Writer<'_> {
    /// Returns the C code of all functions and tables that depend on the workload.
    fn processes(&self) -> String {
        let mut text = String::new();
        let bits = self.workload.processes.iter().map(|process| {
            let of = process.marks().into_iter().chain([process.name.as_str()]);
            of.fold(0_u64, |bits, name| bits | 1 << self.mark(name))
        });
        let bits: Vec<String> = bits.map(|bits| format!("{bits:#x}UL")).collect();
        let _ = writeln!(
            text,
            "/* Bits of the marks of each kind of process. */\nstatic const uint64_t marks_of[] = {{ {} }};\n",
            bits.join(", ")
        );
        text.push_str(&self.prepare());
        for (index, process) in self.workload.processes.iter().enumerate() {
            text.push_str(&self.process(index, process));
        }
        text.push_str(&self.dispatch());
        text
    }

    fn mark(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| *known == name)
            .unwrap_or(0)
    }

    fn content(&self, segment: &Segment) -> String {
        format!("{:?}", (self.compressed)(&segment.content))
    }

    /// Returns the C function that sets the counts of marks and creates cgroups and files before any process starts.
    fn prepare(&self) -> String {
        let mut body = String::from("static void prepare(void)\n{\n");
        let mut left = vec![0_u64; self.names.len()];
        for process in &self.workload.processes {
            for name in process.marks().into_iter().chain([process.name.as_str()]) {
                left[self.mark(name)] += u64::from(process.count);
            }
        }
        for (mark, count) in left.iter().enumerate() {
            let _ = writeln!(
                body,
                "\tboard->left[{mark}] = {count};\t/* {} */",
                self.names[mark]
            );
        }
        if !self.workload.groups.is_empty() {
            let _ = writeln!(body, "\tmake_group(\"{UNGROUPED}\");");
        }
        for (index, name) in group_names(self.workload) {
            let group: &Group = &self.workload.groups[index];
            let _ = writeln!(body, "\tmake_group(\"{name}\");");
            for (file, size) in group.sizes() {
                let amount = match size {
                    Size::Bytes(Bytes(0)) => "0".to_owned(),
                    _ => format!("{} * PAGE", pages(size)),
                };
                let _ = writeln!(
                    body,
                    "\tlimit_group(\"{name}\", \"memory.{file}\", {amount});"
                );
            }
        }
        let mut made: Vec<&str> = Vec::new();
        for process in &self.workload.processes {
            for segment in process
                .segments
                .iter()
                .filter(|segment| segment.kind == Kind::File)
            {
                let make = |name: &str| {
                    format!(
                        "open_file({name}, {}, {}, {}, 1);",
                        pages(segment.size),
                        self.content(segment),
                        u8::from(segment.empty)
                    )
                };
                match segment.file.as_deref() {
                    Some(file) if made.contains(&file) => {}
                    Some(file) => {
                        made.push(file);
                        let _ = writeln!(body, "\t{}", make(&format!("\"{file}\"")));
                    }
                    None => {
                        for number in 0..process.count {
                            let name = format!("\"{}-{number}-{}\"", process.name, segment.name);
                            let _ = writeln!(body, "\t{}", make(&name));
                        }
                    }
                }
            }
            for segment in process
                .segments
                .iter()
                .filter(|segment| segment.kind == Kind::Tmpfs)
            {
                if let Some(file) = segment.file.as_deref()
                    && !made.contains(&file)
                {
                    made.push(file);
                    let _ = writeln!(
                        body,
                        "\ttmpfs_{} = open_tmpfs({});",
                        word(file),
                        pages(segment.size)
                    );
                }
            }
        }
        body.push_str("}\n\n");
        let mut files = String::new();
        let mut declared: Vec<&str> = Vec::new();
        for segment in self
            .workload
            .processes
            .iter()
            .flat_map(|process| &process.segments)
        {
            if let (Kind::Tmpfs, Some(file)) = (segment.kind, segment.file.as_deref())
                && !declared.contains(&file)
            {
                declared.push(file);
                let _ = writeln!(files, "static int tmpfs_{};\n", word(file));
            }
        }
        files + &body
    }

    /// Returns the C function of one kind of process.
    fn process(&self, index: usize, process: &Process) -> String {
        let mut body = Body {
            process,
            text: format!(
                "/* {} */\nstatic void process_{index}(int number)\n{{\n",
                process.name
            ),
            variables: 0,
        };
        for segment in &process.segments {
            body.line(1, &format!("struct segment {};", word(&segment.name)));
        }
        if process
            .segments
            .iter()
            .any(|segment| segment.kind == Kind::File && segment.file.is_none())
        {
            body.line(1, "char name[128];");
        }
        body.line(0, "");
        body.line(1, "(void)number;");
        match &process.group {
            Some(group)
                if self
                    .workload
                    .groups
                    .iter()
                    .any(|own| own.name == *group && own.each) =>
            {
                body.line(1, "char group[128];");
                body.line(0, "");
                body.line(
                    1,
                    &format!(
                        "snprintf(group, sizeof(group), \"{group}-{}-%d\", number);",
                        process.name
                    ),
                );
                body.line(1, "join_group(group);");
            }
            Some(group) => body.line(1, &format!("join_group(\"{group}\");")),
            None if self.workload.groups.is_empty() => {}
            None => body.line(1, &format!("join_group(\"{UNGROUPED}\");")),
        }
        for segment in &process.segments {
            self.map(&mut body, segment);
        }
        body.line(1, "arrive();");
        if let Some(turn) = &process.turn {
            body.line(1, "if (number > 0)");
            body.line(2, &format!("wait_turn({});\t/* {turn} */", self.mark(turn)));
        }
        if (process.start, process.stagger) != (Nanos(0), Nanos(0)) {
            body.line(
                1,
                &format!(
                    "pause_for({}UL + {}UL * (uint64_t)number);",
                    process.start.0, process.stagger.0
                ),
            );
        }
        self.phases(&mut body, &process.phases, 1);
        body.text.push_str("}\n\n");
        body.text
    }

    fn map(&self, body: &mut Body<'_>, segment: &Segment) {
        let name = word(&segment.name);
        let file = match (segment.kind, segment.file.as_deref()) {
            (Kind::Anonymous | Kind::Shared, _) => "-1".to_owned(),
            (Kind::Tmpfs, Some(file)) => format!("tmpfs_{}", word(file)),
            (Kind::Tmpfs, None) => format!("open_tmpfs({})", pages(segment.size)),
            (Kind::File, Some(file)) => format!("open_file(\"{file}\", 0, 0, 0, 0)"),
            (Kind::File, None) => {
                body.line(
                    1,
                    &format!(
                        "snprintf(name, sizeof(name), \"{}-%d-{}\", number);",
                        body.process.name, segment.name
                    ),
                );
                "open_file(name, 0, 0, 0, 0)".to_owned()
            }
        };
        let kind = match segment.kind {
            Kind::Anonymous => "ANONYMOUS",
            Kind::Shared => "SHARED",
            Kind::File => "ON_DISK",
            Kind::Tmpfs => "IN_TMPFS",
        };
        let size = match segment.pages {
            PageSize::Small => "SMALL",
            PageSize::Huge => "HUGE",
            PageSize::Default => "DEFAULT",
        };
        body.line(
            1,
            &format!(
                "{name} = map({kind}, {}, {}, {size}, {file});",
                pages(segment.size),
                self.content(segment)
            ),
        );
        if segment.locked {
            body.line(1, &format!("lock(&{name});"));
        }
    }

    fn phases(&self, body: &mut Body<'_>, phases: &[Phase], depth: usize) {
        for phase in phases {
            self.phase(body, phase, depth);
        }
    }

    fn phase(&self, body: &mut Body<'_>, phase: &Phase, depth: usize) {
        match phase {
            Phase::Fill { segment, by, part } => {
                let text = format!(
                    "fill(&{}, {}, {});",
                    word(segment),
                    span(*part),
                    u8::from(*by == By::Call)
                );
                body.line(depth, &text);
            }
            Phase::Access(access) => body.line(depth, &self.access(access)),
            Phase::Copy { from, to } => {
                body.line(depth, &format!("copy(&{}, &{});", word(from), word(to)));
            }
            Phase::Sync { segment } => {
                body.line(depth, &format!("if (fdatasync({}.file))", word(segment)));
                body.line(depth + 1, "die(\"sync a file\");");
            }
            Phase::Advise {
                segment,
                advice,
                part,
            } => {
                let name = word(segment);
                let text = advice_word(*advice).map_or_else(
                    || format!("drop_cache(&{name}, {});", span(*part)),
                    |advice| format!("advise(&{name}, {}, {advice});", span(*part)),
                );
                body.line(depth, &text);
            }
            Phase::Fork { count, phases } => {
                let variable = body.variable();
                body.line(
                    depth,
                    &format!("for (int {variable} = 0; {variable} < {count}; {variable}++) {{"),
                );
                body.line(
                    depth + 1,
                    &format!("if (child((uint64_t){variable}) == 0) {{"),
                );
                self.phases(body, phases, depth + 2);
                body.line(depth + 2, "leave();");
                body.line(depth + 1, "}");
                body.line(depth, "}");
            }
            Phase::Join {} => body.line(depth, "join_children();"),
            Phase::Mark { name } => body.line(
                depth,
                &format!("pass(self, {});\t/* {name} */", self.mark(name)),
            ),
            Phase::Wait { r#for } => body.line(
                depth,
                &format!("wait_for({});\t/* {for} */", self.mark(r#for)),
            ),
            Phase::Pause { time } => body.line(depth, &format!("pause_for({}UL);", time.0)),
            Phase::Reclaim { group, amount } => {
                let is_each = self
                    .workload
                    .groups
                    .iter()
                    .any(|own| own.name == *group && own.each);
                let group = if is_each {
                    "group".to_owned()
                } else {
                    format!("\"{group}\"")
                };
                body.line(
                    depth,
                    &format!("reclaim_group({group}, {});", pages(*amount)),
                );
            }
            Phase::Repeat { times, phases } => {
                let variable = body.variable();
                body.line(
                    depth,
                    &format!("for (int {variable} = 0; {variable} < {times}; {variable}++) {{"),
                );
                self.phases(body, phases, depth + 1);
                body.line(depth, "}");
            }
        }
    }

    fn access(&self, access: &Access) -> String {
        let until = access
            .until
            .as_ref()
            .map_or("-1".to_owned(), |name| self.mark(name).to_string());
        let (count, passes) = match access.count {
            crate::Count::Accesses(count) => (count, 0),
            crate::Count::Passes(passes) => (0, passes),
        };
        format!(
            "access_pages(&{}, {}, (struct reference){{ {}, .count = {count}UL, .passes = {passes}UL }}, {:?}, {}, {}, {}UL, {}UL, {until});",
            word(&access.segment),
            span(access.part),
            pattern(&access.pattern),
            access.writes,
            u8::from(access.amount == Amount::Page),
            u8::from(access.by == By::Call),
            access.pause.0,
            access.every,
        )
    }

    /// Returns the C functions that find the process of a slot and run it.
    fn dispatch(&self) -> String {
        let mut describe = String::from("static void describe(struct slot *slot, int index)\n{\n");
        let mut first = 0;
        for (index, process) in self.workload.processes.iter().enumerate() {
            let _ = writeln!(
                describe,
                "\tif (index >= {first}) {{\n\t\tslot->process = {index};\n\t\tslot->number = index - {first};\n\t}}"
            );
            first += process.count;
        }
        describe.push_str(
            "}\n\nstatic void run(const struct slot *slot)\n{\n\tswitch (slot->process) {\n",
        );
        for index in 0..self.workload.processes.len() {
            let _ = writeln!(
                describe,
                "\tcase {index}:\n\t\tprocess_{index}(slot->number);\n\t\tbreak;"
            );
        }
        describe.push_str("\t}\n}");
        describe
    }
}

/// Returns a name as an identifier of C.
fn word(name: &str) -> String {
    format!("own_{}", name.replace('-', "_"))
}

fn pages(size: Size) -> String {
    match size {
        Size::Share(share) => format!("share({share})"),
        Size::Bytes(bytes) => format!("bytes({}UL)", bytes.0),
    }
}

fn span(part: Option<Part>) -> String {
    let [begin, end] = part.unwrap_or([0.0, 1.0]);
    format!("{begin:?}, {end:?}")
}

fn advice_word(advice: Advice) -> Option<&'static str> {
    Some(match advice {
        Advice::Cold => "MADV_COLD",
        Advice::Pageout => "MADV_PAGEOUT",
        Advice::Free => "MADV_FREE",
        Advice::Dontneed => "MADV_DONTNEED",
        Advice::Willneed => "MADV_WILLNEED",
        Advice::PopulateRead => "MADV_POPULATE_READ",
        Advice::PopulateWrite => "MADV_POPULATE_WRITE",
        Advice::Sequential => "MADV_SEQUENTIAL",
        Advice::Random => "MADV_RANDOM",
        Advice::DropCache => return None,
    })
}

/// Returns the fields of an access pattern as C initialisers.
fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Linear | Pattern::File(_) => ".pattern = LINEAR".to_owned(),
        Pattern::Loop => ".pattern = LOOP".to_owned(),
        Pattern::Random => ".pattern = RANDOM".to_owned(),
        Pattern::SmoothSin { .. } => ".pattern = SINE".to_owned(),
        Pattern::SmoothSinRandom { .. } => ".pattern = SINE_RANDOM".to_owned(),
        Pattern::Zipf05 => ".pattern = ZIPF05".to_owned(),
        Pattern::Zipf(zipf) => format!(
            ".pattern = ZIPF, .a = {:?}, .is_scattered = {}",
            zipf.exponent,
            u8::from(zipf.scatter)
        ),
        Pattern::Lognormal => ".pattern = LOGNORMAL".to_owned(),
        Pattern::HotCold(p) => format!(
            ".pattern = HOT_COLD, .a = {:?}, .b = {:?}, .c = {}, .d = {:?}",
            p.hot, p.share, p.move_every, p.by
        ),
        Pattern::ColdFirst(p) => format!(".pattern = COLD_FIRST, .a = {:?}", p.cold),
        Pattern::ScanWithHotCore(p) => {
            format!(".pattern = SCAN, .a = {:?}, .b = {:?}", p.core, p.share)
        }
    }
}
