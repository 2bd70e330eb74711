//! `pagetide hunt`: searches for workloads on which a kernel fails.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use pagetide_campaign::{Adjustment, CONTROL, Campaign, Observe};
use pagetide_hunt::{
    Budget, Compared, Extent, Goal, Guidance, HuntRequest, Hunted, Meter, News, Plan, Reached,
    table,
};
use pagetide_outside::{FileOrigin, read_text};
use pagetide_report::html::of_case;
use pagetide_store::{Store, whole_file};
use serde::Serialize;

use crate::campaign_args::CampaignArgs;
use crate::exit::{End, Usage};
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::session::Session;

/// Maximum size in bytes of a space file, which states what a hunt may vary.
const MAX_SPACE: u64 = 1 << 20;

/// Search for workloads, settings and machines on which a kernel fails, and find the smallest case of each
///
/// With one kernel, it looks for failures of this kernel. With two variants (two --kernel, --vs or --patch), it looks
/// for workloads on which the last is worse than the first. Candidates are workloads of the language that
/// `docs/workload.md` describes, with settings and a machine. A candidate that seems to fail is repeated with 8 fresh
/// seeds, and counts if it fails with at least 6. It is then made simpler until nothing can be left out. For each case
/// a folder has case.toml (for `pagetide run`), case.c (one file without dependencies), mail.txt, and page.html, for
/// which one more trial of each variant is observed. The same seed and number of trials give the same hunt. Trials with a
/// record are not run again, so the same command continues a stopped hunt. With --profile, the instructions of all trials
/// are counted: the search also learns which kernel functions ran, and the account says which functions that a patch
/// changes never ran.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide hunt --kernel debian:bookworm/6.12 --goal killed --budget 2000
  pagetide hunt --kernel debian:bookworm --kernel debian:sid --goal regressed --budget 2h
  pagetide hunt --patch my.patch --budget 30m --space anonymous.toml
  pagetide hunt --kernel debian:sid --goal stall --memory 16M --swap zram --swap none --also debian:bookworm --json

Goals, each with a number from the records and a limit: killed (although memory could be reclaimed), stall, far-from-opt, unfair,
regressed (needs two variants), unstable. docs/hunt.md has their definitions and the keys of a space file.")]
pub struct Args {
    /// What to look for: killed, stall, far-from-opt, unfair, regressed or unstable [default: regressed with two
    /// variants, else killed]
    #[arg(long, value_name = "GOAL", help_heading = "Search")]
    goal: Option<Goal>,
    /// How long to look: a number of trials, or a time such as 30m or 2h
    #[arg(
        long,
        value_name = "TRIALS|TIME",
        default_value = "30m",
        help_heading = "Search"
    )]
    budget: Budget,
    /// File that says what may vary, such as sizes, phases and settings
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    space: Option<PathBuf>,
    /// Random seed of the search
    #[arg(long, value_name = "N", default_value = "1", help_heading = "Search")]
    seed: u64,
    /// Number of cases after which the hunt ends
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Search")]
    cases: u16,
    /// Draw all candidates at random, for comparison with the search
    #[arg(long, help_heading = "Search")]
    at_random: bool,
    /// Another kernel on which each case is tried at the end
    #[arg(long, value_name = "K", help_heading = "Search")]
    also: Vec<String>,
    /// Folder for the files of the cases [default: the name of the hunt]
    #[arg(long, short, value_name = "DIR", help_heading = "Search")]
    output: Option<PathBuf>,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// JSON output of the command: the hunt, and the folders of the cases found.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    hunted: &'a Hunted,
    folders: Vec<PathBuf>,
}

