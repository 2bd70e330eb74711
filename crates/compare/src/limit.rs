//! The memory limit of a trial's workload.

use pagetide_quantity::Bytes;
use pagetide_record::Subject;

/// Returns the limit of the memory group around a trial's workload; `None` without a limit. The limit of a program is one
/// of its parameters, in bytes, and 0 without a limit.
pub(crate) fn group_limit(subject: &Subject) -> Option<Bytes> {
    let of_program = || subject.params.get("limit")?.parse().ok();
    subject
        .limit
        .or_else(of_program)
        .filter(|limit: &Bytes| limit.0 > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_program_is_its_parameter_and_zero_is_none() {
        let mut subject = Subject::default();
        assert_eq!(group_limit(&subject), None);
        for (text, limit) in [("8388608", Some(Bytes::from_mib(8))), ("0", None)] {
            subject.params.insert("limit".to_owned(), text.to_owned());
            assert_eq!(group_limit(&subject), limit);
        }
        subject.limit = Some(Bytes::from_mib(4));
        assert_eq!(group_limit(&subject), Some(Bytes::from_mib(4)));
    }
}
