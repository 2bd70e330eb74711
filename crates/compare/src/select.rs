//! What the names on a command line stand for.

use pagetide_quantity::nearest;
use pagetide_record::Pass;
use pagetide_store::{CampaignNote, Filter, Row, Store, StoreError};

use crate::beside::Intent;
use crate::comparison::Comparison;
use crate::error::CompareError;
use crate::input::Input;
use crate::judge::compare;

/// Fewest digits that are taken for the beginning of a record's identity.
const FEWEST_DIGITS: usize = 4;

/// One side of a comparison.
enum Selection {
    /// A variant of a campaign, by its place.
    Variant(Box<CampaignNote>, usize),
    /// Records of a kernel release.
    Release(Vec<Row>),
    /// A record.
    Record(Box<Row>),
}

/// In what two sides of a comparison may differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Whether they may differ in more than the variant.
    pub anyway: bool,
    /// What may differ although nobody asked for it: kinds such as `huge-pages`, or names of settings.
    pub accepted: Vec<String>,
}

impl From<bool> for Allowance {
    fn from(anyway: bool) -> Self {
        Self {
            anyway,
            accepted: Vec::new(),
        }
    }
}

/// What a command line names to be compared: two sides, a campaign, or nothing for the campaign that ran last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The baseline, or a campaign.
    pub a: Option<String>,
    /// What is set against it.
    pub b: Option<String>,
    /// In what the two may differ.
    pub allowed: Allowance,
}

impl Names {
    /// Whether a whole campaign is meant, not two sides.
    fn is_campaign(&self) -> bool {
        match (&self.a, &self.b) {
            (Some(name), None) => !name.contains(':'),
            (None, _) => true,
            (Some(_), Some(_)) => false,
        }
    }

    /// Compares what the names stand for.
    pub fn compare(&self, store: &Store) -> Result<Comparison, CompareError> {
        match (&self.a, &self.b) {
            (Some(a), Some(b)) => compare_two(store, a, b, self.allowed.clone()),
            (Some(name), None) if !self.is_campaign() => {
                Err(CompareError::OneSide { name: name.clone() })
            }
            (name, _) => compare_campaign_accepting(store, name.as_deref(), &self.allowed.accepted),
        }
    }

    /// The same, where a campaign may also have a single variant and nothing to judge.
    pub fn show(&self, store: &Store) -> Result<Comparison, CompareError> {
        match self.compare(store) {
            Err(CompareError::OneVariant { .. }) if self.is_campaign() => {
                show_campaign(store, self.a.as_deref())
            }
            other => other,
        }
    }

    /// What the comparison is called.
    pub fn title(&self, comparison: &Comparison) -> String {
        match (&self.a, &self.b, &comparison.campaign) {
            (Some(a), Some(b), _) => format!("{b} against {a}"),
            (_, _, Some(campaign)) => match (&comparison.baseline, comparison.columns.first()) {
                (Some(why), Some(baseline)) => {
                    format!("{campaign}, against {} ({why})", baseline.name)
                }
                _ => campaign.clone(),
            },
            _ => "comparison".to_owned(),
        }
    }

    /// The command that gives the comparison again: the one that ran the campaign, since a reader wants to run it and
    /// not to look at it again, else `pagetide COMMAND` with these names.
    pub fn origin(
        &self,
        store: &Store,
        comparison: &Comparison,
        command: &str,
    ) -> Result<String, StoreError> {
        if let Some(campaign) = &comparison.campaign
            && self.is_campaign()
            && self.allowed.accepted.is_empty()
            && let Some(note) = store.campaign(campaign)?
            && !note.command.is_empty()
        {
            return Ok(note.command);
        }
        Ok(self.words(command))
    }

    /// `pagetide COMMAND` with these names.
    pub fn words(&self, command: &str) -> String {
        let mut words = vec![command];
        words.extend(self.a.iter().chain(&self.b).map(String::as_str));
        if self.allowed.anyway {
            words.push("--anyway");
        }
        for accepted in &self.allowed.accepted {
            words.extend(["--accept", accepted]);
        }
        pagetide_quantity::command::command(&words)
    }
}

/// Compares all variants of a campaign with its first. `name` is a campaign's name (its latest run), the identity of a
/// run (`quick.2`), or `None` for the campaign that ran last. `accepted` names what may differ beside what was asked for,
/// besides what the campaign itself accepts.
fn compare_campaign_accepting(
    store: &Store,
    name: Option<&str>,
    accepted: &[String],
) -> Result<Comparison, CompareError> {
    let mut note = campaign(store, name)?;
    note.accept.extend_from_slice(accepted);
    compare_note(store, &note)
}

/// The same where nothing is accepted but by the campaign itself.
pub fn compare_campaign(store: &Store, name: Option<&str>) -> Result<Comparison, CompareError> {
    compare_campaign_accepting(store, name, &[])
}

