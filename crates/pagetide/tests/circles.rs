//! Inside a crate, imports between files have no cycles: no file imports another file that, directly or through others,
//! imports it.
//!
//! A file imports another file if it uses an item that the other file defines. Only the use of the item counts. A `mod`
//! declaration or a re-export with `use` is no import. The use of a re-exported item counts for the file that defines
//! the item. A module file and the files in its folder are different files. So either a parent calls its children, or
//! the children use what the parent defines, but not both. Tests in a file are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Cycles that are accepted: the crate, the first file of the cycle by name, and the reason.
const ACCEPTED: [(&str, &str, &str); 1] = [(
    "compare",
    "comparison",
    "a comparison holds the notes and explanations that are computed from it",
)];

/// Path of an item or module, split at `::`, such as `crate::a::B`.
type Names = Vec<String>;

/// Declarations, imports and paths in one source file.
#[derive(Default)]
struct Module {
    /// Modules that the file declares.
    children: BTreeSet<String>,
    /// Full path of each imported name.
    aliases: BTreeMap<String, Names>,
    /// All paths in `use` declarations, and all paths with `::` in the code.
    used: Vec<Names>,
}

/// Splits the source of a file into names, `::` and single characters. Comments, string literals and tests are left
/// out.
fn tokens(source: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("#[cfg(test)]\nmod tests") {
            rest.len()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(text) = rest.strip_prefix("r#\"") {
            3 + text.find("\"#").map_or(0, |at| at + 2)
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let is_end = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            });
            end.map_or(rest.len(), |at| at + 2)
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            4.min(rest.len())
        } else if rest.starts_with("::") {
            all.push("::".to_owned());
            2
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let end = end.unwrap_or(rest.len());
            all.push(rest[..end].to_owned());
            end
        } else {
            if !c.is_whitespace() {
                all.push(c.to_string());
            }
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    all
}

/// Reads a `use` tree from position `at` to its end. For each leaf, adds the path and the name under which it is
/// imported.
fn tree(tokens: &[String], at: &mut usize, before: &[String], found: &mut Vec<(String, Names)>) {
    let mut path = before.to_vec();
    let mut name = None;
    while let Some(token) = tokens.get(*at) {
        match token.as_str() {
            "::" => {}
            "as" => {
                *at += 1;
                name = tokens.get(*at).cloned();
            }
            "{" => {
                *at += 1;
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    tree(tokens, at, &path, found);
                    if tokens.get(*at).is_some_and(|token| token == ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "," | "}" | ";" => break,
            _ => path.push(token.clone()),
        }
        *at += 1;
    }
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last() {
        found.push((name.unwrap_or_else(|| last.clone()), path));
    }
}

impl Module {
    fn of(source: &str) -> Self {
        let tokens = tokens(source);
        let mut module = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            let next = |ahead: usize| tokens.get(at + ahead).map_or("", String::as_str);
            if next(0) == "mod" && next(2) == ";" {
                module.children.insert(tokens[at + 1].clone());
                at += 3;
            } else if next(0) == "use" && next(1) != "<" {
                let is_passed_on = at > 0 && ["pub", ")"].contains(&tokens[at - 1].as_str());
                at += 1;
                let mut found = Vec::new();
                tree(&tokens, &mut at, &[], &mut found);
                for (name, path) in found {
                    if !is_passed_on {
                        module.used.push(path.clone());
                    }
                    module.aliases.insert(name, path);
                }
            } else if next(1) == "::" && next(0).starts_with(|c: char| c.is_alphabetic()) {
                let mut path = vec![tokens[at].clone()];
                while tokens.get(at + 1).is_some_and(|token| token == "::")
                    && tokens.get(at + 2).is_some_and(|name| {
                        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                    })
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                module.used.push(path);
                at += 1;
            } else {
                at += 1;
            }
        }
        module
    }
}

/// All source files of a crate, each by its module path.
struct Modules(BTreeMap<Names, Module>);

impl Modules {
    fn read(folder: &Path) -> Self {
        let mut all = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(within) = folders.pop() {
            for entry in fs::read_dir(within).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let inner = path.strip_prefix(folder).unwrap().with_extension("");
                    let mut names: Names =
                        inner.iter().map(|n| n.to_string_lossy().into()).collect();
                    if names == ["lib"] || names == ["main"] {
                        names.clear();
                    }
                    all.insert(names, Module::of(&fs::read_to_string(path).unwrap()));
                }
            }
        }
        Self(all)
    }

    /// Resolves `path` in the file `within`: returns the file that defines the item, and the item's path in that file.
    /// `None` if the item is in another crate or in the same file.
    fn target(&self, within: &Names, path: &[String], depth: usize) -> Option<(Names, Names)> {
        let module = self.0.get(within)?;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => within.clone(),
            "super" => within[..within.len().checked_sub(1)?].to_vec(),
            name if module.children.contains(name) => [&within[..], &[name.to_owned()]].concat(),
            name => {
                let alias = module.aliases.get(name)?;
                if depth > 9 || alias.first() == Some(first) {
                    return None;
                }
                let whole = [&alias[..], rest].concat();
                return self.target(within, &whole, depth + 1);
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let inner = [&at[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                at.pop();
            } else if self.0.contains_key(&inner) {
                at = inner;
            } else {
                break;
            }
            rest = after;
        }
        if at != *within
            && depth < 10
            && !rest.is_empty()
            && let Some(found) = self.target(&at, rest, depth + 1)
        {
            return Some(found);
        }
        Some((at, rest.to_vec()))
    }

    /// For each file, the set of files that it imports.
    fn imports(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let of = |(name, module): (&'_ Names, &Module)| {
            let targets = module
                .used
                .iter()
                .filter_map(|path| self.target(name, path, 0));
            // Only the use of an item in a module counts as an import, not a mention of the module alone.
            let items = targets.filter(|(file, item)| {
                file != name && !item.is_empty() && self.0.contains_key(file)
            });
            items.map(|(file, _)| file).collect()
        };
        self.0
            .iter()
            .map(|(name, module)| (name, of((name, module))))
            .collect()
    }

    /// Cycles, as sets of files that import each other.
    fn circles(&self) -> Vec<BTreeSet<String>> {
        let imports = self.imports();
        let reach: BTreeMap<&Names, BTreeSet<&Names>> = imports
            .keys()
            .map(|from| {
                let (mut seen, mut open) = (BTreeSet::new(), vec![*from]);
                while let Some(file) = open.pop() {
                    open.extend(imports[file].iter().filter(|next| seen.insert(*next)));
                }
                (*from, seen)
            })
            .collect();
        let circles: BTreeSet<BTreeSet<String>> = reach
            .iter()
            .filter(|(file, reached)| reached.contains(**file))
            .map(|(file, reached)| {
                let same = reached
                    .iter()
                    .filter(|other| reach[**other].contains(*file));
                same.map(|names| names.join("/")).collect()
            })
            .collect();
        circles.into_iter().collect()
    }
}

