//! Finds the instructions that were compiled from the changed lines of a patch in a built kernel.
//!
//! Kernels are built without debug information, which would make builds slower and images different. So each object
//! with changed lines is compiled once more, with the command of its build and line tables in addition. Line tables
//! do not change the code, so each instruction has the same distance from the start of its function in both objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_kernel::{ChangedCode, ChangedLine, CodePlace, Stop};
use pagetide_outside::{FileOrigin, read_text};
use pagetide_system::child::{self, Limits};

use crate::delta;
use crate::error::SourceError;
use crate::tree::{Files, MAX_NOTE_BYTES, Tree};

/// Time limit for compiling or disassembling one object.
const LONGEST: Duration = Duration::from_mins(5);
/// Maximum length in bytes of the listing of a disassembled object.
const MAX_TEXT: usize = 256 << 20;
/// Number of objects from which on no object is compiled once more for a changed header alone, because a header may be
/// part of every object. The objects of changed `.c` files are all compiled.
const MAX_OBJECTS: usize = 12;

/// Instructions of one object by source line, which is a file relative to the top folder of the source and a line
/// number.
type Lines = BTreeMap<(String, u32), BTreeSet<CodePlace>>;

/// Source and build folders of a built kernel.
pub(crate) struct Built<'a> {
    pub tree: &'a Tree,
    pub out: &'a Path,
    /// A folder for temporary files.
    pub scratch: &'a Path,
    pub stop: &'a Stop,
}

