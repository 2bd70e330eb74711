//! `pagetide compare`: two sides, or a whole campaign, judged.

use anyhow::Result;
use pagetide_campaign::shell;
use pagetide_compare::beside::Kind;
use pagetide_compare::{
    Allowed, CompareError, Comparison, compare_campaign_accepting, compare_two, show_campaign,
};
use pagetide_store::Store;

use crate::command::run::one_variant;
use crate::exit::{End, Usage};
use crate::judged::JudgedArgs;
use crate::lab::StoreArgs;
use crate::output::Output;

/// Compare B with A, or all variants of a campaign with its first
///
/// A and B are variants of the last campaign, CAMPAIGN:VARIANT, kernel releases, or records. With one name, that
/// campaign's variants are compared; with none, those of the campaign that ran last.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide compare
  pagetide compare mglru-off mglru-on --as mail
  pagetide compare quick:mglru-off kernels:6.12 --anyway
  pagetide compare quick --as ktap > results.tap
  pagetide compare paper-swapbench --as paper")]
pub struct Args {
    /// The baseline, or a campaign
    a: Option<String>,
    /// What is set against it
    b: Option<String>,
    /// Compare what differs in more than the variant
    #[arg(long, requires = "b")]
    anyway: bool,
    #[command(flatten)]
    accept: AcceptArgs,
    #[command(flatten)]
    judged: JudgedArgs,
}

/// What may differ although nobody asked for it.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct AcceptArgs {
    /// Let this differ although nobody asked for it: huge-pages, swap, memory, dirty-limits, given, or a setting
    #[arg(long, value_name = "WHAT", value_parser = acceptable, help_heading = "What is compared")]
    pub accept: Vec<String>,
}

impl AcceptArgs {
    /// What is allowed; with `anyway` also other cells.
    pub fn allowed(&self, anyway: bool) -> Allowed {
        Allowed {
            anyway,
            accepted: self.accept.clone(),
        }
    }
}

/// Reads what may be accepted: a kind, or the name of a setting.
fn acceptable(text: &str) -> Result<String, String> {
    if Kind::is_acceptable(text) {
        return Ok(text.to_owned());
    }
    Err(format!("give {}", Kind::acceptable()))
}

/// Compares.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let store = places.store()?;
    let mut words = vec!["pagetide".to_owned(), "compare".to_owned()];
    words.extend(args.a.iter().chain(&args.b).cloned());
    if args.anyway {
        words.push("--anyway".to_owned());
    }
    for word in &args.accept.accept {
        words.extend(["--accept".to_owned(), word.clone()]);
    }
    let allowed = args.accept.allowed(args.anyway);
    let whole_campaign = match (&args.a, &args.b) {
        (Some(name), None) => !name.contains(':'),
        (None, _) => true,
        (Some(_), Some(_)) => false,
    };
    let comparison = match sides(&store, args.a.as_deref(), args.b.as_deref(), allowed) {
        // The papers' tables judge nothing, so that one variant will do.
        Err(why) if args.judged.is_paper() && whole_campaign && is_one_variant(&why) => {
            show_campaign(&store, args.a.as_deref())?
        }
        other => other?,
    };
    let title = match (&args.a, &args.b, &comparison.campaign) {
        (Some(a), Some(b), _) => format!("{b} against {a}"),
        (_, _, Some(campaign)) => match (&comparison.baseline, comparison.columns.first()) {
            (Some(why), Some(baseline)) => {
                format!("{campaign}, against {} ({why})", baseline.name)
            }
            _ => campaign.clone(),
        },
        _ => "comparison".to_owned(),
    };
    // Whoever reads of a campaign wants to run it, not to look at it again.
    let ran = match &comparison.campaign {
        Some(campaign) if whole_campaign && args.accept.accept.is_empty() => {
            store.campaign(campaign)?.map(|note| note.command)
        }
        _ => None,
    };
    let command = ran
        .filter(|command| !command.is_empty())
        .unwrap_or_else(|| shell(&words));
    let end = args.judged.show(&store, &comparison, title, command, out)?;
    Ok(one_variant(end, &comparison))
}

fn is_one_variant(why: &anyhow::Error) -> bool {
    matches!(
        why.downcast_ref::<CompareError>(),
        Some(CompareError::OneVariant { .. })
    )
}

/// What the names on the command line stand for, compared.
pub fn sides(
    store: &Store,
    a: Option<&str>,
    b: Option<&str>,
    allowed: Allowed,
) -> Result<Comparison> {
    match (a, b) {
        (Some(a), Some(b)) => Ok(compare_two(store, a, b, allowed)?),
        (Some(name), None) if name.contains(':') => Err(Usage::error(format!(
            "`{name}` is one side: name the other as well, as in `pagetide compare {name} OTHER`"
        ))),
        (name, _) => Ok(compare_campaign_accepting(store, name, &allowed.accepted)?),
    }
}
