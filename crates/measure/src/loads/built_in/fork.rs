//! Starts and reaps processes as fast as it can. Brings out what process creation does to others:
//! page-table work, RCU callbacks, run-queue locks, wake-ups on other CPUs, inter-processor
//! interrupts for text that is mapped and unmapped, exit work.
//!
//! Bounded: one process at a time on each load CPU, each of them this binary's own no-op.

use std::process::Command;

use super::super::load::{Context, Load};
use crate::failure::Failure;

/// One process at a time on each load CPU.
pub(super) const LOAD: Load = Load {
    name: "fork",
    about: "Starts and reaps short processes, one at a time on each load CPU",
    unit: "processes",
    parameter: None,
    prepare: None,
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
    let cpus = match ctx.before.cpus.len() {
        1 => "1 CPU".into(),
        several => format!("each of {several} CPUs"),
    };
    (ctx.detail)(&format!("1 process at a time on {cpus}"));
    ctx.on_each_cpu(|_| {
        let mut command = (ctx.no_op)();
        while !ctx.stopped() {
            start_and_reap(&mut command)?;
            ctx.counter.add(1);
        }
        Ok(())
    })
}

fn start_and_reap(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| {
        format!("cannot start a process: {error}; raise `ulimit -u` or the cgroup's pids.max")
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure(format!("its no-op process ended with {status}, exit status 0 was expected")))
    }
}