impl Built<'_> {
    /// Finds the code compiled from the lines that a patch changed. `files` contains the patched files. The result also
    /// states how many changed lines have no instructions, and what was not examined and why.
    pub fn changed_code(&self, files: &Files) -> Result<ChangedCode, SourceError> {
        let mut code = ChangedCode::default();
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        let mut texts: BTreeMap<(String, u32), String> = BTreeMap::new();
        let mut ends: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let is_code = |path: &&String| has_ending(path, &["c", "h"]);
        for path in files.keys().filter(is_code) {
            let Some(Some(new)) = files.get(path) else {
                continue;
            };
            let old = self.tree.pristine(path)?.unwrap_or_default();
            let delta = delta::delta(&old, new);
            let lines: Vec<&[u8]> = new.split(|byte| *byte == b'\n').collect();
            for at in &delta.added {
                let text = lines.get(*at as usize - 1).copied().unwrap_or_default();
                let text = String::from_utf8_lossy(text).trim().to_owned();
                texts.insert((path.clone(), *at), text);
                changed.push((path.clone(), *at));
            }
            removed.extend(delta.removed_before.iter().map(|at| (path.clone(), *at)));
            ends.insert(path, ends_of_functions(&lines));
        }
        let mut all = Lines::new();
        for object in self.objects(files, &mut code.left_out) {
            match self.lines(&object) {
                Ok(lines) => {
                    for (key, places) in lines {
                        if files.contains_key(&key.0) {
                            all.entry(key).or_default().extend(places);
                        }
                    }
                }
                Err(why) => code.left_out.push(format!("{object}: {why}")),
            }
        }
        let mut functions = BTreeSet::new();
        let mut nameless = Vec::new();
        for key in changed {
            let text = texts.get(&key).map_or("", String::as_str);
            let Some(places) = all.get(&key).filter(|_| !is_only_braces(text)) else {
                code.without_code += 1;
                nameless.push(key);
                continue;
            };
            functions.extend(places.iter().map(|place| own_name(&place.function)));
            code.lines.push(ChangedLine {
                text: text.to_owned(),
                file: key.0,
                line: key.1,
                places: places.iter().cloned().collect(),
            });
        }
        let around = |file: &str, at: u32| {
            functions_around(&all, file, at, ends.get(file).map_or(&[], Vec::as_slice))
        };
        for (file, at) in &removed {
            functions.extend(around(file, *at));
        }
        // A line such as `hits = 0;` may only remove instructions of others.
        if functions.is_empty() {
            for (file, at) in &nameless {
                functions.extend(around(file, *at));
            }
        }
        code.functions = functions.into_iter().map(str::to_owned).collect();
        Ok(code)
    }

    /// Returns the built objects that contain code of the changed files, such as `mm/vmscan.o`. Adds to `left_out`
    /// which objects are not examined, and why.
    fn objects(&self, files: &Files, left_out: &mut Vec<String>) -> Vec<String> {
        let mut objects = BTreeSet::new();
        for path in files.keys() {
            if let Some(stem) = path.strip_suffix(".c") {
                let object = format!("{stem}.o");
                if self.out.join(&object).is_file() {
                    objects.insert(object);
                }
            }
        }
        for header in files.keys().filter(|path| has_ending(path, &["h"])) {
            let users = self.users(header);
            let room = MAX_OBJECTS.saturating_sub(objects.len());
            let new: Vec<&String> = users.iter().filter(|one| !objects.contains(*one)).collect();
            if new.len() > room {
                left_out.push(format!(
                    "{header} is part of {} objects, and its lines were looked for in {} of them",
                    users.len(),
                    users.len() - new.len() + room
                ));
            }
            let new: Vec<String> = new.into_iter().take(room).cloned().collect();
            objects.extend(new);
        }
        objects.into_iter().collect()
    }

    /// Returns the built objects that include a header.
    fn users(&self, header: &str) -> Vec<String> {
        let mut users = Vec::new();
        let name = format!("/{header} ");
        let mut folders = vec![self.out.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let object = object_of(&path);
                let text = object.and_then(|object| {
                    let text = read_text(&path, FileOrigin::Own, MAX_NOTE_BYTES).ok()?;
                    Some((object, text))
                });
                if let Some((object, text)) = text
                    && text.lines().any(|line| format!("{line} ").contains(&name))
                    && let Ok(object) = object.strip_prefix(self.out)
                {
                    users.push(object.display().to_string());
                }
            }
        }
        users.sort_unstable();
        users
    }

    /// Compiles an object with line tables, and returns its instructions by line. The error is the reason for a
    /// failure.
    fn lines(&self, object: &str) -> Result<Lines, String> {
        let (folder, name) = object.rsplit_once('/').unwrap_or((".", object));
        let note = self.out.join(folder).join(format!(".{name}.cmd"));
        let text = read_text(&note, FileOrigin::Own, MAX_NOTE_BYTES);
        let text = text.map_err(|why| format!("how it was compiled is not known ({why})"))?;
        let result = self.scratch.join("lines.o");
        let command = compiler(&text, object, &result)
            .ok_or_else(|| "how it was compiled is not known".to_owned())?;
        let stop = || self.stop.is_set();
        let limits = Limits {
            time: LONGEST,
            output: MAX_TEXT,
            stop: &stop,
        };
        let run = |program: &str, arguments: &[&str]| {
            let mut command = child::command(program);
            command
                .args(arguments)
                .current_dir(self.out)
                .env("LC_ALL", "C")
                .env("TMPDIR", self.scratch);
            match child::run(&mut command, &limits) {
                Ok(output) if output.status.success() => Ok(output.stdout),
                Ok(output) => Err(format!("{program}: {}", output.status)),
                Err(why) => Err(format!("{program}: {why}")),
            }
        };
        run("sh", &["-c", &command])?;
        let path = result.display().to_string();
        let listing = run("objdump", &["-dl", "--no-show-raw-insn", &path]);
        let _ = fs::remove_file(&result);
        let top = self.tree.top();
        Ok(of_listing(&String::from_utf8_lossy(&listing?), &top))
    }
}

/// Returns true if a line contains nothing but punctuation and words that join blocks, such as `else`. Its instructions
/// belong to the statements around it.
fn is_only_braces(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words
        .filter(|word| !word.is_empty())
        .all(|word| ["else", "do"].contains(&word))
}

/// Returns the numbers of the lines at which functions end: those that begin with a closing brace.
fn ends_of_functions(lines: &[&[u8]]) -> Vec<u32> {
    let numbered = (1..).zip(lines);
    let ends = numbered.filter(|(_, line)| line.starts_with(b"}"));
    ends.map(|(at, _)| at).collect()
}

