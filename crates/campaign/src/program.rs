//! A user's own program as a scenario. Converts the request to parameters.

use std::path::Path;
use std::str::FromStr;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::text::exact_time;
use pagetide_store::shell;
use serde::{Deserialize, Serialize};

/// Name of the scenario that runs a user's own program.
pub const PROGRAM: &str = "program";
/// Name of the scenario that runs a described workload.
pub const WORKLOAD: &str = "workload";
/// Default primary metrics if one program runs beside another: the time of each.
const PAIR_TIMES: [&str; 2] = ["elapsed", "beside-elapsed"];

/// Request for a user's own program: its files, and how it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnProgram {
    /// Command and files of the program.
    pub files: ProgramFiles,
    /// Environment, limits and metrics of the program.
    pub spec: ProgramSpec,
}

/// Command and files of a program. Files and folders are written `PATH` or `PATH:INSIDE`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFiles {
    /// Words of the command; the first word names the program.
    pub command: Vec<String>,
    /// Words of a server's command; empty for no server. With a server, `command` is the load.
    pub server: Vec<String>,
    /// Words of the command of a second program that runs beside the first; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// Folder, archive or packages that contain all files of the program; `None` to collect its files from this
    /// machine.
    pub root: Option<String>,
    /// Files to add. The libraries that they need are added too.
    pub files: Vec<String>,
    /// Folders to add, with all their content.
    pub dirs: Vec<String>,
    /// File for the program's standard input, if any.
    pub input: Option<String>,
    /// Working directory of the program in the guest, if given.
    pub folder: Option<String>,
    /// Free space for the files that the program writes, if given.
    pub space: Option<Bytes>,
}

impl ProgramFiles {
    /// Makes relative paths of data files relative to `folder` if the files exist there. Other paths stay relative to
    /// pagetide's working directory. Paths inside the guest do not change.
    pub fn beside(&mut self, folder: &Path) {
        let here = |path: &str| {
            let there = folder.join(path);
            let is_moved = !path.starts_with('/') && there.exists();
            is_moved.then(|| there.display().to_string())
        };
        for text in self.files.iter_mut().chain(&mut self.dirs) {
            let whole = text.clone();
            let (path, inside) = whole.rsplit_once(':').unwrap_or((&whole, &whole));
            if let Some(there) = here(path) {
                *text = format!("{there}:{inside}");
            }
        }
        for text in self.root.iter_mut().chain(&mut self.input) {
            if let Some(there) = here(text) {
                *text = there;
            } else if let Some(there) = text.strip_prefix("oci:").and_then(here) {
                *text = format!("oci:{there}");
            }
        }
    }
}

/// Words of a command, parsed from one text that is quoted as for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine(pub Vec<String>);

impl FromStr for CommandLine {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match shlex::split(text) {
            Some(words) if !words.is_empty() => Ok(Self(words)),
            Some(_) => Err("it is empty: give a command"),
            None => Err("its quotes do not match: close each one"),
        }
    }
}

/// How a user's own program runs, apart from its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// Variables of the program's environment, `NAME=VALUE` each.
    pub env: Vec<String>,
    /// How to detect that the server is ready: `port N`, `line REGEX` or `file PATH`. `None` without a server.
    pub ready: Option<String>,
    /// Exit status that counts as success; `None` for the default.
    pub expect_exit: Option<u8>,
    /// Guest time after which the program is ended; `None` for the default.
    pub time_limit: Option<Nanos>,
    /// Memory limit of the program (`memory.max`).
    pub limit: Option<Bytes>,
    /// Memory above which the program is throttled and its pages are reclaimed (`memory.high`).
    pub high: Option<Bytes>,
    /// Swap limit of the program (`memory.swap.max`).
    pub swap_max: Option<Bytes>,
    /// Memory of the program that is reclaimed only if nothing else is left (`memory.low`); `None` for no protection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Bytes>,
    /// Memory of the program that is never reclaimed (`memory.min`); `None` for no protection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Bytes>,
    /// Limits of the second program's memory cgroup.
    #[serde(default, skip_serializing_if = "BesideLimits::is_none")]
    pub beside_limits: BesideLimits,
    /// Specifications of the numbers to read from the program's output, as the user wrote them.
    pub metrics: Vec<String>,
}

/// Limits of the memory cgroup of a program that runs beside another one; `None` for a limit that is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BesideLimits {
    /// Memory limit of the program (`memory.max`).
    pub limit: Option<Bytes>,
    /// Memory above which the program is throttled and its pages are reclaimed (`memory.high`).
    pub high: Option<Bytes>,
    /// Memory of the program that is reclaimed only if nothing else is left (`memory.low`).
    pub low: Option<Bytes>,
    /// Memory of the program that is never reclaimed (`memory.min`).
    pub min: Option<Bytes>,
    /// Swap limit of the program (`memory.swap.max`).
    pub swap_max: Option<Bytes>,
}

