//! Runs the trial of a record again with the instructions of one function counted one by one.

use std::io::Read;

use pagetide_arena::{Arena, ArenaError, Progress, Trial};
use pagetide_compare::profiled::{ANNOTATION, same_results};
use pagetide_record::{Pass, Record, RecordReader, RecordWriter, TraceRing};
use pagetide_store::StoreError;

use crate::command::maker;
use crate::repeat::{RepeatError, prepare_again};

/// Result of a profiled pass that repeats the trial of a record for an annotation.
pub struct AnnotatedPass {
    /// The annotation in its stored form; `None` if the scenario did not end.
    pub annotation: Option<Vec<u8>>,
    /// True if the results of the pass are bit-identical to those of the record.
    pub is_same: bool,
}

/// Runs the trial of a record once more, as a profiled pass that counts how often each instruction of `function` runs.
/// No record of the pass is stored.
pub fn annotate(
    arena: &dyn Arena,
    record: &Record,
    function: &str,
    progress: &dyn Progress,
) -> Result<AnnotatedPass, RepeatError> {
    let prepared = prepare_again(arena, &record.subject, |trial| Trial {
        pass: Pass::Profiled,
        trace_ring: TraceRing::default(),
        annotate: Some(function.to_owned()),
        ..trial
    })?;
    let folder = tempfile::tempdir().map_err(|source| RepeatError::Temporary { source })?;
    let mut sink = RecordWriter::create(folder.path()).map_err(StoreError::writing)?;
    let finding = match arena.run(&prepared, &mut sink, progress) {
        Err(ArenaError::Stopped) => return Err(RepeatError::Stopped),
        other => other.map_err(RepeatError::Arena)?,
    };
    let mut again = prepared.record(maker(prepared.trial()), finding);
    let path = sink
        .finish_unsynced(&mut again)
        .map_err(StoreError::writing)?;
    let reader = RecordReader::open(&path).map_err(StoreError::Record)?;
    let annotation = match reader.blob(ANNOTATION) {
        Ok(mut blob) => {
            let mut bytes = Vec::new();
            let read = blob.read_to_end(&mut bytes);
            read.map_err(|source| RepeatError::Temporary { source })?;
            Some(bytes)
        }
        Err(_) => None,
    };
    Ok(AnnotatedPass {
        annotation,
        is_same: same_results(record, reader.record()),
    })
}
