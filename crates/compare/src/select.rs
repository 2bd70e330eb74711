//! Finds the records that names on a command line refer to.

use pagetide_quantity::nearest;
use pagetide_record::Pass;
use pagetide_store::{CampaignNote, Filter, Row, Store, StoreError};

use crate::comparison::Comparison;
use crate::error::CompareError;
use crate::input::Input;
use crate::judge::compare;
use crate::notes::Intent;

/// Minimum number of digits in a prefix of a record's ID.
const MIN_DIGITS: usize = 4;

/// What a name on the command line refers to.
enum Selection {
    /// A variant of a campaign: the campaign, and the index of the variant.
    Variant(Box<CampaignNote>, usize),
    /// The records made on a kernel release.
    Release(Vec<Row>),
    /// A single record.
    Record(Box<Row>),
}

/// Differences allowed between two sides of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// True if the sides may differ in more than the variant.
    pub anyway: bool,
    /// Unintended differences that are accepted: kinds such as `huge-pages`, or names of settings.
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

/// Names given on a command line: two sides, or a campaign. Without names, the campaign that ran last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The baseline, or a campaign; `None` for the campaign that ran last.
    pub a: Option<String>,
    /// The side that is compared with the baseline; `None` if `a` is a campaign.
    pub b: Option<String>,
    /// The differences allowed between the two sides.
    pub allowed: Allowance,
}

impl Names {
    /// True if the names refer to a whole campaign; false if they refer to two sides.
    fn is_campaign(&self) -> bool {
        match (&self.a, &self.b) {
            (Some(name), None) => !name.contains(':'),
            (None, _) => true,
            (Some(_), Some(_)) => false,
        }
    }

    /// Compares the two named sides, or all variants of the named campaign.
    pub fn compare(&self, store: &Store) -> Result<Comparison, CompareError> {
        match (&self.a, &self.b) {
            (Some(a), Some(b)) => compare_two(store, a, b, self.allowed.clone()),
            (Some(name), None) if !self.is_campaign() => {
                Err(CompareError::OneSide { name: name.clone() })
            }
            (name, _) => compare_campaign_accepting(store, name.as_deref(), &self.allowed.accepted),
        }
    }

    /// Like [`Self::compare`], but also accepts a campaign with a single variant, for which nothing is judged.
    pub fn show(&self, store: &Store) -> Result<Comparison, CompareError> {
        match self.compare(store) {
            Err(CompareError::OneVariant { .. }) if self.is_campaign() => {
                show_campaign(store, self.a.as_deref())
            }
            other => other,
        }
    }

    /// Returns the title of a comparison that these names selected.
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

    /// Returns the command that repeats the comparison. For a campaign whose command is known, this is the command that
    /// ran it, because a reader wants to run it again. For two sides, or if differences are accepted, it consists of
    /// `pagetide COMMAND` and these names.
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

    /// Returns the command line `pagetide COMMAND` with these names.
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

/// Compares the other variants of a campaign with its first. `name` is the name of a campaign (its latest run), the ID
/// of a run (`quick.2`), or `None` for the campaign that ran last. `accepted` has unintended differences that the user
/// accepts, in addition to those that the campaign accepts.
fn compare_campaign_accepting(
    store: &Store,
    name: Option<&str>,
    accepted: &[String],
) -> Result<Comparison, CompareError> {
    let mut note = campaign(store, name)?;
    note.accept.extend_from_slice(accepted);
    compare_note(store, &note)
}

/// Compares the other variants of a campaign with its first. Only the unintended differences that the campaign accepts
/// are accepted. `name` is the name of a campaign (its latest run) or the ID of a run (`quick.2`); `None` for the
/// campaign that ran last.
pub fn compare_campaign(store: &Store, name: Option<&str>) -> Result<Comparison, CompareError> {
    compare_campaign_accepting(store, name, &[])
}

/// Compares the other variants of a campaign with its first, using the records that the note (the campaign's
/// description in the store) lists so far. Fails if the campaign has a single variant.
pub fn compare_note(store: &Store, note: &CampaignNote) -> Result<Comparison, CompareError> {
    if let [variant] = note.variants.as_slice() {
        return Err(CompareError::OneVariant {
            campaign: note.id(),
            variant: variant.clone(),
        });
    }
    compare(store, &Input::of_campaign(store, note, None)?)
}

/// Shows a campaign with the records that its note lists so far. If the campaign has a single variant, nothing is
/// judged. `name` is the name of a campaign, the ID of a run, or `None` for the campaign that ran last.
pub fn show_campaign(store: &Store, name: Option<&str>) -> Result<Comparison, CompareError> {
    let note = campaign(store, name)?;
    compare(store, &Input::of_campaign(store, &note, None)?)
}

/// Shows a campaign with the records that its note lists so far. With a single variant, nothing is judged. The note need
/// not be in the store.
pub fn show_note(store: &Store, note: &CampaignNote) -> Result<Comparison, CompareError> {
    compare(store, &Input::of_campaign(store, note, None)?)
}

/// Compares B with A. Each is a variant of the campaign that ran last, `CAMPAIGN:VARIANT`, a kernel release, or a
/// prefix of a record's ID. Sides that differ in more than the variant are an error unless `allowed` permits it.
/// Between two releases only the kernel is the intended difference; other differences confound the result unless they
/// are accepted.
pub fn compare_two(
    store: &Store,
    a: &str,
    b: &str,
    allowed: impl Into<Allowance>,
) -> Result<Comparison, CompareError> {
    let Allowance { anyway, accepted } = allowed.into();
    match (resolve(store, a)?, resolve(store, b)?) {
        // Two variants of one campaign use the campaign's margins, primary metrics and interim analyses.
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

/// Returns the campaign with this name; for `None`, the campaign that ran last.
pub(crate) fn campaign(store: &Store, name: Option<&str>) -> Result<CampaignNote, CompareError> {
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
    let digits = given.len() >= MIN_DIGITS && given.bytes().all(|b| b.is_ascii_hexdigit());
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

/// Returns the records of one side.
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