#[test]
fn files_of_a_crate_depend_one_way() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut accepted = BTreeSet::new();
    let mut folders: Vec<PathBuf> = fs::read_dir(crates)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        for circle in Modules::read(&folder.join("src")).circles() {
            let first = circle.first().cloned().unwrap_or_default();
            let known = ACCEPTED
                .iter()
                .position(|(of, file, _)| (*of, *file) == (&name, &first));
            match known {
                Some(place) => drop(accepted.insert(place)),
                None => found.push(format!("{name}: {circle:?}")),
            }
        }
    }
    assert!(
        found.is_empty(),
        "files import each other:\n{}",
        found.join("\n")
    );
    assert_eq!(
        accepted.len(),
        ACCEPTED.len(),
        "a circle of ACCEPTED is gone: remove it there"
    );
}

#[test]
fn a_circle_is_found_through_aliases_and_re_exports_and_not_for_them() {
    let modules = |files: &[(&str, &str)]| {
        let module = |(name, text): &(&str, &str)| {
            let names = name.split('/').filter(|name| !name.is_empty());
            (names.map(str::to_owned).collect(), Module::of(text))
        };
        Modules(files.iter().map(module).collect()).circles()
    };
    let parent = "mod b;\npub use b::B;\npub struct A;\n";
    // A child may use its parent's type, even if the parent declares the child and re-exports its items.
    assert!(
        modules(&[
            ("", "mod a;"),
            ("a", parent),
            ("a/b", "use super::A;\npub struct B(A);")
        ])
        .is_empty()
    );
    // But a parent that calls its child is then a cycle.
    let calls = format!("{parent}fn f() {{ b::f() }}\n");
    assert_eq!(
        modules(&[("", "mod a;"), ("a", &calls), ("a/b", "use super::A;")]).len(),
        1
    );
    // A use counts for the file that defines the item, also through an imported module and a re-export.
    let circle = [
        ("", "mod a;\nmod c;\nmod d;"),
        ("a", "use crate::d;\nfn f() { d::again::g() }"),
        (
            "c",
            "// use crate::nothing::X;\nuse crate::a::{f as h, other};",
        ),
        ("d", "pub use crate::c as again;"),
    ];
    let found = modules(&circle);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("a") && found[0].contains("c") && !found[0].contains("d"),
        "{found:?}"
    );
    // String literals, comments and tests do not count.
    let test = "const T: &str = \"crate::a::X\";\n#[cfg(test)]\nmod tests { use crate::a::X; }";
    assert!(
        modules(&[
            ("", "mod a;\nmod c;"),
            ("a", "use crate::c::T;"),
            ("c", test)
        ])
        .is_empty()
    );
}
