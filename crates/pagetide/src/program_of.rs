//! A program of the user's own as a scenario: its files become a root in the cache, its command a parameter.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use pagetide_campaign::shell;
use pagetide_quantity::{Bytes, Nanos};
use pagetide_root::{Host, Inside, Root, Roots, Tree, WORK};
use pagetide_scenario::Measure;

use crate::campaign_of::CampaignArgs;
use crate::exit::Usage;
use crate::lab::StoreArgs;

/// Name of the scenario that runs it.
pub const SCENARIO: &str = "program";
/// The least free space that a program finds.
const LEAST_SPACE: Bytes = Bytes::from_mib(32);

/// What a command line may say of a program.
#[derive(Args, Clone, Debug, Default)]
pub struct ProgramArgs {
    /// Your own program, unmodified, instead of scenarios; `{seed}` in it is the trial's seed
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Folder or tar archive (plain, gzip or zstd) with all that it finds, its libraries too; nothing is taken from here
    /// but what --file and --dir name
    #[arg(
        long,
        value_name = "DIR|TAR",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub root: Option<PathBuf>,
    /// File that it finds, with the libraries it needs: a relative path below its working folder, an absolute one where
    /// it lies here, or at INSIDE
    #[arg(
        long,
        value_name = "PATH[:INSIDE]",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub file: Vec<String>,
    /// The same for a folder with all that it holds
    #[arg(
        long,
        value_name = "PATH[:INSIDE]",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub dir: Vec<String>,
    /// Variable of its environment; it finds PATH, HOME, USER, LANG and TZ and nothing of yours
    #[arg(
        long,
        value_name = "NAME=VALUE",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub env: Vec<String>,
    /// Folder inside in which it starts [default: /work, where relative paths lie]
    #[arg(
        long,
        value_name = "INSIDE",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub folder: Option<String>,
    /// File here that it reads as its standard input [default: nothing to read]
    #[arg(
        long,
        value_name = "PATH",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub input: Option<String>,
    /// Free space for what it writes [default: as much as its files take, at least 32M]
    #[arg(
        long,
        value_name = "SIZE",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub space: Option<Bytes>,
    /// Status with which it must end [default: 0]
    #[arg(
        long,
        value_name = "N",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub expect_exit: Option<u8>,
    /// End it after so much time of the guest [default: 600s]
    #[arg(
        long,
        value_name = "TIME",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub time_limit: Option<Nanos>,
    /// Limit of its memory, within a larger machine (memory.max of a control group)
    #[arg(
        long,
        value_name = "SIZE",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub limit: Option<Bytes>,
    /// Memory above which it is slowed down and reclaimed (memory.high)
    #[arg(
        long,
        value_name = "SIZE",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub high: Option<Bytes>,
    /// Most swap that it may take (memory.swap.max)
    #[arg(
        long,
        value_name = "SIZE",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub swap_max: Option<Bytes>,
    /// Number to read from its output, such as 'ops=([0-9.]+) per second:higher'; it then decides instead of the
    /// elapsed time
    #[arg(
        long,
        value_name = "NAME=REGEX:higher|lower",
        requires = "command",
        help_heading = "Your own program"
    )]
    pub metric: Vec<String>,
}

/// A program that is ready to be run.
pub struct Ready {
    /// The campaign's words with those of the program.
    pub campaign: CampaignArgs,
    /// Metrics that decide, where they are the program's own.
    pub primary: Option<Vec<String>>,
}

/// A path, and where it lies inside.
fn places(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((path, inside)) if !path.is_empty() && !inside.is_empty() => (path, Some(inside)),
        _ => (text, None),
    }
}

