//! `pagetide squeeze`: finds the smallest memory at which a program or scenario is not much slower than with ample
//! memory.

use anyhow::Result;
use pagetide_arena::measured::WAITING;
use pagetide_campaign::squeeze::{
    Answer, MAX_RUNS, SqueezeOutcome, SqueezeRequest, by_variant, check_searchable, share, squeeze,
    varied_word,
};
use pagetide_campaign::{DECIDING, PROGRAM, Vary};
use pagetide_compare::followed::VariedSqueezes;
use pagetide_compare::squeezed::Knob;
use pagetide_compare::squeezes::{ComparedSqueezes, VariantSqueeze};
use pagetide_lab::facts;
use pagetide_quantity::Bytes;
use pagetide_record::ArenaKind;
use pagetide_report::terminal::squeeze as shown;

use crate::campaign_args::CampaignArgs;
use crate::exit::End;
use crate::lab::{ArenaArgs, StoreArgs};
use crate::output::Output;
use crate::program_args::ProgramArgs;
use crate::session::Session;

/// Find the smallest memory at which a program or scenario is not much slower than with plenty of memory
///
/// --memory says how much is plenty. For your own program, the limit of its memory cgroup is searched within a machine
/// of this size; for a scenario, the memory of the machine is searched. There are at most 15 runs: plenty with every
/// seed, a bisection with the first seed, the two sizes around the answer with all seeds, and one observed run for the
/// content of memory at the answer. Trials with a record are not run again, so the same command continues a stopped
/// search. `--vary heap=16M,64M` searches once for each value of a word `{heap}` in the command, and says whether this
/// setting limits the program's need. With several kernels, or --vs, each variant is searched, and slowdowns at equal
/// pressure (PSI) are compared.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide squeeze --memory 128M --file numbers -- sort numbers
  pagetide squeeze --memory 256M --within 10% -- python3 job.py
  pagetide squeeze --memory 64M --by memory --swap none --file numbers -- sort numbers
  pagetide squeeze --memory 256M --vary heap=32m,64m,128m --root deb:openjdk-17-jre-headless,bsh -- java -Xmx{heap} -jar /usr/share/java/bsh.jar
  pagetide squeeze --memory 64M --kernel debian:bookworm --kernel debian:sid --file numbers -- sort numbers
  pagetide squeeze kv --memory 128M -p size=48M -p snapshot=false --json

A size is enough if the interval of its slowdown (95 %, Student's, of the logarithms, paired by seed) is at most the
share. It is too small if the interval is above the share, if the program dies, or if it takes five times as long.")]
pub struct Args {
    /// A scenario, unless you give your own program
    #[arg(required_unless_present = "command", value_name = "SCENARIO")]
    what: Vec<String>,
    /// Allowed slowdown, compared with plenty of memory
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share, help_heading = "Search")]
    within: f64,
    /// Quantity to search [default: limit for a program, memory for a scenario]
    #[arg(long, value_name = "limit|memory", help_heading = "Search")]
    by: Option<Knob>,
    /// Minimum size to try [default: a sixteenth of plenty]
    #[arg(long, value_name = "SIZE", help_heading = "Search")]
    least: Option<Bytes>,
    #[command(flatten)]
    campaign: CampaignArgs,
    #[command(flatten)]
    program: ProgramArgs,
    #[command(flatten)]
    arena: ArenaArgs,
}

/// Runs one search for each variant, or with `--vary` one search for each value.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    let mut session = Session::begin(places, &args.arena)?;
    let (mut asked, mut program) = (args.campaign.clone(), args.program.clone());
    let Some(vary) = varied_word(asked.take_vary(), program.texts())? else {
        let Some(searches) = search(&mut session, args, (&asked, &program), None)? else {
            return Ok(End::Unable);
        };
        let all = ComparedSqueezes::of(searches);
        match all.searches.as_slice() {
            [one] => out.show_quoting(&one.squeeze, || {
                shown::squeeze(&one.squeeze, &out.text_style)
            })?,
            _ => out.show_quoting(&all, || shown::compared(&all, &out.text_style))?,
        }
        // The results are printed before they are saved, because saving may fail.
        all.keep(&places.store()?)?;
        return Ok(end(all.searches.iter().map(|one| &one.squeeze.answer)));
    };
    let mut searches = Vec::new();
    for value in &vary.values {
        program.clone_from(&args.program);
        vary.put(value, program.texts());
        let word = (&vary, value.as_str());
        let Some(one) = search(&mut session, args, (&asked, &program), Some(word))? else {
            return Ok(End::Unable);
        };
        searches.extend(one.into_iter().map(|one| one.varied(value)));
    }
    let all = VariedSqueezes::of(vary.key, searches);
    out.show_quoting(&all, || shown::varied(&all, &out.text_style))?;
    Ok(end(all.searches.iter().map(|one| &one.squeeze.answer)))
}

/// Searches for each variant, with one value of the varied word. `None` if a search was stopped or a kernel could not
/// be built.
fn search(
    session: &mut Session<'_>,
    args: &Args,
    (asked, program): (&CampaignArgs, &ProgramArgs),
    word: Option<(&Vary, &str)>,
) -> Result<Option<Vec<VariantSqueeze>>> {
    let mut campaign = session.campaign_of_search("squeeze", &args.what, asked, program)?;
    check_searchable(&mut campaign, word.map(|(vary, _)| vary))?;
    if campaign.arena == ArenaKind::Host {
        // A squeeze asks how much slower a program becomes, which the counts that decide in this arena do not answer.
        // The elapsed time also depends on other users of the processors, so a program is judged by the metric
        // [`WAITING`] instead.
        for scenario in &mut campaign.scenarios {
            let own = scenario.primary.take().unwrap_or_default().into_iter();
            let own: Vec<String> = own
                .filter(|name| !DECIDING.contains(&name.as_str()))
                .collect();
            let is_program = scenario.name == PROGRAM;
            let waiting = || is_program.then(|| vec![WAITING.to_owned()]);
            scenario.primary = Some(own).filter(|own| !own.is_empty()).or_else(waiting);
        }
    }
    if session.build(&mut campaign)?.failed > 0 {
        return Ok(None);
    }
    let facts = facts(&campaign.scenarios[0])?;
    let request = SqueezeRequest {
        within: args.within,
        knob: args.by,
        least: args.least,
        limit: program.limit,
        time_limit: program.time_limit,
    };
    let mut searches = Vec::new();
    for (variant, campaign) in by_variant(&campaign, word.map(|(_, value)| value)) {
        let asked = request.search(campaign, &facts)?;
        let say = |point: &_| session.progress.say(&shown::point_text(point));
        let outcome = session.search(
            &asked.campaign,
            |site| squeeze(&asked, site, &say),
            |outcome| matches!(outcome, SqueezeOutcome::Stopped(_)),
        )?;
        match outcome {
            SqueezeOutcome::Found(found) => searches.push(VariantSqueeze {
                variant,
                squeeze: *found,
            }),
            SqueezeOutcome::Stopped(runs) => {
                session.progress.say(&shown::stopped(runs, MAX_RUNS));
                return Ok(None);
            }
        }
    }
    Ok(Some(searches))
}

/// Returns the result of a command whose searches have these answers: `Open` if one of them found none.
fn end<'a>(mut answers: impl Iterator<Item = &'a Answer>) -> End {
    let is_found = answers.all(Answer::is_found);
    if is_found { End::Done } else { End::Open }
}
