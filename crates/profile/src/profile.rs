//! A profile as it is stored: a JSON object in a blob of a record.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::coverage::Coverage;

/// Name of the blob with the profile in the record of a profiled pass.
pub const PROFILE: &str = "profile";
/// Function name for the code of programs that is in no known file.
pub const USER: &str = "user code";
/// Function name for code of the kernel that belongs to no symbol.
pub const UNNAMED: &str = "(kernel, unnamed)";
/// Function name for code in a program's file that belongs to no symbol.
pub const NO_SYMBOL: &str = "(no symbol)";
/// Function name for call stacks that are too small to be stored one by one.
pub const SMALL: &str = "(small)";

/// Version of the stored format.
const VERSION: u32 = 1;
/// Maximum size of a stored profile, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Why a stored profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The stored bytes cannot be read.
    #[error("reading a profile stopped: {0}")]
    Read(#[from] std::io::Error),
    /// The stored bytes are not a profile.
    #[error("the profile cannot be understood ({0}): the record is damaged")]
    Json(#[from] serde_json::Error),
    /// The profile was written by a newer version of pagetide.
    #[error(
        "the profile is of version {0}, and this program reads {VERSION}: use a newer pagetide"
    )]
    Newer(u32),
    /// An index in the profile refers to an entry that does not exist.
    #[error("the profile contradicts itself ({0}): the record is damaged")]
    Contradiction(&'static str),
}

/// A function and its counts, summed over all tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Name of the function as in `/proc/kallsyms` or in the symbol table of a program's file, but without suffixes
    /// that compilers add to copies and parts of a function. [`USER`] for code of programs that is in no known file.
    pub name: String,
    /// Name of the module that contains the function; `None` for the kernel's image. For a function of a program, name
    /// of the file that contains it; `None` for [`USER`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// True for a function of a program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_program: bool,
    /// Number of instructions that the function executed, without those of functions that it called.
    pub instructions: u64,
    /// Number of calls; for [`USER`] zero.
    pub calls: u64,
}

/// A function at one position in the call tree, or the root of a task's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, u64, u64)", into = "(u32, u32, u64, u64)")]
pub struct Node {
    /// Index of the caller's node; its own index for the root of a task. A caller comes before its callees.
    pub parent: u32,
    /// Index in [`Profile::functions`]; for the root of a task, index in [`Profile::tasks`].
    pub what: u32,
    /// Number of instructions that the function executed at this position, without those of functions that it called.
    pub own: u64,
    /// Number of calls of the function at this position.
    pub calls: u64,
}

impl From<(u32, u32, u64, u64)> for Node {
    fn from((parent, what, own, calls): (u32, u32, u64, u64)) -> Self {
        Self {
            parent,
            what,
            own,
            calls,
        }
    }
}

impl From<Node> for (u32, u32, u64, u64) {
    fn from(node: Node) -> Self {
        (node.parent, node.what, node.own, node.calls)
    }
}

/// Instructions that a trial executed, from the start of the scenario to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Version of the stored format.
    pub version: u32,
    /// Time of the scenario by the guest's own clock, in nanoseconds.
    pub elapsed: u64,
    /// Instructions of the idle loop, which runs while every task waits. Equal to the waiting time in nanoseconds.
    pub idle: u64,
    /// Functions that executed an instruction, most instructions first. [`SMALL`] is the last one, if it is needed.
    pub functions: Vec<Function>,
    /// Names of the tasks.
    pub tasks: Vec<String>,
    /// Call trees of all tasks. The instructions of a function's nodes add up to its instructions in `functions`,
    /// except for call stacks that are combined in nodes named [`SMALL`].
    pub nodes: Vec<Node>,
    /// The waits, longest first; the last may combine small ones. Their times add up to the time of the idle loop.
    /// Empty in profiles of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// Waits for locks, longest first, with the tasks that held them. Empty in profiles of earlier versions, and if the
    /// kernel has no type data (`CONFIG_DEBUG_INFO_BTF`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockWait>,
    /// Time that tasks of the workload could run but another task ran, longest first. Empty in profiles of earlier
    /// versions, and if the kernel has no type data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueueWait>,
    /// How often the lines that a patch changes were executed; `None` if the kernel was not built with a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

/// Time in the run queue: tasks of the workload could run, but another task ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueWait {
    /// Name of the task that ran, as in [`Profile::tasks`].
    pub behind: String,
    /// Sum over all tasks that waited, in nanoseconds.
    pub time: u64,
    /// Number of time slices of the task that ran, each counted for every task that waited for its end.
    pub count: u64,
}

/// The task that held a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the task.
    pub task: String,
    /// Function that held the lock: the one that released it.
    pub function: String,
    /// What the task itself did when the wait began: a cause and a function if it waited or another task had the CPU.
    pub was_in: String,
}

/// Waits of tasks of the workload for a lock, at one call stack and with one holder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWait {
    /// Call stack of the task that waited, as in [`Wait::stack`].
    pub stack: Vec<String>,
    /// Who held the lock; `None` if this is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Number of waits.
    pub count: u64,
    /// Time from leaving the CPU to being woken, in nanoseconds. Other tasks may have run meanwhile.
    pub time: u64,
    /// Time of these waits in which no task ran, in nanoseconds. This part is also in [`Profile::waits`].
    pub idle: u64,
}

impl Profile {
    /// Creates an empty profile of the current version.
    pub fn new() -> Self {
        Self {
            version: VERSION,
            ..Self::default()
        }
    }

    /// Returns the number of instructions of all functions, without the idle loop.
    pub fn instructions(&self) -> u64 {
        self.functions
            .iter()
            .map(|function| function.instructions)
            .sum()
    }

