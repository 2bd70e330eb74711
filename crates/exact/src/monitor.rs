//! The emulator's monitor, used only while a snapshot is made.
//! Protocol: QEMU `docs/interop/qmp-spec.rst`.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{ExactError, io};

/// One end of a monitor connection.
pub struct Monitor {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    events: Vec<Value>,
}

impl Monitor {
    /// Makes a connection; the second value is the emulator's end, to be inherited by it and closed here after its start.
    pub fn pair() -> Result<(Self, UnixStream), ExactError> {
        let (ours, theirs) = UnixStream::pair().map_err(io("making", "a monitor connection"))?;
        let writer = ours
            .try_clone()
            .map_err(io("making", "a monitor connection"))?;
        Ok((
            Self {
                reader: BufReader::new(ours),
                writer,
                events: Vec::new(),
            },
            theirs,
        ))
    }

    /// Arguments that give the emulator its end.
    pub fn arguments(fd: RawFd) -> Vec<String> {
        vec![
            "-chardev".to_owned(),
            format!("socket,id=monitor,fd={fd}"),
            "-mon".to_owned(),
            "chardev=monitor,mode=control".to_owned(),
        ]
    }

    /// Descriptor number of the emulator's end.
    pub fn fd(theirs: &UnixStream) -> RawFd {
        theirs.as_raw_fd()
    }

    /// Reads the next message, waiting until `deadline` at most; `None` at the connection's end or past the deadline.
    fn message(&mut self, deadline: Instant) -> Option<Value> {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        self.writer.set_read_timeout(Some(left)).ok()?;
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(n) if n > 0 => serde_json::from_str(&line).ok(),
            _ => None,
        }
    }

    /// Gives a command and waits for its answer.
    pub fn command(
        &mut self,
        name: &str,
        arguments: &Value,
        deadline: Instant,
    ) -> Result<Value, String> {
        let line = json!({ "execute": name, "arguments": arguments });
        writeln!(self.writer, "{line}").map_err(|why| format!("{name}: {why}"))?;
        loop {
            let message = self
                .message(deadline)
                .ok_or_else(|| format!("{name}: the emulator does not answer"))?;
            if let Some(value) = message.get("return") {
                return Ok(value.clone());
            }
            if let Some(error) = message.get("error") {
                let why = error
                    .get("desc")
                    .and_then(Value::as_str)
                    .unwrap_or("no reason given");
                return Err(format!("{name}: {why}"));
            }
            if message.get("event").is_some() {
                self.events.push(message);
            }
        }
    }

    /// The command by which a migration stream carries nothing of the guest's memory (it is in a file already) and its
    /// end is announced.
    pub fn ignore_shared() -> (&'static str, Value) {
        let on = |name: &str| json!({ "capability": name, "state": true });
        (
            "migrate-set-capabilities",
            json!({ "capabilities": [on("x-ignore-shared"), on("events")] }),
        )
    }

    /// Waits until a migration ended; the event that says it was completed, `None` if it was not.
    pub fn migrated(&mut self, deadline: Instant) -> Option<Value> {
        loop {
            let event = self.event(&["MIGRATION"], deadline)?;
            match event.pointer("/data/status").and_then(Value::as_str) {
                Some("completed") => return Some(event),
                Some("failed" | "cancelled") => return None,
                _ => {}
            }
        }
    }

    /// Gives commands without waiting for their answers.
    pub fn send(&mut self, commands: &[(&str, Value)]) -> std::io::Result<()> {
        let mut lines = String::new();
        for (name, arguments) in commands {
            let line = json!({ "execute": name, "arguments": arguments });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        self.writer.write_all(lines.as_bytes())
    }

    /// Waits for an event of one of these names; `None` past the deadline or when the emulator ended.
    pub fn event(&mut self, names: &[&str], deadline: Instant) -> Option<Value> {
        let wanted = |event: &Value| {
            event
                .get("event")
                .and_then(Value::as_str)
                .is_some_and(|n| names.contains(&n))
        };
        loop {
            if let Some(at) = self.events.iter().position(wanted) {
                return Some(self.events.remove(at));
            }
            self.events.retain(wanted);
            let message = self.message(deadline)?;
            if message.get("event").is_some() {
                self.events.push(message);
            }
        }
    }
}
