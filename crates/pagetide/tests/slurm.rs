//! Tests with a real Slurm on this machine. Each test starts a controller and two nodes with one processor, and ends
//! them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{KERNEL, Lab, SCAN, TINY, program, wait_until};
use pagetide_testing::program::write_program;
use pagetide_testing::{Need, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Time limit against tests that never end. It measures nothing, and is long because the machine may be busy.
const SOON: Duration = Duration::from_mins(10);

/// The daemons of a test cluster. Dropping this value ends them.
struct Slurm {
    folder: PathBuf,
    conf: PathBuf,
    daemons: Vec<(String, Child)>,
}

/// Number of a TCP port that is not in use now.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn is_there(name: &str) -> bool {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    folders
        .iter()
        .any(|folder| Path::new(folder).join(name).exists())
}

impl Slurm {
    /// Starts a cluster in `folder`. If this machine cannot run one, prints the reason and returns `None`.
    fn start(folder: &Path) -> Option<Self> {
        let missing = ["munged", "slurmctld", "slurmd", "sbatch"]
            .iter()
            .find(|name| !is_there(name));
        if let Some(name) = missing {
            skip(
                Need::Slurm,
                format!("{name} is not installed (slurm-wlm, munge)"),
            );
            return None;
        }
        if !rustix::process::getuid().is_root() {
            skip(Need::Slurm, "only root starts a cluster".to_owned());
            return None;
        }
        let folder = folder.join("slurm");
        for name in ["state", "log", "spool-n1", "spool-n2"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, at) = (host.trim().split('.').next().unwrap(), folder.display());
        let (control, n1, n2) = (port(), port(), port());
        let conf = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={control}\nAuthType=auth/munge\n\
             AuthInfo=socket={at}/munge.socket\nSlurmUser=root\nSlurmdUser=root\nStateSaveLocation={at}/state\n\
             SlurmdSpoolDir={at}/spool-%n\nSlurmctldPidFile={at}/slurmctld.pid\nSlurmdPidFile={at}/slurmd-%n.pid\n\
             SlurmctldLogFile={at}/log/slurmctld\nSlurmdLogFile={at}/log/slurmd-%n\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\n\
             SlurmdTimeout=10\nKillWait=5\nMaxArraySize=7\nMpiDefault=none\nSchedulerParameters=sched_interval=2\n\
             PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=1 State=UNKNOWN\n\
             NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=1 State=UNKNOWN\n\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1\n\
             PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF\n"
        );
        let path = folder.join("slurm.conf");
        fs::write(&path, conf).unwrap();
        let key = folder.join("munge.key");
        fs::write(&key, [7; 64]).unwrap();
        std::os::unix::fs::chown(&key, Some(0), Some(0)).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
        let mut slurm = Self {
            conf: path,
            folder: folder.clone(),
            daemons: Vec::new(),
        };
        let file = |name: &str| folder.join(name).display().to_string();
        slurm.daemon(
            "munged",
            "munged",
            &[
                "--foreground",
                "--force",
                &format!("--key-file={}", file("munge.key")),
                &format!("--socket={}", file("munge.socket")),
                &format!("--pid-file={}", file("munged.pid")),
                &format!("--seed-file={}", file("munge.seed")),
                &format!("--log-file={}", file("log/munged")),
            ],
        );
        let socket = folder.join("munge.socket");
        wait_until("munge's socket", SOON, || socket.exists());
        slurm.daemon("slurmctld", "slurmctld", &["-D", "-f", &file("slurm.conf")]);
        wait_until("the controller", SOON, || {
            slurm.says("sinfo", &[]).is_some()
        });
        slurm.node("n1");
        slurm.node("n2");
        wait_until("two idle nodes", SOON, || slurm.idle() == 2);
        Some(slurm)
    }

    fn daemon(&mut self, name: &str, program: &str, words: &[&str]) {
        let log = fs::File::create(self.folder.join("log").join(format!("{name}.out"))).unwrap();
        let child = Command::new(format!("/usr/sbin/{program}"))
            .args(words)
            .env("SLURM_CONF", &self.conf)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemons.push((name.to_owned(), child));
    }

    fn node(&mut self, name: &str) {
        let conf = self.conf.display().to_string();
        self.daemon(name, "slurmd", &["-D", "-N", name, "-f", &conf]);
    }

    /// Standard output of one Slurm command; `None` if the command fails.
    fn says(&self, program: &str, words: &[&str]) -> Option<String> {
        let output = Command::new(program)
            .args(words)
            .env("SLURM_CONF", &self.conf)
            .output()
            .unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Number of nodes that are idle.
    fn idle(&self) -> usize {
        let nodes = self.says(
            "sinfo",
            &["--noheader", "--Node", "--partition=main", "--format=%N %T"],
        );
        nodes
            .unwrap_or_default()
            .lines()
            .filter(|line| line.trim_end().ends_with(" idle"))
            .count()
    }

    /// Number of running tasks.
    fn running(&self) -> usize {
        let tasks = self.says(
            "squeue",
            &["--noheader", "--array", "--states=RUNNING", "--format=%i"],
        );
        tasks.unwrap_or_default().lines().count()
    }

    /// Simulates a power failure of a node: kills its daemon, the tasks on it, and every `slurmstepd` of this cluster.
    fn cut(&mut self, name: &str) {
        let place = self
            .daemons
            .iter()
            .position(|(daemon, _)| daemon == name)
            .unwrap();
        let (_, mut daemon) = self.daemons.remove(place);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        for process in processes_with(&format!("SLURMD_NODENAME={name}"), &self.conf) {
            let _ = kill_process(process, Signal::KILL);
        }
        for process in steps(&self.conf) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        let _ = self.says("scancel", &["--user=root", "--full"]);
        for (_, daemon) in self.daemons.iter_mut().rev() {
            if let Some(pid) = Pid::from_raw(i32::try_from(daemon.id()).unwrap_or(0)) {
                let _ = kill_process(pid, Signal::TERM);
            }
            let _ = daemon.wait();
        }
    }
}