/// Runs the command and returns how it ended.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut session = Session::begin(places, &args.arena)?;
    let mut request = args.campaign.request()?;
    request.no_control = true;
    let machine = request.adjustment.clone();
    let is_profiled = is_profiled(machine.profile)?;
    let workload = ["workload".to_owned()];
    let mut campaign = session.lab.campaign(&request, &workload)?;
    if let [alone] = campaign.variants.as_mut_slice() {
        alone.name.clone_from(&alone.kernel);
    }
    let asked = campaign.clone();
    if session.build(&mut campaign)?.failed > 0 {
        return Ok(End::Unable);
    }
    let mut request = args.hunt(&campaign, args.extent(&campaign, &machine)?)?;
    request.is_profiled = is_profiled;
    campaign.name.clone_from(&request.name);
    let progress = &session.progress;
    let mut said = (0, 0);
    let mut say = |meter: &Meter<'_, _>, news: &News<'_>| {
        let text = news.sentence();
        if let Some(text) = text {
            progress.say(&text);
        }
        if let News::Generation { best, found } = news {
            let tally = meter.tally(best, *found);
            let minute = meter.elapsed().as_secs() / 60;
            if (minute, *found) != said || meter.is_over() {
                said = (minute, *found);
                progress.say(&tally);
            }
        }
    };
    let as_run = session.search(
        &campaign,
        |site| request.run(site, &mut say),
        |hunted| hunted.account.is_stopped,
    )?;
    let hunted = as_run.named(&asked.variants);
    let folder = args
        .output
        .clone()
        .unwrap_or_else(|| request.name.clone().into());
    let compressed = |name: &str| pagetide_scenario::compressed_share(name).unwrap_or(1.0);
    let folders = hunted
        .write(&folder, &compressed)
        .with_context(|| format!("writing the files of the cases to {}", folder.display()))?;
    let names = hunted.names();
    let mut files = Vec::new();
    for ((case, run), folder) in hunted.cases(&names).zip(as_run.cases(&names)).zip(&folders) {
        let mut line = format!("{}: case.toml, case.c, mail.txt", folder.display());
        let path = folder.join("page.html");
        let compared = session.search(
            &campaign,
            |mut site| {
                if hunted.account.is_stopped {
                    return Ok(None);
                }
                case.compared(&run, &mut site, &campaign.name)
            },
            Option::is_none,
        );
        match compared.and_then(|compared| page(compared, &places.store()?, &path)) {
            Ok(()) => line.push_str(", page.html"),
            Err(why) => {
                // An old page would be of another case.
                let _ = fs::remove_file(&path);
                put!(line, "; no page.html: {why:#}");
                session.progress.say(&line);
            }
        }
        files.push(line);
    }
    let text = || {
        let mut text = table::text(hunted.goal, &hunted.account, hunted.wall);
        for sentence in hunted.reached.iter().flat_map(Reached::sentences) {
            put!(text, "\n{sentence}");
        }
        for line in &files {
            put!(text, "\n{line}");
        }
        text.push('\n');
        text
    };
    let written = Written {
        hunted: &hunted,
        folders: folders.clone(),
    };
    out.show_quoting(&written, text)?;
    Ok(if hunted.account.is_stopped {
        session
            .progress
            .say("stopped; the same command goes on from here");
        End::Unable
    } else if hunted.account.found.is_empty() {
        End::Done
    } else {
        End::Regressed
    })
}

/// True if all trials are to be profiled. Fails if only those of some seeds are.
fn is_profiled(asked: Option<Observe>) -> Result<bool> {
    match asked {
        None | Some(Observe::None) => Ok(false),
        Some(Observe::Seeds(1) | Observe::All) => Ok(true),
        Some(Observe::Seeds(_)) => Err(Usage::error(
            "a hunt profiles all trials or none: give --profile without a number, or leave it out",
        )),
    }
}

/// Writes the page of a case. Fails if its trials were stopped.
fn page(compared: Option<Compared>, store: &Store, path: &Path) -> Result<()> {
    let Some(Compared { note, case }) = compared else {
        return Err(anyhow!("stopped; the same command writes it"));
    };
    whole_file::write(path, |out| anyhow::Ok(of_case(store, &note, &case, out)?))?;
    Ok(())
}

impl Args {
    /// Returns what the hunt may vary: the space file, or the default space without one. The machine options of the
    /// command line replace its values, and settings that a variant sets are left out.
    fn extent(&self, campaign: &Campaign, machine: &Adjustment) -> Result<Extent> {
        let mut extent = match &self.space {
            None => Extent::default(),
            Some(path) => {
                let text = read_text(path, FileOrigin::Named, MAX_SPACE)
                    .with_context(|| format!("reading the space file {}", path.display()))?;
                Extent::from_toml(&text)
                    .map_err(|why| Usage::error(format!("{}: {why}", path.display())))?
            }
        };
        extent.narrow(machine, &campaign.variants);
        Ok(extent)
    }

    fn hunt(&self, campaign: &Campaign, extent: Extent) -> Result<HuntRequest> {
        let mut variants = campaign.variants.clone();
        variants.retain(|variant| variant.name != CONTROL);
        let Some(hunted) = variants.pop() else {
            return Err(Usage::error("a hunt needs a kernel: give --kernel"));
        };
        if variants.len() > 1 {
            return Err(Usage::error(
                "a hunt compares two variants at most: give one or two of --kernel, --vs and --patch",
            ));
        }
        let other = variants.pop();
        let goal = self.goal.unwrap_or(match other {
            Some(_) => Goal::Regressed,
            None => Goal::Killed,
        });
        if goal.needs_two() && other.is_none() {
            return Err(Usage::error(
                "goal regressed compares two variants: give a second --kernel, --vs or --patch",
            ));
        }
        let also = self.also.iter().map(|kernel| pagetide_arena::VariantSpec {
            name: kernel.clone(),
            kernel: kernel.clone(),
            ..hunted.clone()
        });
        let digits = campaign.name.rsplit('-').next().unwrap_or_default();
        let name = match self.campaign.name() {
            Some(name) => name.to_owned(),
            None => format!("hunt-{goal}-{digits}-{}", self.seed),
        };
        Ok(HuntRequest {
            name,
            plan: Plan {
                goal,
                budget: self.budget,
                seed: self.seed,
                most: usize::from(self.cases),
                guidance: if self.at_random {
                    Guidance::Random
                } else {
                    Guidance::Guided
                },
            },
            extent,
            also: also.collect(),
            hunted,
            other,
            is_profiled: false,
        })
    }
}
