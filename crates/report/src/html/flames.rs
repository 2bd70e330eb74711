//! Call stacks of profiled trials, for flame graphs.
//!
//! The nodes of a call tree are in a blob of LEB128 numbers, three for each node: the distance to the caller's node,
//! or zero for an outermost node; the index of the name; and the time in nanoseconds, without the time of called
//! functions.

use std::io;

use pagetide_compare::profiled::ProfiledPass;
use pagetide_profile::{Profile, WAITS};

use super::Input;
use super::blob::{Blobs, varint};
use super::data::Flame;
use crate::draw::clean;

/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 80;

/// Returns the call stacks of a cell: one profile for each variant that has a profile.
pub(crate) fn flames(
    input: &Input<'_>,
    cell: usize,
    columns: usize,
    blobs: &mut Blobs<'_>,
) -> io::Result<Vec<Flame>> {
    let mut all = Vec::new();
    for column in 0..columns {
        if let Some(pass) = input.sources.profiled.get(&(cell, column)) {
            all.push(flame(column, pass, blobs)?);
        }
    }
    Ok(all)
}

fn flame(column: usize, pass: &ProfiledPass, blobs: &mut Blobs<'_>) -> io::Result<Flame> {
    let profile = &pass.profile;
    let (mut names, bytes, nodes) = nodes(profile);
    for name in &mut names {
        *name = clean(name, NAME_CHARS, false);
    }
    Ok(Flame {
        column,
        record: pass.record.clone(),
        seed: pass.seed,
        names,
        nodes,
        blob: blobs.put(&bytes)?,
    })
}

/// Returns the names, the encoded nodes and the number of nodes of a profile. Waits are below an outermost node of
/// their own.
fn nodes(profile: &Profile) -> (Vec<String>, Vec<u8>, usize) {
    let functions = profile.functions.iter().map(|one| one.name.clone());
    let mut names: Vec<String> = functions.chain(profile.tasks.iter().cloned()).collect();
    let mut bytes = Vec::new();
    let mut put = |back: usize, name: usize, own: u64| {
        varint(&mut bytes, back as u64);
        varint(&mut bytes, name as u64);
        varint(&mut bytes, own);
    };
    for (at, node) in profile.nodes.iter().enumerate() {
        let is_root = profile.is_root(at);
        let name = node.what as usize + if is_root { profile.functions.len() } else { 0 };
        put(at - node.parent as usize, name, node.own);
    }
    let mut count = profile.nodes.len();
    let waits = profile.waits_by_name();
    if profile.idle > 0 {
        // Profiles of earlier versions do not contain the causes of waits.
        let rest = if waits.is_empty() { profile.idle } else { 0 };
        put(0, names.len(), rest);
        names.push(WAITS.to_owned());
        count += 1;
    }
    for (back, (name, time, _)) in (1..).zip(waits) {
        put(back, names.len(), time);
        names.push(name);
        count += 1;
    }
    (names, bytes, count)
}

#[cfg(test)]
mod tests {
    use pagetide_profile::{Function, Node, Wait};

    use super::*;

    #[test]
    fn nodes_follow_their_callers_and_waits_follow_the_tasks() {
        let function = Function {
            name: "do_swap_page".to_owned(),
            instructions: 30,
            ..Function::default()
        };
        let profile = Profile {
            elapsed: 330,
            idle: 300,
            functions: vec![function],
            tasks: vec!["workload".to_owned()],
            nodes: [(0, 0, 0, 0), (0, 0, 30, 2)].map(Node::from).into(),
            waits: vec![Wait {
                stack: vec![
                    "workload".to_owned(),
                    "do_swap_page".to_owned(),
                    "io_schedule".to_owned(),
                ],
                time: 300,
                count: 1,
            }],
            ..Profile::new()
        };
        let (names, bytes, count) = nodes(&profile);
        assert_eq!(
            names,
            ["do_swap_page", "workload", "waits", "device: do_swap_page"]
        );
        // The number 300 takes two bytes.
        assert_eq!(bytes, [0, 1, 0, 1, 0, 30, 0, 2, 0, 1, 3, 0xac, 2]);
        assert_eq!(count, 4);
    }
}
