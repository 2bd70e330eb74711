//! apt with a private state: its lists, caches and downloads are separate from the machine's, and it installs nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, SystemTime};

use pagetide_system::child::{self, Failure, Limits};

use crate::apt::Archive;
use crate::apt::sandbox::Sandbox;
use crate::deb::Control;
use crate::error::KernelError;
use crate::lock::Lock;
use crate::stop::Stop;

/// Time limit for a program that fetches: enough for a kernel source at 10 KB/s.
const FETCH_TIMEOUT: Duration = Duration::from_hours(6);
/// Time limit for a program that only reads files of this machine.
const QUERY_TIMEOUT: Duration = Duration::from_mins(5);
/// Maximum number of bytes read from a program's output. A listing of all packages of a suite with their descriptions
/// has 60 MB.
const MAX_PRINTED: usize = 128 << 20;

/// Runs apt's programs.
#[derive(Debug, Clone, Default)]
pub struct Programs {
    /// Folder that contains the programs; if empty, they are looked up in `PATH`.
    pub folder: PathBuf,
    /// Flag that kills a running program when it is set.
    pub stop: Stop,
}

impl Programs {
    /// Uses the programs in `PATH`. Running programs are killed when `stop` is set.
    pub fn stopping_by(stop: Stop) -> Self {
        Self {
            folder: PathBuf::new(),
            stop,
        }
    }

    pub(super) fn run(
        &self,
        program: &str,
        config: Option<&Path>,
        arguments: &[&str],
        at: &Path,
        stdin: Stdio,
    ) -> Result<Output, KernelError> {
        self.stop.check()?;
        let path = if self.folder.as_os_str().is_empty() {
            program.into()
        } else {
            self.folder.join(program)
        };
        let mut command = child::command(path);
        command
            .args(arguments)
            .current_dir(at)
            .env("LC_ALL", "C.UTF-8")
            .stdin(stdin);
        if let Some(config) = config {
            command.env("APT_CONFIG", config);
        }
        let limits = Limits {
            time: if program == "apt-get" {
                FETCH_TIMEOUT
            } else {
                QUERY_TIMEOUT
            },
            output: MAX_PRINTED,
            stop: &|| self.stop.is_set(),
        };
        child::run(&mut command, &limits).map_err(|failure| match failure {
            Failure::Stopped => KernelError::Stopped,
            Failure::Start(cause) => KernelError::NoApt {
                package: "Debian's kernels".to_owned(),
                program: program.to_owned(),
                cause,
            },
            failure => KernelError::Apt {
                attempt: format!("finish `{program} {}`", arguments.join(" ")),
                said: failure.to_string(),
            },
        })
    }
}

/// A private apt state for one set of package sources. One process at a time can use it.
#[derive(Debug)]
pub struct Apt {
    folder: PathBuf,
    place: String,
    /// Text of the requested `sources.list`. The file `sources.list` contains only those lines that could be fetched.
    asked: String,
    programs: Programs,
    sandbox: Sandbox,
    lock: Lock,
}

/// Name of the file whose lock marks a state as in use.
const HELD: &str = "held";
/// Folder of the package lists that are being fetched.
const PARTIAL_LISTS: &str = "lists/partial";
/// Name of the file that contains the requested `sources.list`.
const ASKED: &str = "asked.list";

/// Prefix of the settings that determine the user that apt fetches as.
const SANDBOX: &str = "APT::Sandbox";

/// Prefixes of those fetch settings of the machine that are not copied into the private configuration, because they
/// fetch more than package lists or belong to other commands. Other fetch settings (proxies, time-outs, validity
/// checks) are copied.
const NOT_TAKEN: [&str; 3] = [
    "Acquire::IndexTargets",
    "Acquire::Languages",
    "Acquire::Changelogs",
];

impl Apt {
    /// Returns true if a process is using the state in `folder`.
    pub fn is_held(folder: &Path) -> bool {
        matches!(Lock::try_existing(&folder.join(HELD)), Ok(None))
    }

