//! Completes values in the shell: names of scenarios, settings and kernels, and names in the store.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use anyhow::Result;
use clap::Command;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use pagetide_lab::vocabulary;
use pagetide_store::Names;

use crate::lab::StoreArgs;

/// Returns the command line's definition with completion of values.
pub fn with_names(command: Command) -> Command {
    let complete = |arg: clap::Arg| {
        let names: fn() -> Result<BTreeSet<String>> = match arg.get_id().as_str() {
            "scenario" | "scenarios" | "what" => || Ok(scenarios()),
            "set" | "vs" => || Ok(settings()),
            "kernel" | "kernels" => kernels,
            "campaign" => || Ok(in_store()?.campaigns),
            "variant" => || Ok(in_store()?.variants),
            "record" => || Ok(in_store()?.records),
            "a" | "b" | "names" => || Ok(in_store()?.all()),
            _ => return arg,
        };
        let takes_files = arg.get_id() == "what";
        arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
            let start = typed.to_string_lossy();
            let fits = |name: &String| name.starts_with(&*start);
            // If the store or the cache cannot be read, no names are offered.
            let names = names().unwrap_or_default().into_iter();
            let mut all: Vec<_> = names.filter(fits).map(CompletionCandidate::new).collect();
            if takes_files {
                all.extend(PathCompleter::file().complete(typed));
            }
            all
        }))
    };
    command.mut_args(complete).mut_subcommands(with_names)
}

fn scenarios() -> BTreeSet<String> {
    let all = pagetide_scenario::list().iter();
    all.map(|definition| definition.name.to_owned()).collect()
}

fn settings() -> BTreeSet<String> {
    let known = vocabulary().settings.into_iter();
    known.map(|name| format!("{name}=")).collect()
}

fn kernels() -> Result<BTreeSet<String>> {
    let cache = StoreArgs::default().cache_folder()?;
    Ok(pagetide_kernel::names(&cache)?)
}

fn in_store() -> Result<Names> {
    Ok(Names::of(&StoreArgs::default().store_folder()?)?)
}
