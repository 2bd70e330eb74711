//! Formats an error as one sentence.

use std::error::Error;
use std::io;

/// Returns a chain of errors, each followed by its cause, as one sentence. A cause is omitted if the sentence already
/// contains its text.
pub fn sentence<'a>(chain: impl Iterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut sentence = String::new();
    for cause in chain {
        let text = cause.to_string();
        if sentence.is_empty() {
            sentence = text;
        } else if !sentence.contains(text.trim()) {
            sentence = format!("{sentence}: {text}");
        }
    }
    sentence
}

/// True if a chain of errors comes from a closed pipe, because the process that reads pagetide's output has ended.
pub fn is_closed_reader<'a>(mut chain: impl Iterator<Item = &'a (dyn Error + 'static)>) -> bool {
    chain.any(|cause| {
        let of_io = cause.downcast_ref().map(io::Error::kind);
        let of_json = cause
            .downcast_ref()
            .and_then(serde_json::Error::io_error_kind);
        of_io.or(of_json) == Some(io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain<'a>(
        error: &'a (dyn Error + 'static),
    ) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
        let (mut all, mut next) = (Vec::new(), Some(error));
        while let Some(error) = next {
            all.push(error);
            next = error.source();
        }
        all.into_iter()
    }

    #[derive(Debug, thiserror::Error)]
    #[error("{what}")]
    struct Failure {
        what: &'static str,
        source: Box<dyn Error>,
    }

    #[test]
    fn a_cause_is_printed_once() {
        let inner = Failure {
            what: "writing /x: no space",
            source: io::Error::other("no space").into(),
        };
        let outer = Failure {
            what: "the record could not be kept",
            source: inner.into(),
        };
        let said = sentence(chain(&outer));
        assert_eq!(said, "the record could not be kept: writing /x: no space");
    }

    #[test]
    fn a_closed_pipe_is_distinguished_from_a_failure() {
        for (kind, closed) in [
            (io::ErrorKind::BrokenPipe, true),
            (io::ErrorKind::StorageFull, false),
        ] {
            let bare = Failure {
                what: "writing",
                source: io::Error::from(kind).into(),
            };
            let json = Failure {
                what: "writing",
                source: serde_json::Error::io(kind.into()).into(),
            };
            assert_eq!(is_closed_reader(chain(&bare)), closed);
            assert_eq!(is_closed_reader(chain(&json)), closed);
        }
    }
}