/// Returns the functions around a line without instructions: those of the nearest line before it that has instructions,
/// or after it if a function ends before it. Of a function that does nothing, only its end has an instruction. `ends`
/// has the lines at which functions end. Empty if the line is in no function with instructions.
fn functions_around<'a>(all: &'a Lines, file: &str, line: u32, ends: &[u32]) -> BTreeSet<&'a str> {
    let key = |line| (file.to_owned(), line);
    let before = all.range(key(0)..key(line)).next_back();
    let before = before.filter(|((_, at), _)| !ends.iter().any(|end| (*at..line).contains(end)));
    let after = || {
        let after = all.range(key(line)..=key(u32::MAX)).next();
        after.filter(|((_, at), _)| !ends.iter().any(|end| (line..*at).contains(end)))
    };
    let places = before.or_else(after).into_iter();
    let places = places.flat_map(|(_, places)| places);
    places.map(|place| own_name(&place.function)).collect()
}

/// Returns the name of a function without the suffixes that the compiler adds for parts and copies of it.
fn own_name(symbol: &str) -> &str {
    symbol.split('.').next().unwrap_or(symbol)
}

/// Returns true if the path ends with a dot and one of `endings`.
fn has_ending(path: &str, endings: &[&str]) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| endings.contains(&ending))
}

/// Returns the path of the object that Kbuild's file `.NAME.o.cmd` describes; `None` for any other file.
fn object_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let object = name.strip_prefix('.')?.strip_suffix(".cmd")?;
    has_ending(object, &["o"]).then(|| path.with_file_name(object))
}

/// Returns the command that compiles an object with line tables to the file `result`. `text` is the content of Kbuild's
/// `.cmd` file of the object. `None` if it cannot be parsed.
fn compiler(text: &str, object: &str, result: &Path) -> Option<String> {
    // Until Linux 6.2 the variable was `cmd_FILE`. Source: Linux `scripts/Kbuild.include`.
    let line = text.lines().find_map(|line| {
        let rest = line
            .strip_prefix("savedcmd_")
            .or_else(|| line.strip_prefix("cmd_"))?;
        rest.strip_prefix(object)?.strip_prefix(" := ")
    })?;
    let line = line.replace("$$", "$").replace("\\#", "#");
    let gcc = line.split(" ; ").next()?.trim();
    let gcc = gcc.strip_prefix("ccache ").unwrap_or(gcc);
    let to = format!(" -o {object} ");
    if !gcc.contains(&to) {
        return None;
    }
    let quoted = result.display().to_string().replace('\'', "'\\''");
    let gcc = gcc.replace(&to, &format!(" -g1 -o '{quoted}' "));
    let words = gcc.split(' ').filter(|word| !word.starts_with("-Wp,-MMD,"));
    Some(words.collect::<Vec<_>>().join(" "))
}

