//! Writes the timeline of a trial as Chrome trace-event JSON, for Perfetto's viewer and chrome://tracing.
//!
//! A group is shown as a process, a track as a thread in it, and a counter as a counter of its group. Format: "Trace
//! Event Format" (Google, 2016). Slices of one thread must nest. Slices that overlap otherwise are put on additional
//! tracks with the same name, so that no viewer drops them.

use std::io::{self, Write};

use pagetide_quantity::{Nanos, Series, Unit};

use crate::draw::clean;
use crate::json;

/// Maximum length of a name, in columns.
const NAME_CHARS: usize = 200;

/// The timeline of one trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Title, such as the record's cell and seed.
    pub title: String,
    /// Tracks, each with the slices of one task or device, or with the phases of the trial.
    pub tracks: Vec<Track>,
    /// Counters that are drawn over time.
    pub counters: Vec<Counter>,
}

/// A row of the timeline, which contains slices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    /// Group, such as "reclaim", "kswapd" or "block I/O".
    pub group: String,
    /// Name of the track within its group, such as a task's name and process id.
    pub name: String,
    /// The slices of the track, in any order.
    pub slices: Vec<Slice>,
}

/// An event with a duration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Name of the event.
    pub name: String,
    /// Start time on the trial's clock, in nanoseconds since the first event of the trace.
    pub start: Nanos,
    /// Duration in nanoseconds.
    pub duration: Nanos,
    /// Names and values of additional details, which the viewer shows for the slice.
    pub details: Vec<(String, String)>,
}

/// A number over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counter {
    /// Group, such as "vmstat" or "pressure".
    pub group: String,
    /// Name of the counter within its group.
    pub name: String,
    /// Times and values, in ascending order of time.
    pub points: Vec<(Nanos, f64)>,
}

/// Returns the counters of a series: every column as a function of the column `time` (nanoseconds); empty if there is
/// no such column.
pub fn counters(series: &Series) -> Vec<Counter> {
    let Some(times) = series
        .columns
        .iter()
        .find(|(column, _)| column.name == "time" && column.unit == Unit::Nanos)
        .map(|(_, data)| data)
    else {
        return Vec::new();
    };
    series
        .columns
        .iter()
        .filter(|(column, _)| column.name != "time")
        .map(|(column, data)| Counter {
            group: series.name.clone(),
            name: column.name.clone(),
            points: (0..series.rows())
                .filter_map(|row| {
                    let time = match times {
                        pagetide_quantity::ColumnData::Int(times) => {
                            u64::try_from(*times.get(row)?).ok()?
                        }
                        pagetide_quantity::ColumnData::Float(_) => return None,
                    };
                    Some((Nanos(time), data.get(row)?))
                })
                .collect(),
        })
        .collect()
}

/// Formats a time in microseconds as text with three decimals, which is exact.
fn micros(time: Nanos) -> String {
    format!("{}.{:03}", time.0 / 1000, time.0 % 1000)
}

/// Returns a cleaned name as a JSON string.
fn text(name: &str) -> String {
    json::string(&clean(name, NAME_CHARS, false))
}

/// Distributes slices over lanes, so that the slices of a lane nest or do not overlap. A slice goes to the first lane
/// in which it fits; slices are taken in the order of their start.
fn lanes(slices: &[Slice]) -> Vec<Vec<&Slice>> {
    let end = |slice: &Slice| slice.start.0.saturating_add(slice.duration.0);
    let mut order: Vec<&Slice> = slices.iter().collect();
    // If two slices start at the same time, the longer one contains the other.
    order.sort_by_key(|slice| (slice.start, std::cmp::Reverse(slice.duration)));
    let mut lanes: Vec<(Vec<&Slice>, Vec<u64>)> = Vec::new();
    for slice in order {
        let free = lanes.iter_mut().find_map(|lane| {
            while lane.1.last().is_some_and(|open| *open <= slice.start.0) {
                lane.1.pop();
            }
            lane.1
                .last()
                .is_none_or(|open| end(slice) <= *open)
                .then_some(lane)
        });
        if let Some(lane) = free {
            lane.0.push(slice);
            lane.1.push(end(slice));
        } else {
            lanes.push((vec![slice], vec![end(slice)]));
        }
    }
    lanes.into_iter().map(|(slices, _)| slices).collect()
}

