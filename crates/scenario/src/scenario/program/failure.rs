//! Why the result of a program cannot be used, as the rest of a sentence that begins with "the program".

use pagetide_quantity::Nanos;

use crate::running::Ending;

/// Maximum number of characters of standard error that a reason quotes.
const QUOTED: usize = 160;

/// Returns why this ending makes the result unusable; `None` if the program exited with status `expected`.
pub(super) fn why_unusable(
    ending: Ending,
    expected: i32,
    limit: Nanos,
    errors: &str,
) -> Option<String> {
    let how = match ending {
        Ending::Exit(status) if status == expected => return None,
        Ending::Exit(status) => format!("ended with status {status} where {expected} was expected"),
        Ending::Signal(signal) => format!("was killed by {}", name_of(signal)),
        Ending::TimeLimit => {
            return Some(format!(
                "was ended at its time limit of {limit}: give a smaller task, more memory, or raise --time-limit"
            ));
        }
    };
    let lacking = lacking(errors);
    Some(format!(
        "{how}{}{lacking}",
        last_words(&[errors.to_owned()])
    ))
}

/// Returns a hint if the error output shows that the program needs a network or a device; otherwise an empty text.
fn lacking(errors: &str) -> &'static str {
    const NETWORK: [&str; 6] = [
        "network is unreachable",
        "name resolution",
        "could not resolve",
        "name or service not known",
        "unable to resolve",
        "no route to host",
    ];
    let errors = errors.to_lowercase();
    let has = |texts: &[&str]| texts.iter().any(|text| errors.contains(text));
    if has(&NETWORK) {
        "; inside it has no network but loopback: give it what it fetches with --file or --dir"
    } else if errors.contains("/dev/") && has(&["no such file", "no such device", "cannot open"]) {
        "; inside it has no devices but null, zero, full, random, urandom and tty: give it a file instead"
    } else {
        ""
    }
}

/// Returns the last line of the first text that is not blank, as the end of a sentence. It says so if all are blank.
pub(super) fn last_words(texts: &[String]) -> String {
    let last = |text: &String| {
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        let legible = line.chars().filter(|c| !c.is_control());
        Some(legible.take(QUOTED).collect::<String>())
    };
    match texts.iter().find_map(last) {
        Some(line) => format!("; it said `{}`", line.trim()),
        None => ", and said nothing on its standard error".to_owned(),
    }
}

/// Returns a signal's number with its common name, such as `signal 9 (SIGKILL)`; for a rare signal the number alone.
pub(super) fn name_of(signal: i32) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGKILL => "SIGKILL",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        other => return format!("signal {other}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_misses_a_network_or_a_device_is_told_that_there_is_none() {
        for text in [
            "curl: (6) Could not resolve host: example.org",
            "connect: Network is unreachable",
        ] {
            assert!(lacking(text).contains("loopback"), "{text}");
        }
        let device = "sh: 1: cannot open /dev/sda: No such file";
        assert!(lacking(device).contains("no devices but null"));
        assert_eq!(lacking("x: No such file or directory"), "");
        assert_eq!(lacking("/dev/null is full"), "");
    }

    #[test]
    fn an_unexpected_end_is_told_with_the_last_line_that_the_program_said() {
        let limit = Nanos::from_secs(9);
        let why = |ending, errors| why_unusable(ending, 3, limit, errors);
        assert_eq!(why(Ending::Exit(3), "anything"), None);
        let said = why(Ending::Exit(2), "first\nsort: \u{1b}[1mno file\n\n").unwrap();
        assert_eq!(
            said,
            "ended with status 2 where 3 was expected; it said `sort: [1mno file`"
        );
        let said = why(Ending::Signal(11), "").unwrap();
        assert!(
            said.contains("SIGSEGV") && said.contains("said nothing"),
            "{said}"
        );
        let said = why(Ending::TimeLimit, "x").unwrap();
        assert!(
            said.contains("9 s") && said.contains("--time-limit"),
            "{said}"
        );
    }
}
