//! Reasons why a file is refused, and remedies for the user.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};

use rustix::io::Errno;

/// Why a file is not opened or read although the system would allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file is a symbolic link, in a folder where links are not followed.
    #[error("it is a symbolic link, and none is followed there")]
    Link,
    /// The file is not a regular file. The text names its type.
    #[error("it is {0}, not a file")]
    Kind(&'static str),
    /// The file is larger than the limit.
    #[error("it is larger than {}", size(*.limit))]
    TooLarge {
        /// Maximum size in bytes.
        limit: u64,
    },
}

impl Refusal {
    /// Returns the refusal in an I/O error; `None` if the error has another cause.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Link | Refusal::Kind(_) => ErrorKind::InvalidInput,
            Refusal::TooLarge { .. } => ErrorKind::FileTooLarge,
        };
        Self::new(kind, refusal)
    }
}

/// Returns a number of bytes as text, in the largest unit (GiB, MiB, KiB or bytes) that divides it.
fn size(bytes: u64) -> String {
    let units: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let found = units.iter().find(|(unit, _)| bytes.is_multiple_of(*unit));
    found.map_or_else(
        || format!("{bytes} bytes"),
        |(unit, name)| format!("{} {name}", bytes / unit),
    )
}

/// Returns the remedy after the system or this program refused a file or folder. `variable` is the environment variable
/// that names the parent folder, such as `PAGETIDE_STORE`; `None` if the user named the file.
pub fn remedy(error: &io::Error, variable: Option<&str>) -> String {
    let is_errno = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let (first, can_move) = match (Refusal::of(error), error.kind()) {
        (Some(Refusal::Link), _) => ("remove the link", false),
        (Some(_), _) if variable.is_some() => ("move it away", false),
        (Some(Refusal::Kind(_)), _) => ("give a file", false),
        (Some(Refusal::TooLarge { .. }), _) => ("give a smaller one", false),
        _ if is_errno(Errno::MFILE) || is_errno(Errno::NFILE) => {
            ("raise the limit of open files (`ulimit -n`)", false)
        }
        _ if is_errno(Errno::LOOP) => ("remove its circle of links", true),
        _ if is_errno(Errno::IO) => ("look for a failing disk with `dmesg`", true),
        (_, ErrorKind::PermissionDenied) => ("give yourself access to it", true),
        (_, ErrorKind::ReadOnlyFilesystem) => ("make it writable", true),
        (_, ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => ("free some space there", true),
        (_, ErrorKind::FileTooLarge) => ("raise the limit of file sizes (`ulimit -f`)", true),
        (_, ErrorKind::OutOfMemory) => ("free memory, or raise its limit (`ulimit -v`)", false),
        (_, ErrorKind::WouldBlock) => ("raise the limit of processes (`ulimit -u`)", false),
        (_, ErrorKind::InvalidFilename) => ("use a shorter path", true),
        (_, ErrorKind::NotADirectory | ErrorKind::AlreadyExists | ErrorKind::IsADirectory) => {
            ("move away what is in its place", true)
        }
        (_, ErrorKind::InvalidData) => ("save it as UTF-8 text", false),
        _ => ("check that it is there and readable", true),
    };
    let mut remedy = first.to_owned();
    if let (true, Some(variable)) = (can_move, variable) {
        let _ = write!(remedy, ", or name another folder with {variable}");
    }
    remedy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_fits_what_the_system_said() {
        let of = |errno: Errno| remedy(&errno.into(), Some("PAGETIDE_STORE"));
        let other = "or name another folder with PAGETIDE_STORE";
        for (errno, word, moves) in [
            (Errno::ACCESS, "access", true),
            (Errno::ROFS, "writable", true),
            (Errno::NOSPC, "free some space", true),
            (Errno::MFILE, "ulimit -n", false),
            (Errno::NFILE, "ulimit -n", false),
            (Errno::FBIG, "ulimit -f", true),
            (Errno::NOMEM, "ulimit -v", false),
            (Errno::AGAIN, "ulimit -u", false),
            (Errno::NOTDIR, "in its place", true),
            (Errno::NOENT, "is there", true),
        ] {
            let said = of(errno);
            assert!(said.contains(word), "{errno}: {said}");
            assert_eq!(said.contains(other), moves, "{errno}: {said}");
            let is_space = errno == Errno::NOSPC;
            assert_eq!(said.contains("space"), is_space, "{errno}: {said}");
        }
        let large = Refusal::TooLarge { limit: 64 << 20 };
        assert_eq!(large.to_string(), "it is larger than 64 MiB");
        assert_eq!(remedy(&large.into(), None), "give a smaller one");
    }
}