    /// Returns the number of counted instructions, including the idle loop, minus the time on the guest's clock in
    /// nanoseconds. Zero in an exact profile.
    pub fn gap(&self) -> i64 {
        (self.instructions() + self.idle)
            .wrapping_sub(self.elapsed)
            .cast_signed()
    }

    /// True if the kernel has no list of its functions (`/proc/kallsyms`), so that its code has no names.
    pub fn is_without_list(&self) -> bool {
        let of_kernel = |one: &&Function| !one.is_program && one.name != USER;
        let mut kernel = self.functions.iter().filter(of_kernel).peekable();
        kernel.peek().is_some() && kernel.all(|one| one.name == UNNAMED)
    }

    /// Returns the indices of the node, of its parent, and so on up to the root of the task.
    pub fn up(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |node| {
            (!self.is_root(*node)).then(|| self.nodes[*node].parent as usize)
        })
    }

    /// Returns the index of a node's task.
    pub fn task_of(&self, node: usize) -> usize {
        let root = self.up(node).last().unwrap_or(node);
        self.nodes[root].what as usize
    }

    /// True if the node is the root of a task's tree.
    pub fn is_root(&self, node: usize) -> bool {
        self.nodes[node].parent as usize == node
    }

    /// Returns the number of instructions of each task, in the order of the tasks.
    pub fn of_tasks(&self) -> Vec<u64> {
        let mut all = vec![0; self.tasks.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            all[self.task_of(at)] += node.own;
        }
        all
    }

    /// Returns the name of the function of a node; for a root, name of the task.
    pub fn name(&self, node: usize) -> &str {
        let Node { what, .. } = self.nodes[node];
        if self.is_root(node) {
            &self.tasks[what as usize]
        } else {
            &self.functions[what as usize].name
        }
    }

    /// Names from a node's task down to its function.
    pub fn path(&self, node: usize) -> Vec<&str> {
        let mut path: Vec<&str> = self.up(node).map(|at| self.name(at)).collect();
        path.reverse();
        path
    }

    /// Returns the number of instructions of each node, including all nodes below it.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        for at in (0..totals.len()).rev() {
            let parent = self.nodes[at].parent as usize;
            if parent != at {
                totals[parent] += totals[at];
            }
        }
        totals
    }

    /// Converts the profile to its stored format, JSON.
    pub fn to_json(&self) -> Result<Vec<u8>, ProfileError> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Reads a profile in its stored format. Fails if the format has a newer version, or if an index in it refers to an
    /// entry that does not exist.
    pub fn read(from: impl Read) -> Result<Self, ProfileError> {
        let mut bytes = Vec::new();
        from.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let profile: Self = serde_json::from_slice(&bytes)?;
        if profile.version > VERSION {
            return Err(ProfileError::Newer(profile.version));
        }
        for (at, node) in profile.nodes.iter().enumerate() {
            let (parent, what) = (node.parent as usize, node.what as usize);
            let most = if parent == at {
                profile.tasks.len()
            } else {
                profile.functions.len()
            };
            if parent > at {
                return Err(ProfileError::Contradiction("a function before its caller"));
            }
            if what >= most {
                return Err(ProfileError::Contradiction("a function without a name"));
            }
        }
        Ok(profile)
    }
}

/// Time in which every task of the workload waited until the task with this call stack continued.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Names of the task and of the functions in its call stack, outermost first. Empty for waits that are too small to
    /// be stored one by one, and for time that belongs to no known stack.
    pub stack: Vec<String>,
    /// Sum of the waits in nanoseconds.
    pub time: u64,
    /// Number of waits.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn sample() -> Profile {
        let function = |name: &str, instructions, calls| Function {
            name: name.to_owned(),
            module: None,
            is_program: false,
            instructions,
            calls,
        };
        Profile {
            elapsed: 100,
            idle: 10,
            functions: vec![
                function(USER, 50, 0),
                function("shrink_folio_list", 30, 3),
                function("handle_mm_fault", 10, 2),
            ],
            tasks: vec!["workload".to_owned(), "kswapd".to_owned()],
            nodes: [
                (0, 0, 0, 0),
                (0, 0, 50, 0),
                (1, 2, 10, 2),
                (3, 1, 0, 0),
                (3, 1, 30, 3),
            ]
            .map(Node::from)
            .into(),
            ..Profile::new()
        }
    }

    #[test]
    fn a_profile_survives_its_stored_form_and_adds_up() {
        let profile = sample();
        let back = Profile::read(&*profile.to_json().unwrap()).unwrap();
        assert_eq!(back, profile);
        assert_eq!((back.instructions(), back.gap()), (90, 0));
        assert_eq!(back.of_tasks(), [60, 30]);
        assert_eq!(back.path(2), ["workload", USER, "handle_mm_fault"]);
        assert_eq!(back.totals(), [60, 60, 10, 30, 30]);
    }

    #[test]
    fn a_kernel_without_a_list_of_functions_is_known_by_its_single_nameless_function() {
        let mut profile = sample();
        assert!(!profile.is_without_list());
        profile.functions.truncate(1);
        assert!(!profile.is_without_list());
        profile.functions.push(Function {
            name: UNNAMED.to_owned(),
            instructions: 40,
            ..Function::default()
        });
        assert!(profile.is_without_list());
    }

    #[test]
    fn a_profile_that_contradicts_itself_is_refused() {
        for change in [
            |profile: &mut Profile| profile.nodes[1].parent = 4,
            |profile: &mut Profile| profile.nodes[2].what = 3,
            |profile: &mut Profile| profile.tasks.truncate(1),
            |profile: &mut Profile| profile.version = 9,
        ] {
            let mut profile = sample();
            change(&mut profile);
            assert!(Profile::read(&*profile.to_json().unwrap()).is_err());
        }
        assert!(Profile::read(&b"{"[..]).is_err());
    }
}