/// Processes of the cluster with configuration `conf` whose environment contains `variable`, given as NAME=VALUE.
fn processes_with(variable: &str, conf: &Path) -> Vec<Pid> {
    let conf = variable_of(conf);
    let is_one = |environment: &[u8]| has(environment, variable) && has(environment, &conf);
    pids(is_one, "environ")
}

/// Processes `slurmstepd` of the cluster with this configuration file. Those of another cluster on this machine are not
/// among them.
fn steps(conf: &Path) -> Vec<Pid> {
    let steps = pids(|command| command.starts_with(b"slurmstepd"), "comm");
    let of_cluster = pids(
        |environment| has(environment, &variable_of(conf)),
        "environ",
    );
    steps
        .into_iter()
        .filter(|step| of_cluster.contains(step))
        .collect()
}

/// The variable by which processes of a cluster find its configuration file.
fn variable_of(conf: &Path) -> String {
    format!("SLURM_CONF={}", conf.display())
}

/// True if an environment, as in `/proc/PID/environ`, has this variable with this value.
fn has(environment: &[u8], variable: &str) -> bool {
    environment
        .split(|byte| *byte == 0)
        .any(|part| part == variable.as_bytes())
}

fn pids(is_one: impl Fn(&[u8]) -> bool, file: &str) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if fs::read(entry.path().join(file)).is_ok_and(|bytes| is_one(&bytes)) {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// Command line of a campaign with `2 * seeds` trials.
fn campaign(seeds: u32) -> Vec<String> {
    let seeds = seeds.to_string();
    let words = [
        &[
            "run",
            "random",
            "--exit-zero",
            "--name",
            "array",
            "--seeds",
            &seeds,
            "--observe=none",
        ][..],
        &["--set", "vm.page-cluster=0", "--vs", "vm.page-cluster=3"],
        &TINY,
    ];
    words.concat().into_iter().map(str::to_owned).collect()
}

/// Command line of the same campaign, run on the cluster.
fn on_slurm(lab: &Lab, seeds: u32) -> Vec<String> {
    let nodes = lab.folder().join("node-cache").display().to_string();
    let more = ["--on", "slurm", "--node-cache", &nodes].map(str::to_owned);
    [campaign(seeds), more.to_vec()].concat()
}

/// Key and digest of each record of a store, sorted.
fn digests(lab: &Lab, store: &str) -> Vec<(String, String)> {
    let (list, _) = lab.ends(
        0,
        [
            "list", "records", "--json", "--limit", "1000", "--store", store,
        ],
    );
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    let text = |record: &Value, name: &str| record[name].as_str().unwrap().to_owned();
    let mut all: Vec<_> = records
        .iter()
        .map(|record| {
            // A squeeze tries sizes at which the workload dies.
            let may_die = store.starts_with("squeeze");
            assert!(may_die || record["invalid"].is_null(), "{record}");
            (text(record, "key"), text(record, "digest"))
        })
        .collect();
    all.sort_unstable();
    all
}

fn submit(lab: &Lab, slurm: &Slurm, words: &[String]) -> assert_cmd::Command {
    let mut command = lab.pagetide(words);
    command.env("SLURM_CONF", &slurm.conf);
    command
}

fn ends(command: &mut assert_cmd::Command, code: i32) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn a_cluster_gives_the_digests_of_a_local_run() {
    let Some(lab) = Lab::that_runs() else {
        return;
    };
    let Some(slurm) = Slurm::start(lab.folder()) else {
        return;
    };
    let words = [campaign(2), vec!["--store".into(), "local".into()]].concat();
    lab.ends(0, words);
    let said = ends(&mut submit(&lab, &slurm, &on_slurm(&lab, 2)), 0);
    assert!(said.contains("4 trials in "), "{said}");
    assert_eq!(digests(&lab, "store"), digests(&lab, "local"));
    assert!(!lab.store().join("batches/array").exists());
}

#[test]
#[ignore = "test-all"]
fn a_cluster_whose_tasks_are_killed_cancelled_and_preempted_loses_and_doubles_nothing() {
    let Some(lab) = Lab::that_runs() else {
        return;
    };
    let Some(mut slurm) = Slurm::start(lab.folder()) else {
        return;
    };
    let local = [campaign(20), vec!["--store".into(), "local".into()]].concat();
    lab.ends(0, local);
    let words = on_slurm(&lab, 20);
    let done = lab.store().join("batches/array/done");
    let records = || fs::read_dir(&done).map_or(0, Iterator::count);
    let start = |lab: &Lab, slurm: &Slurm| {
        Command::new(program())
            .args(&words)
            .env("PAGETIDE_STORE", lab.store())
            .env("PAGETIDE_CACHE", lab.cache())
            .env("SLURM_CONF", &slurm.conf)
            .current_dir(lab.folder())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };

    // Ctrl-C cancels the job. Running the same command again continues the campaign.
    let mut run = start(&lab, &slurm);
    wait_until("three records", SOON, || records() >= 3);
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    wait_until("the end of all tasks", SOON, || slurm.running() == 0);

    // If the submitting process is killed, its job continues, and the next process waits for this job. Meanwhile a task
    // is preempted and a node fails.
    let mut run = start(&lab, &slurm);
    wait_until("running tasks", SOON, || {
        slurm.running() == 2 && records() >= 1
    });
    run.kill().unwrap();
    run.wait().unwrap();
    let urgent = [
        "--parsable",
        "--partition=urgent",
        "--wrap=sleep 5",
        "--output=/dev/null",
    ];
    slurm.says("sbatch", &urgent).unwrap();
    let mut run = start(&lab, &slurm);
    wait_until("more records", SOON, || records() >= 4);
    slurm.cut("n2");
    std::thread::sleep(Duration::from_secs(12));
    slurm.node("n2");
    let status = run.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(digests(&lab, "store"), digests(&lab, "local"));
    assert!(!done.exists());
}

#[test]
#[ignore = "test-all"]
fn a_node_that_cannot_run_the_trials_is_named() {
    let Some(lab) = Lab::that_runs() else {
        return;
    };
    let Some(slurm) = Slurm::start(lab.folder()) else {
        return;
    };
    let words = on_slurm(&lab, 2);
    let only_there = |value: &Path| format!("ALL,PAGETIDE_QEMU={}", value.display());
    // Case 1: the node has no emulator.
    let nowhere = only_there(Path::new("/nowhere/qemu"));
    let said = ends(
        submit(&lab, &slurm, &words).env("SBATCH_EXPORT", nowhere),
        2,
    );
    assert!(
        said.contains("/nowhere/qemu") && said.contains("(on node n"),
        "{said}"
    );

    // Case 2: the node has another version of the emulator than the submitting machine.
    let other = lab.folder().join("qemu");
    let script = "#!/bin/sh\nif [ \"$1\" = --version ]; then\n  echo 'QEMU emulator version 7.2.99'\n  exit 0\nfi\n\
                  exec /usr/bin/qemu-system-x86_64 \"$@\"\n";
    write_program(&other, script);
    let said = ends(
        submit(&lab, &slurm, &words).env("SBATCH_EXPORT", only_there(&other)),
        2,
    );
    assert!(
        said.contains("its emulator is") && said.contains("7.2.99"),
        "{said}"
    );

    // Case 3: the node's disk is full.
    let Some(disk) = SmallDisk::mount(&lab.folder().join("small")) else {
        return;
    };
    let small = ["--node-cache".to_owned(), disk.0.display().to_string()];
    let full: Vec<String> = [
        campaign(2),
        vec!["--on".into(), "slurm".into()],
        small.to_vec(),
    ]
    .concat();
    let said = ends(&mut submit(&lab, &slurm, &full), 2);
    assert!(said.contains("No space left"), "{said}");

    // No record was stored. Afterwards, nodes without these faults produce all records.
    assert_eq!(digests(&lab, "store"), []);
    ends(&mut submit(&lab, &slurm, &words), 0);
    assert_eq!(digests(&lab, "store").len(), 4);
}

/// Output of a command as JSON, without the command line and the IDs of records, which depend on the wall-clock time.
fn answer(text: &str) -> Value {
    fn prune(value: &mut Value) {
        match value {
            Value::Object(keys) => {
                keys.retain(|key, _| !["command", "campaign"].contains(&key.as_str()));
                keys.values_mut().for_each(prune);
            }
            Value::Array(values) => values.iter_mut().for_each(prune),
            Value::String(text)
                if text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                text.clear();
            }
            _ => {}
        }
    }
    let mut answer = serde_json::from_str(text).unwrap();
    prune(&mut answer);
    answer
}