/// Writer of events, one per line.
struct Events<W> {
    out: W,
    first: bool,
}

impl<W: Write> Events<W> {
    fn add(&mut self, event: &str) -> io::Result<()> {
        let comma = if self.first { "" } else { "," };
        self.first = false;
        write!(self.out, "{comma}\n{{{event}}}")
    }

    /// Writes the name of a process or thread.
    fn label(&mut self, what: &str, pid: usize, tid: usize, name: &str) -> io::Result<()> {
        let name = text(name);
        self.add(&format!(
            r#""ph":"M","name":"{what}","pid":{pid},"tid":{tid},"args":{{"name":{name}}}"#
        ))
    }
}

/// Writes a timeline as Chrome trace-event JSON.
pub fn write(writer: impl Write, trace: &Timeline) -> io::Result<()> {
    let mut groups: Vec<&str> = Vec::new();
    for group in trace
        .tracks
        .iter()
        .map(|track| &track.group)
        .chain(trace.counters.iter().map(|counter| &counter.group))
    {
        if !groups.contains(&group.as_str()) {
            groups.push(group);
        }
    }
    let pid = |group: &str| groups.iter().position(|g| *g == group).unwrap_or(0) + 1;
    let mut events = Events {
        out: io::BufWriter::new(writer),
        first: true,
    };
    write!(
        events.out,
        r#"{{"displayTimeUnit":"ns","otherData":{{"title":{},"tool":"pagetide"}},"traceEvents":["#,
        text(&trace.title)
    )?;
    for group in &groups {
        events.label("process_name", pid(group), 0, group)?;
    }
    let mut tid = 0;
    for track in &trace.tracks {
        let pid = pid(&track.group);
        for lane in lanes(&track.slices) {
            tid += 1;
            events.label("thread_name", pid, tid, &track.name)?;
            for slice in lane {
                let details: Vec<String> = slice
                    .details
                    .iter()
                    .map(|(name, value)| format!("{}:{}", text(name), text(value)))
                    .collect();
                events.add(&format!(
                    r#""ph":"X","name":{},"cat":{},"pid":{pid},"tid":{tid},"ts":{},"dur":{},"args":{{{}}}"#,
                    text(&slice.name),
                    text(&track.group),
                    micros(slice.start),
                    micros(slice.duration),
                    details.join(",")
                ))?;
            }
        }
    }
    for counter in &trace.counters {
        let (pid, name) = (pid(&counter.group), text(&counter.name));
        for (time, value) in counter.points.iter().filter(|(_, v)| v.is_finite()) {
            events.add(&format!(
                r#""ph":"C","name":{name},"pid":{pid},"tid":0,"ts":{},"args":{{"value":{value}}}"#,
                micros(*time)
            ))?;
        }
    }
    events.out.write_all(b"\n]}\n")?;
    events.out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, start: u64, duration: u64) -> Slice {
        Slice {
            name: name.to_owned(),
            start: Nanos(start),
            duration: Nanos(duration),
            details: Vec::new(),
        }
    }

    #[test]
    fn nested_slices_share_a_lane_and_overlapping_ones_do_not() {
        let slices = [
            slice("inner", 20, 10),
            slice("outer", 0, 100),
            slice("across", 50, 100),
            slice("after", 200, 5),
        ];
        let found = lanes(&slices);
        let names: Vec<Vec<&str>> = found
            .iter()
            .map(|lane| lane.iter().map(|s| s.name.as_str()).collect())
            .collect();
        assert_eq!(names, [vec!["outer", "inner", "after"], vec!["across"]]);
    }

    #[test]
    fn moments_are_exact_to_the_nanosecond() {
        assert_eq!(micros(Nanos(1_234_567_890_123)), "1234567890.123");
        assert_eq!(micros(Nanos(7)), "0.007");
    }

    #[test]
    fn a_series_with_times_becomes_counters() {
        let series = Series::new("vmstat")
            .int("time", Unit::Nanos, [10, 20])
            .int("pswpin", Unit::Pages, [1, 5]);
        let found = counters(&series);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].points, [(Nanos(10), 1.0), (Nanos(20), 5.0)]);
        assert!(counters(&Series::new("x").int("page", Unit::Pages, [1])).is_empty());
    }
}
