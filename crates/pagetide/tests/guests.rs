//! End-to-end tests: the real binary, real kernels, and the documents.
//!
//! `make test` runs one test for each capability. The others are marked `#[ignore = "test-all"]`; `make test-all` runs
//! them too.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod bisect;
mod build_kills;
mod causes;
mod children;
mod commands;
#[allow(dead_code, reason = "tests without a guest use the rest")]
mod common;
mod cpus;
mod damage;
mod deaths;
mod disk;
mod examples;
mod file_systems;
mod groups;
mod hangs;
mod hunt;
mod interrupted;
mod kernels;
mod kills;
mod machine_size;
mod matrix;
mod nodes;
mod observed;
mod outside;
mod own_program;
mod page;
mod patch;
mod planted;
mod planted_patches;
mod profiled;
mod program_limits;
mod program_roots;
mod program_sees;
mod real_programs;
mod scenarios;
mod second_version;
mod slurm;
mod squeeze;
mod swap_kinds;
mod tiers;
mod trials;
mod virtual_machines;
mod workloads;
