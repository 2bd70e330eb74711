//! Runs jobs on a Slurm cluster, through Slurm's commands `sbatch`, `squeue`, `scancel` and `scontrol`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use pagetide_campaign::{Cluster, ClusterError};
use pagetide_store::shell;
use pagetide_system::child::{self, Limits};

/// Limits of the run time and output of one Slurm command. A busy controller can take long to answer.
const LIMITS: Limits<'static> = Limits {
    time: Duration::from_mins(1),
    output: 16 << 20,
    stop: &|| false,
};
/// Time after which a command fails if the controller does not answer. Until then the command is repeated.
const PATIENCE: Duration = Duration::from_mins(5);
/// Pause before a command is repeated because the controller did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of tasks in one job array if the controller does not state its `MaxArraySize`. Slurm's default is
/// 1001, and task numbers must be smaller than this.
const TASKS: u32 = 1000;

/// A Slurm cluster, or one partition of a cluster.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// Name of the partition that jobs are submitted to; `None` for the cluster's default partition.
    pub partition: Option<String>,
    /// Cache folder of this machine. The nodes must be able to read it.
    pub cache: PathBuf,
    /// Cache folder on each node.
    pub node_cache: PathBuf,
}

/// Creates the error of a Slurm command: its name, followed by the reason.
fn wrong(command: &str, why: &str) -> ClusterError {
    ClusterError(format!("{command} {}", why.trim()))
}

/// Runs a Slurm command and returns its output, also if its exit status is not zero. If the controller does not answer,
/// repeats the command for [`PATIENCE`]. Fails if the command cannot be run.
fn call(program: &str, words: &[&str]) -> Result<Output, ClusterError> {
    let began = Instant::now();
    loop {
        let output = child::run(child::command(program).args(words), &LIMITS);
        let output = output.map_err(|failure| {
            ClusterError(format!(
                "{program} {failure}: run this on a machine from which jobs are submitted to Slurm"
            ))
        })?;
        let said = String::from_utf8_lossy(&output.stderr);
        let is_silent = !output.status.success()
            && [
                "Unable to contact",
                "Socket timed out",
                "Connection refused",
                "Zero Bytes",
            ]
            .iter()
            .any(|words| said.contains(words));
        if !is_silent || began.elapsed() > PATIENCE {
            return Ok(output);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Runs a Slurm command and returns its standard output. Fails if the command's exit status is not zero.
fn answer(program: &str, words: &[&str]) -> Result<String, ClusterError> {
    let output = call(program, words)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(wrong(program, &format!("failed: {said}")))
}

/// Returns the value of `MaxArraySize` in the output of `scontrol show config`; `None` if the output has no such value.
fn array_size(config: &str) -> Option<u32> {
    let line = config
        .lines()
        .find(|line| line.trim_start().starts_with("MaxArraySize"))?;
    line.split_once('=')?.1.trim().parse().ok()
}

/// Copies this program into the folder of a batch, and returns the path of the copy. All tasks then run the same
/// version, even if another one is installed while the job runs.
fn program_in(folder: &Path) -> Result<PathBuf, ClusterError> {
    let copy = folder.join("pagetide");
    let copied = std::env::current_exe().and_then(|own| fs::copy(own, &copy));
    match copied {
        Ok(_) => Ok(copy),
        Err(error) => Err(ClusterError(format!(
            "copying this program to {} failed: {error}",
            copy.display()
        ))),
    }
}

impl Slurm {
    /// Returns the shell script that runs one task of a job array.
    fn script(&self, program: &Path, folder: &Path) -> String {
        let text = |path: &Path| shell(&[path.display().to_string()]);
        format!(
            "#!/bin/sh\nexec {} task {} \"$SLURM_ARRAY_TASK_ID\" --from {} --cache {}\n",
            text(program),
            text(folder),
            text(&self.cache),
            text(&self.node_cache)
        )
    }
}

impl Cluster for Slurm {
    fn most_tasks(&self) -> Result<u32, ClusterError> {
        let config = answer("scontrol", &["show", "config"])?;
        Ok(array_size(&config).map_or(TASKS, |size| size.saturating_sub(1).max(1)))
    }

    fn submit(&self, folder: &Path, tasks: u32) -> Result<String, ClusterError> {
        let folder = std::path::absolute(folder)
            .map_err(|error| ClusterError(format!("{} has no path: {error}", folder.display())))?;
        let program = program_in(&folder)?;
        let script = folder.join("job.sh");
        fs::write(&script, self.script(&program, &folder)).map_err(|error| {
            ClusterError(format!("writing {} failed: {error}", script.display()))
        })?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let (folder, script) = (folder.display().to_string(), script.display().to_string());
        let mut words = vec![
            "--parsable".to_owned(),
            format!("--array=1-{tasks}"),
            format!("--job-name=pagetide-{name}"),
            format!("--output={folder}/logs/%a"),
            "--open-mode=append".to_owned(),
            "--chdir=/".to_owned(),
            "--requeue".to_owned(),
            "--ntasks=1".to_owned(),
            "--cpus-per-task=1".to_owned(),
        ];
        words.extend(
            self.partition
                .iter()
                .map(|partition| format!("--partition={partition}")),
        );
        words.push(script);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = answer("sbatch", &words)?;
        // On a site with several clusters, the output has the form `JOB;CLUSTER`.
        let job = said.trim().split(';').next().unwrap_or_default();
        match job.parse::<u64>() {
            Ok(_) => Ok(job.to_owned()),
            Err(_) => Err(wrong("sbatch", &format!("printed no job: {said}"))),
        }
    }

    fn is_active(&self, job: &str) -> Result<bool, ClusterError> {
        let jobs = format!("--jobs={job}");
        let output = call("squeue", &["--noheader", "--format=%T", &jobs])?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(output.stdout.iter().any(|byte| !byte.is_ascii_whitespace())),
            // Some minutes after a job has ended, the controller does not know it anymore.
            false if said.contains("Invalid job id") => Ok(false),
            false => Err(wrong("squeue", &format!("failed: {said}"))),
        }
    }

    fn cancel(&self, job: &str) -> Result<(), ClusterError> {
        answer("scancel", &[job]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_arrays_is_read_from_the_configuration() {
        let config = "Configuration data as of 2026-11-28\nMaxArraySize            = 1001\nMaxJobCount = 10000\n";
        assert_eq!(array_size(config), Some(1001));
        assert_eq!(array_size("MaxJobCount = 10000\n"), None);
        assert_eq!(array_size("MaxArraySize = many\n"), None);
    }

    #[test]
    fn a_script_quotes_its_paths() {
        let slurm = Slurm {
            partition: None,
            cache: "/srv/it's here".into(),
            node_cache: "/var/tmp/cache".into(),
        };
        let script = slurm.script(Path::new("/s/pagetide"), Path::new("/s/batches/a b"));
        assert!(
            script.contains(r#"exec /s/pagetide task '/s/batches/a b' "$SLURM_ARRAY_TASK_ID""#),
            "{script}"
        );
        assert!(script.contains(r"--from '/srv/it'\''s here'"), "{script}");
    }
}