/// Returns the instructions by source line, from the output of `objdump -dl`. `top` is the top folder of the source.
/// Lines in files outside of `top` are left out.
fn of_listing(text: &str, top: &Path) -> Lines {
    let top = format!("{}/", top.display());
    let mut lines = Lines::new();
    let mut function: Option<(&str, u64)> = None;
    let mut line: Option<(String, u32)> = None;
    for text in text.lines() {
        if let Some(path) = text.strip_prefix(&top) {
            // The text has the form `mm/vmscan.c:49 (discriminator 6)`.
            let place = path.split(' ').next().unwrap_or(path);
            line = place
                .rsplit_once(':')
                .and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
        } else if let Some((address, name)) = text.split_once(" <")
            && let Some(name) = name.strip_suffix(">:")
            && let Ok(address) = u64::from_str_radix(address, 16)
        {
            (function, line) = (Some((name, address)), None);
        } else if let Some((address, _)) = text.split_once(":\t")
            && let Ok(address) = u64::from_str_radix(address.trim(), 16)
            && let (Some((name, start)), Some(line)) = (function, &line)
        {
            lines.entry(line.clone()).or_default().insert(CodePlace {
                function: name.to_owned(),
                offset: address.wrapping_sub(start),
            });
        } else if text.starts_with('/') {
            line = None;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_build_is_changed_only_in_its_result_and_line_tables() {
        let text = "savedcmd_mm/swap.o := ccache gcc -Wp,-MMD,mm/.swap.o.d -O2 -DKBUILD_MODFILE='\"mm/swap\"' -c -o \
            mm/swap.o /s/mm/swap.c  ; ./tools/objtool/objtool --orc mm/swap.o\n\nsource_mm/swap.o := /s/mm/swap.c\n";
        let command = compiler(text, "mm/swap.o", Path::new("/t/lines.o")).unwrap();
        let expected = "gcc -O2 -DKBUILD_MODFILE='\"mm/swap\"' -c -g1 -o '/t/lines.o' /s/mm/swap.c";
        assert_eq!(command, expected);
        let old = text.replace("savedcmd_", "cmd_");
        assert!(compiler(&old, "mm/swap.o", Path::new("/t/lines.o")).is_some());
        assert_eq!(compiler(text, "mm/other.o", Path::new("/t/lines.o")), None);
    }

    #[test]
    fn braces_are_no_lines_of_code() {
        for text in ["{", "}", "} else {", "do {", "\t};", ""] {
            assert!(is_only_braces(text), "{text}");
        }
        for text in ["} while (left);", "} else if (x) {", "return;", "_x();"] {
            assert!(!is_only_braces(text), "{text}");
        }
    }

    #[test]
    fn instructions_are_found_by_line_also_where_they_were_inlined() {
        let text = "
0000000000000040 <shrink_list>:
shrink_list():
/top/mm/vmscan.c:10
      40:\tpush   %rbp
/top/mm/swap.h:7 (discriminator 2)
      44:\tcall   49 <shrink_list+0x9>
/usr/include/other.h:3
      49:\tret
0000000000000000 <shrink_list.cold>:
shrink_list.cold():
/top/mm/vmscan.c:10
       5:\tud2
";
        let lines = of_listing(text, Path::new("/top"));
        let place = |function: &str, offset| CodePlace {
            function: function.to_owned(),
            offset,
        };
        let expected = Lines::from([
            (
                ("mm/swap.h".to_owned(), 7),
                BTreeSet::from([place("shrink_list", 4)]),
            ),
            (
                ("mm/vmscan.c".to_owned(), 10),
                BTreeSet::from([place("shrink_list", 0), place("shrink_list.cold", 5)]),
            ),
        ]);
        assert_eq!(lines, expected);
        let around = |line| functions_around(&lines, "mm/vmscan.c", line, &[]);
        assert_eq!(around(12), BTreeSet::from(["shrink_list"]));
    }

    #[test]
    fn a_line_without_code_belongs_to_the_function_that_ends_after_it() {
        let text = "void first(void)\n{\n\twork();\n}\nvoid empty(void)\n{\n\treturn;\n}\n#define A 1\nvoid last(void)\n{\n\twork();\n}";
        let lines: Vec<&[u8]> = text.split('\n').map(str::as_bytes).collect();
        let ends = ends_of_functions(&lines);
        assert_eq!(ends, [4, 8, 13]);
        let code = [
            (3, "first"),
            (4, "first"),
            (8, "empty"),
            (12, "last"),
            (13, "last"),
        ];
        let code = code.map(|(line, function): (u32, &str)| {
            let place = CodePlace {
                function: function.to_owned(),
                offset: 0,
            };
            (("mm/a.c".to_owned(), line), BTreeSet::from([place]))
        });
        let all = Lines::from(code);
        let around = |line| functions_around(&all, "mm/a.c", line, &ends);
        assert_eq!(around(7), BTreeSet::from(["empty"]));
        assert_eq!(around(4), BTreeSet::from(["first"]));
        let without: Lines = all
            .clone()
            .into_iter()
            .filter(|((_, at), _)| *at != 8)
            .collect();
        let around = |line| functions_around(&without, "mm/a.c", line, &ends);
        assert_eq!(around(7), BTreeSet::new());
        assert_eq!(
            functions_around(&all, "mm/other.c", 7, &ends),
            BTreeSet::new()
        );
    }
}
