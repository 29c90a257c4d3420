//! Housekeeping of the source tree, as a program: `cargo xtask <job>`.
//!
//! Style is a test here, not a hope. Each job is one file or one folder; each prints what is wrong,
//! where and what to do, and ends with 1 when something is.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod fuzz;
mod lab;
mod oldest_rust;
#[cfg(feature = "reference")]
mod reference;
mod source;
mod tests;
mod tidy;
mod tree;

/// Housekeeping of the source tree.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    job: Job,
}

#[derive(Subcommand)]
enum Job {
    /// Check the house rules: floors, circles, sizes, docs, names, bans, pages, lists.
    Tidy {
        /// Lower the numbers of xtask/src/tidy/known.txt to what is still wrong; without the file,
        /// write all that is wrong today.
        #[arg(long)]
        keep_known: bool,
    },
    /// Check that no crate of the binary needs a newer Rust than Cargo.toml states.
    OldestRust,
    /// Write the reference pages of docs/ from the crates themselves.
    #[cfg(feature = "reference")]
    Reference {
        /// Only tell which pages are out of date.
        #[arg(long)]
        check: bool,
    },
    /// Write man pages and shell completions.
    #[cfg(feature = "reference")]
    DistFiles {
        /// Folder to write to.
        folder: std::path::PathBuf,
    },
    /// Real kernels under QEMU that run rtproof: run, list, shell, cache.
    #[command(disable_help_flag = true)]
    Lab {
        /// Arguments of the lab; see `cargo xtask lab --help`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build and run the tests of the workspace, as `make test` does.
    Test {
        /// Only this part; default: both, one after the other.
        #[arg(long, value_enum)]
        part: Option<tests::Part>,
        /// Only tests with one of these in their name, as it is printed.
        only: Vec<String>,
    },
    /// Run the fuzz targets, each for a minute.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only targets with this in their name.
        #[arg(default_value = "")]
        only: String,
    },
}

fn main() -> Result<ExitCode> {
    match Cli::parse().job {
        Job::Tidy { keep_known } => tidy::run(keep_known),
        Job::OldestRust => oldest_rust::run(),
        #[cfg(feature = "reference")]
        Job::Reference { check } => reference::run(check),
        #[cfg(feature = "reference")]
        Job::DistFiles { folder } => reference::dist_files(&folder),
        Job::Lab { arguments } => lab::run(&arguments),
        Job::Test { part, only } => tests::run(part, &only),
        Job::Fuzz { seconds, only } => fuzz::run(seconds, &only),
    }
}