impl ProgramArgs {
    /// Makes the program's root, and the parameters of its scenario; `say` is told of long steps.
    pub fn ready(
        &self,
        campaign: &CampaignArgs,
        places: &StoreArgs,
        say: &dyn Fn(&str),
    ) -> Result<Ready> {
        let mut campaign = campaign.clone();
        let mut set = |name: &str, value: String| campaign.param.push((name.to_owned(), value));
        let mut host = Host::here()?;
        if self.root.is_some() {
            host = host.alone();
        }
        let (root, command, input) = self.root(&mut host, places, say)?;
        set("command", shell(&command));
        set("root", root.digest);
        let folders: Vec<&str> = host.library_folders().collect();
        let mut environment = self.env.clone();
        if let Some(wrong) = environment.iter().find(|text| !text.contains('=')) {
            return Err(Usage::error(format!(
                "--env {wrong} has no value: write NAME=VALUE"
            )));
        }
        if !folders.is_empty()
            && !environment
                .iter()
                .any(|v| v.starts_with("LD_LIBRARY_PATH="))
        {
            environment.push(format!("LD_LIBRARY_PATH={}", folders.join(":")));
        }
        if !environment.is_empty() {
            set("environment", shell(&environment));
        }
        for (name, size) in [
            ("limit", self.limit),
            ("high", self.high),
            ("swap-max", self.swap_max),
        ] {
            if let Some(size) = size {
                set(name, size.0.to_string());
            }
        }
        if let Some(input) = input {
            set("input", input.to_string());
        }
        if let Some(folder) = &self.folder {
            set("folder", Inside::new(folder, WORK)?.to_string());
        }
        if let Some(status) = self.expect_exit {
            set("expect-exit", status.to_string());
        }
        if let Some(limit) = self.time_limit {
            set("time-limit", format!("{}ns", limit.0));
        }
        let mut names = Vec::new();
        for text in &self.metric {
            names.push(Measure::read(text).map_err(Usage::error)?.name);
        }
        if !names.is_empty() {
            set("metrics", shell(&self.metric));
        }
        Ok(Ready {
            campaign,
            primary: (!names.is_empty()).then_some(names),
        })
    }

    /// The root, the command with the path of its program inside, and the path of its input.
    fn root(
        &self,
        host: &mut Host,
        of: &StoreArgs,
        say: &dyn Fn(&str),
    ) -> Result<(Root, Vec<String>, Option<Inside>)> {
        let mut tree = Tree::default();
        let mut command = self.command.clone();
        let roots = Roots::of(&of.cache_folder()?);
        // What is unpacked there must be there when the image is made.
        let spool = roots.spool().map_err(wrong)?;
        if let Some(root) = &self.root {
            if root.is_dir() {
                let path = root.to_str().unwrap_or_default();
                host.dir(&mut tree, path, Some("/")).map_err(wrong)?;
            } else {
                tree.archive(root, spool.path()).map_err(wrong)?;
            }
        }
        for text in &self.dir {
            let (path, inside) = places(text);
            host.dir(&mut tree, path, inside).map_err(wrong)?;
        }
        for text in &self.file {
            let (path, inside) = places(text);
            host.file(&mut tree, path, inside).map_err(wrong)?;
        }
        let input = match &self.input {
            Some(path) => Some(host.file(&mut tree, path, None).map_err(wrong)?),
            None => None,
        };
        if let Some(word) = command.first_mut() {
            let path = if self.root.is_some() {
                tree.program(word)
            } else {
                host.program(&mut tree, word).map(|program| program.path)
            };
            *word = path.map_err(wrong)?.to_string();
        }
        tree.complete().map_err(wrong)?;
        for note in host.notes() {
            say(note);
        }
        for word in &command {
            if let Some(text) = absent(word, &tree) {
                say(&text);
            }
        }
        let space = self.space.unwrap_or(tree.size().max(LEAST_SPACE));
        let root = roots.make(&tree, space, say).map_err(wrong)?;
        Ok((root, command, input))
    }
}

/// What a user asked for wrongly.
fn wrong(why: pagetide_root::RootError) -> anyhow::Error {
    match why {
        why @ pagetide_root::RootError::Image { .. } => why.into(),
        why => Usage::error(why.to_string()),
    }
}

/// A word that names a file here which the program will not find inside.
fn absent(word: &str, tree: &Tree) -> Option<String> {
    let inside = Inside::new(word, WORK).ok()?;
    let is_there = tree
        .follow(&inside)
        .is_some_and(|path| tree.get(&path).is_some());
    let here = std::path::Path::new(word);
    (here.exists() && !is_there).then(|| {
        let option = if here.is_dir() { "--dir" } else { "--file" };
        format!("{word} is here and not inside: add {option} {word} if the program reads it")
    })
}