/// Compares all variants of a campaign, as far as its note goes, with its first.
pub fn compare_note(store: &Store, note: &CampaignNote) -> Result<Comparison, CompareError> {
    if let [variant] = note.variants.as_slice() {
        return Err(CompareError::OneVariant {
            campaign: note.id(),
            variant: variant.clone(),
        });
    }
    compare(store, &Input::of_campaign(store, note, None)?)
}

/// A campaign as far as its note goes, also where it has one variant and nothing is judged. `name` as for
/// [`compare_campaign`].
pub fn show_campaign(store: &Store, name: Option<&str>) -> Result<Comparison, CompareError> {
    let note = campaign(store, name)?;
    compare(store, &Input::of_campaign(store, &note, None)?)
}

/// Compares B with A. Each is a variant of the campaign that ran last, `CAMPAIGN:VARIANT`, a kernel release, or the
/// beginning of a record's identity. What differs in more than the variant is refused unless that is allowed. Of two releases
/// the kernel alone is compared: what else differs confounds, unless it is accepted.
pub fn compare_two(
    store: &Store,
    a: &str,
    b: &str,
    allowed: impl Into<Allowance>,
) -> Result<Comparison, CompareError> {
    let Allowance { anyway, accepted } = allowed.into();
    match (resolve(store, a)?, resolve(store, b)?) {
        // Two variants of one campaign keep its margins, primary metrics and looks.
        (Selection::Variant(x, place_a), Selection::Variant(y, place_b)) if x.id() == y.id() => {
            let mut input = Input::of_campaign(store, &x, Some(&[place_a, place_b]))?;
            input.accepted.extend(accepted);
            compare(store, &input)
        }
        (x, y) => {
            let releases = [&x, &y].map(|side| matches!(side, Selection::Release(_)));
            let sides = [
                (a.to_owned(), rows(store, x)?),
                (b.to_owned(), rows(store, y)?),
            ];
            let mut input = Input::of_rows(sides, anyway)?;
            input.accepted = accepted;
            if releases == [true, true] {
                input.asked = Intent::Kernel;
            }
            compare(store, &input)
        }
    }
}

/// The campaign of a name, or the last one.
fn campaign(store: &Store, name: Option<&str>) -> Result<CampaignNote, CompareError> {
    let Some(name) = name else {
        let last = store.campaigns()?.into_iter().next();
        return match last {
            Some(id) => store.campaign(&id)?.ok_or(CompareError::NothingRan),
            None => Err(CompareError::NothingRan),
        };
    };
    if let Some(note) = store.latest_of(name)? {
        return Ok(note);
    }
    let known = store.campaigns()?;
    Err(CompareError::NoCampaign {
        name: name.to_owned(),
        nearest: nearest(name, known.iter().map(String::as_str)),
    })
}

fn resolve(store: &Store, given: &str) -> Result<Selection, CompareError> {
    if let Some((name, variant)) = given.split_once(':') {
        let note = campaign(store, Some(name))?;
        return match note.variants.iter().position(|v| v == variant) {
            Some(place) => Ok(Selection::Variant(Box::new(note), place)),
            None => Err(CompareError::NoVariant {
                campaign: note.id(),
                variant: variant.to_owned(),
                known: note.variants.join(", "),
            }),
        };
    }
    let last = match campaign(store, None) {
        Ok(note) => Some(note),
        Err(CompareError::NothingRan) => None,
        Err(error) => return Err(error),
    };
    if let Some(note) = &last
        && let Some(place) = note.variants.iter().position(|v| v == given)
    {
        return Ok(Selection::Variant(Box::new(note.clone()), place));
    }
    let release = Filter {
        release: Some(given.to_owned()),
        pass: Some(Pass::Timed),
        ..Filter::default()
    };
    let rows = store.select(&release)?;
    if !rows.is_empty() {
        return Ok(Selection::Release(rows));
    }
    let digits = given.len() >= FEWEST_DIGITS && given.bytes().all(|b| b.is_ascii_hexdigit());
    if digits {
        match store.find(given) {
            Ok(row) => return Ok(Selection::Record(Box::new(row))),
            Err(StoreError::Unknown { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let known = last.map(|note| note.variants).unwrap_or_default();
    Err(CompareError::Unknown {
        given: given.to_owned(),
        nearest: nearest(given, known.iter().map(String::as_str)),
    })
}

/// The records of one side.
fn rows(store: &Store, named: Selection) -> Result<Vec<Row>, CompareError> {
    match named {
        Selection::Release(rows) => Ok(rows),
        Selection::Record(row) => Ok(vec![*row]),
        Selection::Variant(note, place) => {
            let input = Input::of_campaign(store, &note, Some(&[place]))?;
            let trials = input.columns.into_iter().flat_map(|column| column.trials);
            Ok(trials.map(|placed| placed.row).collect())
        }
    }
}
