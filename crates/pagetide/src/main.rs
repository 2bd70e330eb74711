//! The command line: argument parsing and one file per subcommand; no logic of its own.
fn main() {}