#[test]
#[ignore = "test-all"]
fn searches_on_a_cluster_give_the_records_and_the_answers_of_local_ones() {
    let Some(lab) = Lab::that_runs() else {
        return;
    };
    let Some(slurm) = Slurm::start(lab.folder()) else {
        return;
    };
    fs::write(lab.folder().join("space.toml"), SCAN).unwrap();
    let pressed = ["random", "--set", "vm.page-cluster=0"];
    let compared = ["--vs", "vm.page-cluster=3", "--until-sure", "--exit-zero"];
    let varied = ["--only", "--vary", "vm.page-cluster=3,0"];
    let more = ["--vary", "vm.swappiness=10,150"];
    let hunt = "hunt --vs vm.page-cluster=0 --space space.toml --budget 2 --cases 1 --output cases";
    let hunt: Vec<&str> = hunt.split(' ').collect();
    let bisect = "bisect --good debian:bookworm --bad debian:sid smooth-sin-random --seeds 6";
    let bisect: Vec<&str> = bisect.split(' ').collect();
    let searches: [(&str, i32, Vec<&str>); 5] = [
        (
            "until-sure",
            0,
            [&["run"], &pressed[..], &compared, &TINY].concat(),
        ),
        (
            "squeeze",
            0,
            [&["squeeze", "random", "--seeds", "2"], &TINY[..]].concat(),
        ),
        (
            "matrix",
            0,
            [&["matrix", "random"], &varied[..], &more, &TINY].concat(),
        ),
        ("hunt", 1, hunt),
        ("bisect", 0, [&bisect[..], &TINY].concat()),
    ];
    let nodes = lab.folder().join("node-cache").display().to_string();
    let nodes = ["--on", "slurm", "--node-cache", &nodes];
    for (name, code, words) in searches {
        let all = |store: &str, more: &[&str]| -> Vec<String> {
            let own = ["--kernel", KERNEL, "--json", "--store", store];
            let words = [&words[..], &own, more].concat();
            words.into_iter().map(str::to_owned).collect()
        };
        let (here, there) = (format!("{name}-local"), format!("{name}-there"));
        let local = lab.ends(code, all(&here, &[])).0;
        let output = submit(&lab, &slurm, &all(&there, &nodes)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{name}: {said}");
        assert!(said.contains(" tasks"), "{name}: {said}");
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(answer(&told), answer(&local), "{name}");
        let (local, there) = (digests(&lab, &here), digests(&lab, &there));
        assert!(local.len() > 3, "{name}: {local:?}");
        // A squeeze runs sizes ahead that it may not need.
        let lacks: Vec<_> = local.iter().filter(|one| !there.contains(one)).collect();
        assert!(lacks.is_empty(), "{name}: {lacks:?} of {there:?}");
        let is_ahead = name == "squeeze" && there.len() > local.len();
        assert!(is_ahead || there.len() == local.len(), "{name}: {there:?}");
    }
}

/// A file system of 1 MiB. Dropping this value unmounts it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts the file system. If that is not permitted, prints the reason and returns `None`.
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "none"])
            .arg(at)
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Self(at.to_owned()));
        }
        skip(Need::Root, "mounting is not permitted".to_owned());
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
