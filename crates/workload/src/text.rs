//! Text forms of a workload: TOML for people, compact JSON for records.

use crate::bounds::MAX_TEXT;
use crate::error::WorkloadError;
use crate::workload::Workload;

impl Workload {
    /// Parses a workload in canonical form and checks its bounds.
    pub fn from_canonical(text: &str) -> Result<Self, WorkloadError> {
        if text.len() as u64 > MAX_TEXT.0 {
            return Err(WorkloadError::TooLong);
        }
        let workload: Self = serde_json::from_str(text).map_err(|why| WorkloadError::Text {
            line: None,
            why: why.to_string(),
        })?;
        workload.validate()?;
        Ok(workload)
    }

    /// Returns the canonical form, compact JSON: equal workloads have equal texts. The machine's sizes and devices are
    /// left out, because a campaign determines them.
    pub fn canonical(&self) -> String {
        let mut own = self.clone();
        own.machine = own.machine.and_then(crate::Machine::only_settings);
        serde_json::to_string(&own).unwrap_or_default()
    }
}

#[cfg(feature = "toml")]
impl Workload {
    /// Parses a workload in TOML, the form for people, and checks its bounds. `docs/workload.md` lists its keys.
    pub fn from_toml(text: &str) -> Result<Self, WorkloadError> {
        if text.len() as u64 > MAX_TEXT.0 {
            return Err(WorkloadError::TooLong);
        }
        let workload: Self = toml::from_str(text).map_err(|why| wrong(text, &why))?;
        workload.validate()?;
        Ok(workload)
    }

    /// Returns the workload as TOML, the form that a person writes.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Parses the table `workload` of a campaign file, and checks its bounds; `None` if the file has no such table.
    pub fn from_campaign(text: &str) -> Result<Option<Self>, WorkloadError> {
        #[derive(serde::Deserialize)]
        struct Campaign {
            workload: Option<Workload>,
        }
        let campaign: Campaign = toml::from_str(text).map_err(|why| wrong(text, &why))?;
        if let Some(workload) = &campaign.workload {
            workload.validate()?;
        }
        Ok(campaign.workload)
    }
}

#[cfg(feature = "toml")]
fn wrong(text: &str, why: &toml::de::Error) -> WorkloadError {
    let line = why.span().map(|span| {
        let before = text.as_bytes().iter().take(span.start);
        1 + before.filter(|byte| **byte == b'\n').count()
    });
    WorkloadError::Text {
        line,
        why: why.message().replace('\n', ", "),
    }
}