impl BesideLimits {
    /// True if no limit is set.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limits as text for the parameter `beside-limits`; `None` if no limit is set.
    fn text(&self) -> Option<String> {
        let limits = [
            ("max", self.limit),
            ("high", self.high),
            ("low", self.low),
            ("min", self.min),
            ("swap.max", self.swap_max),
        ];
        let given = limits
            .iter()
            .filter_map(|(key, size)| Some((key, (*size)?)));
        let words: Vec<String> = given
            .map(|(key, size)| format!("{key}={}", size.0))
            .collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Paths of a program and its files in a root, the file system that the guest mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramPlace {
    /// Digest of the root's content.
    pub root: String,
    /// Words of the command, with the program's path inside the root.
    pub command: Vec<String>,
    /// Words of the server's command, with its path inside the root; empty for no server.
    pub server: Vec<String>,
    /// Words of the command of a second program that runs beside the first, with its path inside the root; empty for
    /// none.
    pub beside: Vec<String>,
    /// Path of the file for standard input, inside the root, if any.
    pub input: Option<String>,
    /// Working directory of the program, as a path inside the root, if given.
    pub folder: Option<String>,
    /// Folders inside the root with libraries that the program's loader does not find by itself.
    pub library_folders: Vec<String>,
}

/// Error: an environment variable of a program is given without a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--env {text} has no value: write NAME=VALUE")]
pub struct NoValue {
    /// Text of the variable as the user gave it.
    pub text: String,
}

impl ProgramSpec {
    /// Returns the names of the metrics that decide: those read from the program's output. If there are none and one
    /// program runs beside the other (`is_pair`), the times of both. `None` if the scenario's own metrics decide.
    pub fn primary(&self, is_pair: bool) -> Option<Vec<String>> {
        let name = |text: &String| text.split('=').next().unwrap_or_default().to_owned();
        if self.metrics.is_empty() {
            return is_pair.then(|| PAIR_TIMES.map(str::to_owned).to_vec());
        }
        Some(self.metrics.iter().map(name).collect())
    }

    /// Returns the parameters of the scenario [`PROGRAM`] for this program. `place` has the paths in the root. Fails if
    /// an environment variable has no value.
    pub fn params(&self, place: &ProgramPlace) -> Result<Vec<(String, String)>, NoValue> {
        let mut environment = self.env.clone();
        if let Some(text) = environment.iter().find(|text| !text.contains('=')) {
            let text = text.clone();
            return Err(NoValue { text });
        }
        let is_own = |text: &String| text.starts_with("LD_LIBRARY_PATH=");
        if !place.library_folders.is_empty() && !environment.iter().any(is_own) {
            let folders = place.library_folders.join(":");
            environment.push(format!("LD_LIBRARY_PATH={folders}"));
        }
        let quoted = |words: &[String]| (!words.is_empty()).then(|| shell(words));
        let bytes = |size: Option<Bytes>| size.map(|size| size.0.to_string());
        let params = [
            ("command", Some(shell(&place.command))),
            ("server", quoted(&place.server)),
            ("ready", self.ready.clone()),
            ("root", Some(place.root.clone())),
            ("environment", quoted(&environment)),
            ("limit", bytes(self.limit)),
            ("high", bytes(self.high)),
            ("swap-max", bytes(self.swap_max)),
            ("low", bytes(self.low)),
            ("min", bytes(self.min)),
            ("beside", quoted(&place.beside)),
            ("beside-limits", self.beside_limits.text()),
            ("input", place.input.clone()),
            ("folder", place.folder.clone()),
            ("expect-exit", self.expect_exit.map(|n| n.to_string())),
            ("time-limit", self.time_limit.map(exact_time)),
            ("metrics", quoted(&self.metrics)),
        ];
        let given = params.into_iter();
        Ok(given
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_written_as_people_write_times() {
        for (limit, text) in [
            (Nanos::from_secs(5), "5s"),
            (Nanos::from_millis(1500), "1500ms"),
            (Nanos(1_000_000_001), "1000000001ns"),
        ] {
            let spec = ProgramSpec {
                time_limit: Some(limit),
                ..ProgramSpec::default()
            };
            let params = spec.params(&ProgramPlace::default()).unwrap();
            let told = params.iter().find(|(name, _)| *name == "time-limit");
            assert_eq!(told.unwrap().1, text);
            assert_eq!(text.parse(), Ok(limit));
        }
    }

    #[test]
    fn data_beside_a_campaign_file_is_found_there_and_lies_inside_as_before() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["numbers", "in", "root.tar"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let own =
            |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
        let mut files = ProgramFiles {
            files: own(&["numbers", "numbers:/etc/n", "/numbers", "absent"]),
            root: Some("root.tar".to_owned()),
            input: Some("in".to_owned()),
            ..ProgramFiles::default()
        };
        files.beside(folder.path());
        let there = |name: &str| folder.path().join(name).display().to_string();
        let numbers = there("numbers");
        assert_eq!(
            files.files,
            own(&[
                &format!("{numbers}:numbers"),
                &format!("{numbers}:/etc/n"),
                "/numbers",
                "absent"
            ])
        );
        assert_eq!(
            (files.root, files.input),
            (Some(there("root.tar")), Some(there("in")))
        );
        let mut packages = ProgramFiles {
            root: Some("deb:sqlite3".to_owned()),
            ..ProgramFiles::default()
        };
        packages.beside(folder.path());
        assert_eq!(packages.root.as_deref(), Some("deb:sqlite3"));
        packages.root = Some("oci:root.tar".to_owned());
        packages.beside(folder.path());
        assert_eq!(packages.root, Some(format!("oci:{}", there("root.tar"))));
    }

    #[test]
    fn only_what_was_asked_for_becomes_a_parameter() {
        let place = ProgramPlace {
            root: "ab".to_owned(),
            command: vec!["/bin/echo".to_owned(), "it's".to_owned()],
            library_folders: vec!["/opt/lib".to_owned()],
            ..ProgramPlace::default()
        };
        let spec = ProgramSpec {
            high: Some(Bytes::from_mib(1)),
            ..ProgramSpec::default()
        };
        let params = spec.params(&place).unwrap();
        let params: Vec<(&str, &str)> = params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            params,
            [
                ("command", r"/bin/echo 'it'\''s'"),
                ("root", "ab"),
                ("environment", "LD_LIBRARY_PATH=/opt/lib"),
                ("high", "1048576"),
            ]
        );
        let wrong = ProgramSpec {
            env: vec!["HOME".to_owned()],
            ..ProgramSpec::default()
        };
        assert!(wrong.params(&place).is_err());
    }
}
