//! The emulator's monitor, used only to make or restore a snapshot.
//! Protocol: QEMU `docs/interop/qmp-spec.rst`.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{ExactError, io};

/// Interval at which the monitor asks its caller whether to continue waiting.
const POLL: Duration = Duration::from_millis(50);

/// Maximum size of a message in bytes. If an emulator sends more, reading ends.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// Maximum number of queued events. If an emulator sends more, reading ends.
const MAX_EVENTS: usize = 100_000;

/// Function that returns true to continue waiting for the emulator. It is called several times a second.
pub type KeepWaiting<'a> = dyn FnMut() -> bool + 'a;

/// This process's end of a monitor connection.
pub struct Monitor {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
    /// Bytes of the current message received so far.
    line: Vec<u8>,
    events: Vec<Value>,
}

impl Monitor {
    /// Creates a connection. The second value is the end that the emulator inherits. This process must close it after
    /// the emulator has started.
    pub fn pair() -> Result<(Self, UnixStream), ExactError> {
        let (ours, theirs) = UnixStream::pair().map_err(io("making", "a monitor connection"))?;
        let writer = ours
            .try_clone()
            .map_err(io("making", "a monitor connection"))?;
        ours.set_read_timeout(Some(POLL))
            .map_err(io("making", "a monitor connection"))?;
        Ok((
            Self {
                reader: BufReader::new(ours),
                writer,
                line: Vec::new(),
                events: Vec::new(),
            },
            theirs,
        ))
    }

    /// Returns the arguments that tell the emulator the descriptor of its end of the connection.
    pub fn arguments(fd: RawFd) -> Vec<String> {
        vec![
            "-chardev".to_owned(),
            format!("socket,id=monitor,fd={fd}"),
            "-mon".to_owned(),
            "chardev=monitor,mode=control".to_owned(),
        ]
    }

    /// Returns the descriptor number of the emulator's end of the connection.
    pub fn fd(theirs: &UnixStream) -> RawFd {
        theirs.as_raw_fd()
    }

    /// Reads the next message. `None` if the connection has ended, `still` returned false while no data arrived, or the
    /// message is too long or is not JSON.
    fn message(&mut self, still: &mut KeepWaiting<'_>) -> Option<Value> {
        loop {
            // Bytes received before a timeout stay in `line`.
            let room = MAX_MESSAGE_BYTES.saturating_sub(self.line.len() as u64);
            let mut reader = self.reader.by_ref().take(room);
            match reader.read_until(b'\n', &mut self.line) {
                Ok(_) if self.line.ends_with(b"\n") => {
                    let message = serde_json::from_slice(&self.line).ok();
                    self.line.clear();
                    return message;
                }
                Err(why)
                    if matches!(
                        why.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) && still() => {}
                _ => return None,
            }
        }
    }

    /// Sends a command and waits for the emulator's answer. Fails if the emulator reports an error or does not answer.
    pub fn command(
        &mut self,
        name: &str,
        arguments: &Value,
        still: &mut KeepWaiting<'_>,
    ) -> Result<Value, String> {
        let line = json!({ "execute": name, "arguments": arguments });
        writeln!(self.writer, "{line}").map_err(|why| format!("{name}: {why}"))?;
        loop {
            let message = self
                .message(still)
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
            if self.events.len() == MAX_EVENTS {
                return Err(format!("{name}: the emulator sends too much"));
            }
            if message.get("event").is_some() {
                self.events.push(message);
            }
        }
    }

    /// Returns the command that prepares a migration: the stream excludes the guest's memory, which is already in a
    /// file, and an event is sent at the stream's end.
    pub fn ignore_shared() -> (&'static str, Value) {
        let on = |name: &str| json!({ "capability": name, "state": true });
        (
            "migrate-set-capabilities",
            json!({ "capabilities": [on("x-ignore-shared"), on("events")] }),
        )
    }

    /// Returns the command that keeps a restored emulator from announcing the guest to a network. Announcements use
    /// timers of the host's clock. Such a timer ends the turn of a CPU, so a guest with several CPUs would depend on
    /// the host.
    pub fn no_announcements() -> (&'static str, Value) {
        ("migrate-set-parameters", json!({ "announce-rounds": 0 }))
    }

    /// Waits until a migration ends. Returns the event that reports completion; `None` if the migration did not
    /// complete or the wait ended.
    pub fn migrated(&mut self, still: &mut KeepWaiting<'_>) -> Option<Value> {
        loop {
            let event = self.event(&["MIGRATION"], still)?;
            match event.pointer("/data/status").and_then(Value::as_str) {
                Some("completed") => return Some(event),
                Some("failed" | "cancelled") => return None,
                _ => {}
            }
        }
    }

    /// Sends commands without waiting for their answers.
    pub fn send(&mut self, commands: &[(&str, Value)]) -> std::io::Result<()> {
        let mut lines = String::new();
        for (name, arguments) in commands {
            let line = json!({ "execute": name, "arguments": arguments });
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        self.writer.write_all(lines.as_bytes())
    }

    /// Waits for an event with one of these names. Returns `None` if `still` returned false, the emulator exited, or
    /// what it sent cannot be read.
    pub fn event(&mut self, names: &[&str], still: &mut KeepWaiting<'_>) -> Option<Value> {
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
            let message = self.message(still)?;
            if message.get("event").is_some() {
                self.events.push(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_comes_in_pieces_is_put_together_and_a_silent_emulator_is_given_up() {
        let (mut monitor, mut theirs) = Monitor::pair().unwrap();
        let sender = std::thread::spawn(move || {
            for piece in ["{\"event\": \"ST", "OP\", \"n\": 1}", "\n"] {
                theirs.write_all(piece.as_bytes()).unwrap();
                std::thread::sleep(POLL * 2);
            }
            theirs
        });
        let event = monitor.event(&["STOP"], &mut || true).unwrap();
        assert_eq!(event["n"], 1);
        let theirs = sender.join().unwrap();
        let mut asked = 0;
        let mut still = || {
            asked += 1;
            asked < 3
        };
        assert_eq!(monitor.event(&["STOP"], &mut still), None);
        assert_eq!(asked, 3);
        drop(theirs);
        assert_eq!(monitor.event(&["STOP"], &mut || true), None, "closed");
    }

    #[test]
    fn an_emulator_that_floods_is_given_up_in_bounded_memory() {
        let (mut monitor, mut theirs) = Monitor::pair().unwrap();
        // This thread ends when the socket is closed.
        let flood = std::thread::spawn(move || {
            let piece = vec![b'x'; 1 << 20];
            while theirs.write_all(&piece).is_ok() {}
        });
        assert_eq!(monitor.event(&["STOP"], &mut || true), None);
        assert_eq!(monitor.line.len() as u64, MAX_MESSAGE_BYTES);
        drop(monitor);
        flood.join().unwrap();
        let (mut monitor, mut theirs) = Monitor::pair().unwrap();
        let flood =
            std::thread::spawn(
                move || {
                    while theirs.write_all(b"{\"event\": \"STOP\"}\n").is_ok() {}
                },
            );
        let said = monitor.command("stop", &json!({}), &mut || true);
        assert!(said.unwrap_err().contains("too much"));
        drop(monitor);
        flood.join().unwrap();
    }
}
