//! Output for the terminal: verdicts, a single record, lists.

pub mod agreement;
pub mod annotation;
pub mod atlas;
pub mod bisect;
pub mod coverage;
pub mod effect;
pub mod ideal;
pub mod layout;
pub mod list;
pub mod matrix;
mod next;
pub mod nodes;
pub mod notes;
pub mod observation;
pub mod profile;
pub mod references;
pub mod rows;
pub mod scale;
pub mod show;
pub mod sizes;
pub mod squeeze;
pub mod summary;
pub mod tails;
pub mod tiers;
pub mod verdicts;

pub use list::{Row, list, list_json, paragraphs};
pub use next::next;
pub use nodes::nodes;
pub use observation::observation;
pub use rows::{CampaignRow, PlannedCell, RecordRow, calibration, calibration_of, history};
pub use show::show;
pub use tails::tails;
pub use tiers::tiers;
pub use verdicts::{Options, presence_maps, verdicts};
