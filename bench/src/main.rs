//! Benchmarks of the measuring itself: rtproof beside cyclictest, jitterdebugger and a bare loop,
//! in interleaved rounds of one run, on one CPU. Prints ratios with their spread; asserts nothing.

mod analysis;
mod args;
mod audit;
mod bare;
mod causes;
mod coverage;
mod long;
mod memory;
mod numbers;
mod peers;
mod recording;
mod rounds;
mod trace;

use std::io::Write;

use args::{Args, Command};
use clap::Parser;

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    match args.command {
        Some(Command::Bare { period_us, seconds }) => {
            let n = bare::run(period_us * 1000, seconds * 1_000_000_000);
            writeln!(out, "{n}")?;
            return Ok(());
        }
        Some(Command::ReadTrace { file, how }) => return trace::read(&mut out, &file, how),
        Some(Command::Stats) => return analysis::run(&mut out),
        Some(Command::Coverage(options)) => return coverage::run(&mut out, &options),
        Some(Command::Recording) => return recording::run(&mut out),
        Some(Command::Long(options)) => return long::run(&mut out, &args.rtproof, &options),
        Some(Command::Trace) => return trace::run(&mut out),
        Some(Command::Audit) => return audit::run(&mut out, &args.rtproof, args.rounds),
        Some(Command::Causes(options)) => {
            return causes::run(&mut out, &args.rtproof, args.cpu, &options);
        }
        None => {}
    }
    anyhow::ensure!(
        args.rtproof.exists(),
        "{}: not there; build it with `cargo build --release`",
        args.rtproof.display()
    );
    // Peers hold the idle states off by themselves; so that all are measured alike, it is held for
    // all. On machines without it the peers do not get it either.
    let held = rtproof_host::idle::hold(&rtproof_host::Root::live(), 0);
    let state = held.as_ref().map_or_else(ToString::to_string, |_| "held at 0 for all".into());
    writeln!(out, "/dev/cpu_dma_latency: {state}\n")?;
    recording::run(&mut out)?;
    memory::run(&mut out, &args.rtproof)?;
    trace::run(&mut out)?;
    rounds::run(&mut out, &args)
}