    /// Opens or creates the state in `folder` for these package sources. Waits while another process uses it. `place`
    /// is the name of the state in messages. Fails if the path of `folder` contains a quote or a newline, which apt
    /// cannot read.
    pub fn open(
        folder: &Path,
        place: &str,
        sources: &str,
        programs: Programs,
    ) -> Result<Self, KernelError> {
        if folder.to_string_lossy().contains(['"', '\n']) {
            let cause = io::Error::new(
                io::ErrorKind::InvalidInput,
                "apt takes no quotes in names of folders",
            );
            return Err(KernelError::cache("making", folder)(cause));
        }
        for inner in [PARTIAL_LISTS, "cache/archives/partial"] {
            let path = folder.join(inner);
            fs::create_dir_all(&path).map_err(KernelError::cache("making", &path))?;
        }
        let lock_path = folder.join(HELD);
        let lock = Lock::wait(&lock_path).map_err(KernelError::cache("locking", &lock_path))?;
        let mut apt = Self {
            folder: folder.to_owned(),
            place: place.to_owned(),
            asked: sources.to_owned(),
            programs,
            sandbox: Sandbox::default(),
            lock,
        };
        if fs::read_to_string(apt.path(ASKED)).ok().as_deref() != Some(sources) {
            // The lists belong to other sources, so they are not used.
            apt.forget_lists()?;
            apt.write("sources.list", sources)?;
            apt.write(ASKED, sources)?;
        }
        apt.write("status", "")?;
        let machine = apt.machine_settings()?;
        apt.write("apt.conf", &apt.config(&machine))?;
        apt.sandbox = Sandbox::of(&machine);
        Ok(apt)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), KernelError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(KernelError::cache("writing", &path))
    }

    fn forget_lists(&self) -> Result<(), KernelError> {
        let path = self.path("updated");
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(KernelError::cache("removing", &path)(e))
            }
            _ => Ok(()),
        }
    }

    /// Returns the machine's settings `Acquire::*`, and `APT::Sandbox::*` with the user for fetching, as lines of an
    /// apt.conf. Settings in [`NOT_TAKEN`] are left out.
    fn machine_settings(&self) -> Result<String, KernelError> {
        let output = self.programs.run(
            "apt-config",
            None,
            &["dump", "Acquire", SANDBOX],
            &self.folder,
            Stdio::null(),
        )?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let taken = text.lines().filter(|line| {
            let key = line.split_whitespace().next().unwrap_or_default();
            (key.starts_with("Acquire::") || key.starts_with(SANDBOX))
                && !key.ends_with("::")
                && !line.ends_with("\"\";")
                && !NOT_TAKEN.iter().any(|not| key.starts_with(not))
        });
        Ok(taken.fold(String::new(), |all, line| all + line + "\n"))
    }

    /// Returns the text of the private configuration. The machine's configuration file is not used, so its hooks (which
    /// clean up or notify others after an update) do not run. `machine` contains the machine's settings for fetching.
    /// They override the time-outs and retries set here, but signatures are always required.
    fn config(&self, machine: &str) -> String {
        let folder = self.folder.display();
        format!(
            "Acquire::Retries \"2\";\n\
             Acquire::http::Timeout \"20\";\n\
             Acquire::https::Timeout \"20\";\n\
             {machine}\
             Dir::Etc::main \"/dev/null\";\n\
             Dir::Etc::parts \"/dev/null\";\n\
             Dir::Etc::sourcelist \"{folder}/sources.list\";\n\
             Dir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::preferences \"/dev/null\";\n\
             Dir::Etc::preferencesparts \"/dev/null\";\n\
             Dir::State \"{folder}\";\n\
             Dir::State::lists \"{folder}/lists\";\n\
             Dir::State::status \"{folder}/status\";\n\
             Dir::Cache \"{folder}/cache\";\n\
             Dir::Log \"{folder}\";\n\
             APT::Architecture \"amd64\";\n\
             APT::Architectures {{ \"amd64\"; }};\n\
             APT::Update::Error-Mode \"any\";\n\
             Acquire::AllowInsecureRepositories \"0\";\n\
             Acquire::AllowWeakRepositories \"0\";\n\
             Acquire::AllowDowngradeToInsecureRepositories \"0\";\n\
             Acquire::Languages \"none\";\n\
             Acquire::GzipIndexes \"true\";\n\
             Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n"
        )
    }

    /// Runs an apt program and returns its output. If the program fails, returns an error with apt's message.
    fn run(
        &self,
        attempt: &str,
        program: &str,
        arguments: &[&str],
        at: &Path,
    ) -> Result<String, KernelError> {
        let output = self.output(program, arguments, at)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(refusal(attempt, &output))
    }

    fn output(&self, program: &str, arguments: &[&str], at: &Path) -> Result<Output, KernelError> {
        // If this process is killed, apt continues for a while. It inherits the lock as its standard input, so the lock
        // stays held until apt ends.
        let lock = self
            .lock
            .share()
            .map_err(KernelError::cache("locking", &self.path(HELD)))?;
        let config = self.path("apt.conf");
        self.programs
            .run(program, Some(&config), arguments, at, lock.into())
    }

    /// Fetches packages and all their dependencies into a folder, which must contain the folder `partial`. apt checks
    /// signatures. Packages that are installed on the machine are fetched too. Nothing is installed.
    pub fn fetch_with_dependencies(
        &self,
        names: &[String],
        into: &Path,
    ) -> Result<(), KernelError> {
        let archives = format!("Dir::Cache::archives={}", into.display());
        let mut arguments = vec![
            "-q",
            "-y",
            "--no-install-recommends",
            "--download-only",
            "-o",
            &archives,
            "install",
            "--",
        ];
        arguments.extend(names.iter().map(String::as_str));
        let attempt = format!("fetch {}", names.join(", "));
        self.run(&attempt, "apt-get", &arguments, into)?;
        Ok(())
    }

    /// Returns the requested suites that could not be fetched in the last update.
    fn without(&self) -> Vec<String> {
        let had = fs::read_to_string(self.path("sources.list")).unwrap_or_default();
        let had: Vec<&str> = had.lines().map(|line| uri_and_suite(line).1).collect();
        let mut without: Vec<String> = self
            .asked
            .lines()
            .map(|line| uri_and_suite(line).1)
            .filter(|suite| !had.contains(suite))
            .map(str::to_owned)
            .collect();
        without.dedup();
        without
    }
}

