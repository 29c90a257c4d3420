//! `rtproof kernel build`: a kernel from a source, out of tree. Installs nothing.

use std::path::{Path, PathBuf};

use rtproof_report::text::kernel as text_of;
use rtproof_run::kernel::{
    self,
    build::{self, Product},
    make::Make,
    source,
};

use super::{MakeArgs, progress, user};
use crate::{exit, print::Text};

/// Arguments of `kernel build`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof kernel build --source linux-6.12 out
  rtproof kernel build --source /usr/src/linux-source-6.1.tar.xz --patches debian/patches-rt out
  rtproof kernel build --source distribution --deb --user builder /home/builder/out
  rtproof kernel build --source linux-6.12 --test allnoconfig,tinyconfig tests

The objects go to FOLDER/build, all output to FOLDER/build.log. A build that was cut off is continued \
by the same command. Nothing is installed. Exit code 1 where the build fails, 2 where one of --test \
does.")]
pub struct Args {
    /// Folder of the build; made where it is not there
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// Source: a folder, a git tree, a tarball, or `distribution` for the newest linux-source
    /// package in /usr/src
    #[arg(long, value_name = "PATH")]
    pub source: PathBuf,

    /// Configuration; default: the one that `kernel config` made in the folder
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Apply patches to a copy of the source first: a folder with a `series` file, or with *.patch
    /// files in sorted order, or one file; also .gz and .xz
    #[arg(long, value_name = "PATH")]
    pub patches: Option<PathBuf>,

    /// Build Debian packages
    #[arg(long, conflicts_with = "test")]
    pub deb: bool,

    /// Test whether configurations build: targets of the source's makefile, separated by commas
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    pub test: Vec<String>,

    /// Commands that make runs at once; default: one for each CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    /// What both commands take.
    #[command(flatten)]
    pub make: MakeArgs,
}

/// A target that makes a configuration.
fn target(name: &str) -> anyhow::Result<()> {
    let is_plain = name.ends_with("config")
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    if is_plain && !name.starts_with(['-', '.']) {
        return Ok(());
    }
    Err(exit::usage(format!("--test {name}: no target such as allnoconfig or tinyconfig")))
}

/// Runs the command.
///
/// # Errors
/// The source, a patch, the configuration, a program that is missing, whatever the build says.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(code) = user::again(args.make.user.as_deref())? {
        return Ok(code);
    }
    args.test.iter().try_for_each(|name| target(name))?;
    let place = kernel::place(&args.folder)?;
    let mut observer = progress::shown();
    let outcome = made(args, &place, &mut observer);
    progress::end();
    outcome
}

fn made(args: &Args, place: &Path, observer: kernel::tool::OnProgress<'_>) -> anyhow::Result<u8> {
    let tree = source::open(&args.source, place, args.patches.as_deref(), observer)?;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or(cpus, usize::from);
    let objects = place.join("build");
    let make = Make { tree: tree.path.clone(), objects, variables: args.make.variables.clone() };
    let text = Text::new(args.make.json);
    if !args.test.is_empty() {
        let tests = build::test(&tree, &make, place, &args.test, jobs, observer)?;
        progress::end();
        text.print(|to| text_of::build_tests(to, &tests))?;
        text.print_json(&tests)?;
        let all = tests.rows.iter().all(|row| row.builds);
        return Ok(if all { exit::ACCEPTED } else { exit::REFUSED });
    }
    if let Some(config) = &args.config {
        kernel::place(&make.objects)?;
        build::take_config(config, &make.objects)?;
    }
    let product = if args.deb { Product::Deb } else { Product::Image };
    let built = build::build(&tree, make, place, product, jobs, observer)?;
    progress::end();
    text.print(|to| text_of::built(to, &built))?;
    text.print_json(&built)?;
    Ok(exit::ACCEPTED)
}