/// Returns an error with apt's message.
fn refusal(attempt: &str, output: &Output) -> KernelError {
    let errors = String::from_utf8_lossy(&output.stderr);
    KernelError::Apt {
        attempt: attempt.to_owned(),
        said: its_words(&errors, &output.status.to_string()),
    }
}

/// Returns mirror and suite of a line of `sources.list`.
fn uri_and_suite(line: &str) -> (&str, &str) {
    let rest = line.split_once("] ").map_or(line, |(_, rest)| rest);
    let mut words = rest.split_whitespace();
    (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    )
}

/// Returns the lines of `sources.list` without those that apt could not reach or find, according to its messages in
/// `errors`. `None` if there are no such lines, or if a signature is wrong or has expired. The lines of the first suite
/// are never left out, because that suite is required.
fn reachable(sources: &str, errors: &str) -> Option<String> {
    let first = uri_and_suite(sources).1;
    if ["GPG error", "not signed", "expired"]
        .iter()
        .any(|fault| errors.contains(fault))
    {
        return None;
    }
    let failed = |line: &&str| {
        let (uri, suite) = uri_and_suite(line);
        suite != first
            && (errors.contains(&format!(
                "'{uri} {suite} Release' does not have a Release file"
            )) || errors.contains(&format!("Failed to fetch {uri}/dists/{suite}/")))
    };
    let left: String = sources
        .lines()
        .filter(|line| !failed(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    (left != sources).then_some(left)
}

impl Drop for Apt {
    fn drop(&mut self) {
        // apt's binary caches are large and take a second to create.
        for name in ["cache/pkgcache.bin", "cache/srcpkgcache.bin"] {
            let _ = fs::remove_file(self.path(name));
        }
        // If apt was stopped, this folder contains incomplete lists.
        for entry in fs::read_dir(self.path(PARTIAL_LISTS))
            .into_iter()
            .flatten()
            .flatten()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the first two errors or warnings in `errors`, the standard error of apt, without prefixes and in one line.
/// If there are none, returns the last line of `errors`, or `status` if `errors` is empty.
fn its_words(errors: &str, status: &str) -> String {
    let marked: Vec<&str> = errors
        .lines()
        // If the user for fetching has no access, apt fetches as root and prints this notice. It is not the cause of an
        // error.
        .filter(|line| !line.contains("performed unsandboxed"))
        .filter_map(|line| {
            line.strip_prefix("E: ")
                .or_else(|| line.strip_prefix("W: "))
        })
        .take(2)
        .collect();
    let words = if marked.is_empty() {
        errors.lines().next_back().unwrap_or(status).to_owned()
    } else {
        marked.join("; ")
    };
    words.trim().trim_end_matches('.').to_owned()
}

impl Archive for Apt {
    fn place(&self) -> String {
        match &self.without()[..] {
            [] => self.place.clone(),
            without => format!("{} (without {})", self.place, without.join(", ")),
        }
    }

    fn update(&mut self) -> Result<Vec<String>, KernelError> {
        let attempt = format!("update the list of packages in {}", self.place);
        let mut sources = self.asked.clone();
        loop {
            self.write("sources.list", &sources)?;
            let output = self.output("apt-get", &["-q", "update"], &self.folder)?;
            if output.status.success() {
                self.write("updated", "")?;
                return Ok(self.without());
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            if let Some(left) = reachable(&sources, &errors) {
                sources = left;
            } else if errors.contains("does not have a Release file") {
                return Err(KernelError::NoPackage {
                    wanted: self.place.clone(),
                    place: "the mirror this machine uses".to_owned(),
                    hint: "name a suite it has, such as bookworm, trixie or sid".to_owned(),
                });
            } else {
                return Err(refusal(&attempt, &output));
            }
        }
    }

    fn age(&self) -> Option<u64> {
        let updated = fs::metadata(self.path("updated")).ok()?.modified().ok()?;
        // After the clock was set back, lists may have a time in the future; they count as fresh.
        Some(
            SystemTime::now()
                .duration_since(updated)
                .unwrap_or_default()
                .as_secs(),
        )
    }

    fn names(&self, start: &str) -> Result<Vec<String>, KernelError> {
        // `search` instead of `pkgnames`: the latter also lists names that packages only depend on.
        let pattern = format!("^{}", start.replace('.', "\\.").replace('+', "\\+"));
        let text = self.run(
            "list packages",
            "apt-cache",
            &["search", "--names-only", &pattern],
            &self.folder,
        )?;
        Ok(text
            .lines()
            .filter_map(|line| line.split(" - ").next())
            .map(str::to_owned)
            .collect())
    }

    fn show(&self, names: &[&str]) -> Result<Vec<Control>, KernelError> {
        let arguments: Vec<&str> = ["show", "--"]
            .into_iter()
            .chain(names.iter().copied())
            .collect();
        match self.run("look up packages", "apt-cache", &arguments, &self.folder) {
            Ok(text) => Ok(text
                .split("\n\n")
                .filter(|p| !p.trim().is_empty())
                .map(Control::parse)
                .collect()),
            Err(KernelError::Apt { said, .. }) if said.contains("No packages found") => {
                Ok(Vec::new())
            }
            Err(e) => Err(e),
        }
    }

    fn download(&self, package: &Control, into: &Path) -> Result<PathBuf, KernelError> {
        let id = format!("{}={}", package.package, package.version);
        {
            let _lent = self.sandbox.lend(into);
            self.run(
                &format!("fetch {id}"),
                "apt-get",
                &["-q", "download", "--", &id],
                into,
            )?;
        }
        let entries = fs::read_dir(into).map_err(KernelError::cache("reading", into))?;
        let file = entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|e| e == "deb"));
        file.ok_or_else(|| KernelError::Apt {
            attempt: format!("fetch {id}"),
            said: "it left no file behind".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use pagetide_testing::program::write_program;

    /// Writes shell scripts that stand in for apt's programs to `folder`, and returns them as programs.
    fn programs(folder: &Path, scripts: &[(&str, &str)]) -> Programs {
        for (name, script) in scripts {
            write_program(&folder.join(name), &format!("#!/bin/sh\n{script}\n"));
        }
        Programs {
            folder: folder.to_owned(),
            stop: Stop::default(),
        }
    }

    const DUMP: &str = "cat <<'END'\nAcquire \"\";\nAcquire::http::Proxy \"http://proxy:3128\";\n\
                        Acquire::Languages:: \"de\";\nAcquire::IndexTargets::deb::Packages::MetaKey \"x\";\nEND";

    #[test]
    fn the_machines_proxy_is_kept_and_its_hooks_are_not_run() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = programs(bin.path(), &[("apt-config", DUMP)]);
        Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        let config = fs::read_to_string(state.path().join("apt.conf")).unwrap();
        assert!(
            config.contains("Acquire::http::Proxy \"http://proxy:3128\";"),
            "{config}"
        );
        assert!(
            !config.contains("MetaKey") && !config.contains("\"de\""),
            "{config}"
        );
        assert!(config.contains("Dir::Etc::parts \"/dev/null\""), "{config}");
    }

    #[test]
    fn apts_own_words_are_in_the_error_and_nothing_counts_as_updated() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let get = "echo 'W: Failed to fetch http://m/sid  Could not resolve host.' >&2; exit 100";
        let programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", get)]);
        let mut apt = Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        let text = apt.update().unwrap_err().to_string();
        assert!(
            text.contains("Could not resolve host") && text.contains("sid"),
            "{text}"
        );
        assert_eq!(apt.age(), None);
    }

    #[test]
    fn a_suite_the_mirror_does_not_have_is_told_from_a_network_that_is_down() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let get = "echo \"E: The repository 'http://m quokka Release' does not have a Release file.\" >&2; exit 100";
        let programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", get)]);
        let mut apt = Apt::open(state.path(), "Debian quokka", "deb x\n", programs).unwrap();
        let error = apt.update().unwrap_err();
        assert!(matches!(error, KernelError::NoPackage { .. }));
        assert!(error.to_string().contains("Debian quokka"), "{error}");
    }

    /// An apt whose mirror has no `sid-backports` and that cannot resolve the host of `sid-security`.
    const PARTLY: &str = "list=$(dirname $APT_CONFIG)/sources.list\n\
        grep -q sid-backports $list && { echo \"E: The repository 'http://m/debian sid-backports Release' does not have a Release file.\" >&2; exit 100; }\n\
        grep -q sid-security $list && { echo 'W: Failed to fetch http://s/debian-security/dists/sid-security/InRelease  Could not resolve' >&2; exit 100; }\n\
        exit 0";
    const WITH_PARTS: &str = "deb [signed-by=/k] http://m/debian sid main\n\
        deb [signed-by=/k] http://s/debian-security sid-security main\n\
        deb [signed-by=/k] http://m/debian sid-backports main\n";

    #[test]
    fn suites_beside_the_one_asked_for_that_cannot_be_had_are_named_and_done_without() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", PARTLY)]);
        let open = || Apt::open(state.path(), "Debian sid", WITH_PARTS, programs.clone()).unwrap();
        let mut apt = open();
        assert_eq!(apt.place(), "Debian sid");
        assert_eq!(apt.update().unwrap(), ["sid-security", "sid-backports"]);
        drop(apt);
        // The requested sources are the same, so the lists stay fresh and the missing suites stay known.
        let apt = open();
        assert!(apt.age().is_some());
        assert_eq!(
            apt.place(),
            "Debian sid (without sid-security, sid-backports)"
        );
    }

    #[test]
    fn a_suite_whose_signature_does_not_hold_is_never_done_without() {
        let gpg = "W: GPG error: http://s/debian-security sid-security InRelease: bad\n\
                   W: Failed to fetch http://s/debian-security/dists/sid-security/InRelease  x";
        assert_eq!(reachable(WITH_PARTS, gpg), None);
        let down = "W: Failed to fetch http://m/debian/dists/sid/InRelease  Could not resolve 'm'";
        assert_eq!(
            reachable(WITH_PARTS, down),
            None,
            "the suite itself is needed"
        );
    }

    #[test]
    fn a_machine_that_waives_signatures_does_not_waive_them_for_us() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dump = "echo 'Acquire::AllowInsecureRepositories \"1\";'";
        let programs = programs(bin.path(), &[("apt-config", dump)]);
        Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        let config = fs::read_to_string(state.path().join("apt.conf")).unwrap();
        let last = config
            .lines()
            .rfind(|line| line.starts_with("Acquire::AllowInsecure"));
        assert_eq!(last, Some("Acquire::AllowInsecureRepositories \"0\";"));
    }

    #[test]
    fn downloaders_run_as_the_user_that_the_machine_names() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (dump, line) in [
            (DUMP, None),
            (
                "echo 'APT::Sandbox::User \"fetch\";'",
                Some("APT::Sandbox::User \"fetch\";"),
            ),
        ] {
            let programs = programs(bin.path(), &[("apt-config", dump)]);
            Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
            let config = fs::read_to_string(state.path().join("apt.conf")).unwrap();
            let mut lines = config.lines();
            assert_eq!(lines.find(|line| line.contains("Sandbox::User")), line);
        }
    }

    #[test]
    fn apt_gives_its_folders_to_its_own_user_where_this_process_is_root() {
        use std::os::unix::fs::MetadataExt;
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let own = users.lines().find_map(|line| line.strip_prefix("_apt:x:"));
        let Some(number) = own.filter(|_| rustix::process::geteuid().is_root()) else {
            return pagetide_testing::skip(
                pagetide_testing::Need::Root,
                "it needs root and the user _apt",
            );
        };
        let state = tempfile::tempdir().unwrap();
        let sources = "deb file:/no-such-archive sid main\n";
        let mut apt = Apt::open(state.path(), "sid", sources, Programs::default()).unwrap();
        // There is nothing to fetch. The test checks which user apt would have used.
        apt.update().unwrap_err();
        let owner = fs::metadata(state.path().join(PARTIAL_LISTS))
            .unwrap()
            .uid();
        assert_eq!(Some(&*owner.to_string()), number.split(':').next());
    }

    #[test]
    fn an_apt_that_floods_is_ended_and_named() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let get = "exec cat /dev/zero";
        let programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", get)]);
        let mut apt = Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        let text = apt.update().unwrap_err().to_string();
        assert!(
            text.contains("apt-get -q update") && text.contains("printed more than"),
            "{text}"
        );
    }

    #[test]
    fn half_a_list_goes_when_apt_is_stopped() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let get = "echo half > $(dirname $APT_CONFIG)/lists/partial/list; exec sleep 1000";
        let mut programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", get)]);
        let half = state.path().join(PARTIAL_LISTS).join("list");
        let flag = Arc::new(AtomicBool::new(false));
        programs.stop = Stop::by(Arc::clone(&flag));
        let mut apt = Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        let seen = half.clone();
        let watcher = std::thread::spawn(move || {
            while !seen.is_file() {
                std::thread::sleep(Duration::from_millis(1));
            }
            flag.store(true, Ordering::Relaxed);
        });
        assert!(matches!(apt.update(), Err(KernelError::Stopped)));
        watcher.join().unwrap();
        drop(apt);
        assert!(!half.exists());
    }

    #[test]
    fn a_state_in_use_is_seen_to_be() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = programs(bin.path(), &[("apt-config", DUMP)]);
        assert!(!Apt::is_held(state.path()));
        let held = Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        assert!(Apt::is_held(state.path()));
        drop(held);
        assert!(!Apt::is_held(state.path()));
    }

    #[test]
    fn apt_itself_holds_the_state_in_case_it_outlives_us() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let get = "readlink /proc/self/fd/0 > input; cat; exit 0";
        let programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", get)]);
        let mut apt = Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        apt.update().unwrap();
        let input = fs::read_to_string(state.path().join("input")).unwrap();
        assert_eq!(
            Path::new(input.trim()),
            fs::canonicalize(state.path().join(HELD)).unwrap()
        );
    }

    #[test]
    fn lists_stay_fresh_until_the_sources_change() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", "exit 0")]);
        let open =
            |sources: &str| Apt::open(state.path(), "sid", sources, programs.clone()).unwrap();
        open("deb a\n").update().unwrap();
        assert!(open("deb a\n").age().is_some_and(|age| age < 60));
        assert_eq!(open("deb b\n").age(), None);
    }

    #[test]
    fn an_apt_that_takes_long_ends_soon_after_it_is_told_to_stop() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let get = "exec sleep 60";
        let mut programs = programs(bin.path(), &[("apt-config", DUMP), ("apt-get", get)]);
        let flag = Arc::new(AtomicBool::new(false));
        programs.stop = Stop::by(Arc::clone(&flag));
        let mut apt = Apt::open(state.path(), "sid", "deb x\n", programs).unwrap();
        let timer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            flag.store(true, Ordering::Relaxed);
        });
        let began = std::time::Instant::now();
        assert!(matches!(apt.update(), Err(KernelError::Stopped)));
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
        timer.join().unwrap();
    }

    #[test]
    fn a_machine_without_apt_is_told_what_else_to_give() {
        let (bin, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let programs = Programs {
            folder: bin.path().to_owned(),
            stop: Stop::default(),
        };
        let text = Apt::open(state.path(), "sid", "deb x\n", programs)
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("apt-config") && text.contains(".deb"),
            "{text}"
        );
    }
}
