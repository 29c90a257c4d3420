//! The child side: what the hidden subcommand does. One process, one load.
//!
//! It ends when its stdin is closed: the pipe's other end is held by rtproof alone, and the kernel
//! closes it whatever rtproof dies of. A built-in load also asks for SIGKILL at the death of its
//! parent, for the case that it is stopped and cannot read; a worker with processes below it does
//! not, because it has to end them first.

use std::{
    io::Read,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rustix::process::Signal;

use rtproof_host::CpuList;

use super::process::{LAUNCH, Message, NO_OP, RUN, WorkerCommand, WorkerShared};
use super::spec::LoadSpec;
use super::{LoadContext, LoadInput, wrap};
use crate::Failure;

/// A worker that does not end on request is killed after this time. Less than the 2 s that the
/// parent waits, more than the wrapper needs.
const END_MAX: Duration = Duration::from_millis(1800);

/// Runs the hidden subcommand: `args` are the arguments behind the subcommand
/// itself, as [`Runner::start`](super::runner::Runner::start) gives them. Returns when the load has
/// ended; results go to stdout. Call it first thing in `main`, before arguments are parsed: the
/// `fork` load measures how fast this binary starts and ends.
///
/// # Errors
/// What kept the load from working. The caller may print it to stderr and must exit non-zero; the
/// parent has it already.
pub(crate) fn main(args: &[String]) -> Result<(), Failure> {
    match args {
        [what] if what == NO_OP => {
            super::set_name("fork");
            Ok(())
        }
        [what, parent, program, rest @ ..] if what == LAUNCH => wrap::launch(parent, program, rest),
        [what, spec, cpus, memory, dir] if what == RUN => {
            let shared = Arc::new(WorkerShared::default());
            let result = Job::parse(spec, cpus, memory, dir, args.len())
                .and_then(|job| job.run(&shared))
                .inspect_err(|error| Message::Error(error.to_string()).send());
            Message::Done(shared.counter.get()).send();
            result
        }
        _ => Err(Failure(format!(
            "load worker: {args:?} is not `run LOAD CPUS BYTES DIR`; rtproof starts it"
        ))),
    }
}

struct Job<'a> {
    spec: LoadSpec,
    cpus: CpuList,
    memory_bytes_per_cpu: u64,
    dir: &'a Path,
    own: WorkerCommand,
}

impl<'a> Job<'a> {
    fn parse(
        spec: &str,
        cpus: &str,
        memory: &str,
        dir: &'a str,
        worker_args: usize,
    ) -> Result<Self, Failure> {
        Ok(Self {
            spec: spec.parse().map_err(|error| format!("load worker: {error}"))?,
            cpus: CpuList::parse(cpus, None).map_err(|error| format!("load worker: {error}"))?,
            memory_bytes_per_cpu: memory
                .parse()
                .map_err(|error| format!("load worker: \"{memory}\" bytes: {error}"))?,
            dir: Path::new(dir),
            own: WorkerCommand::find(worker_args),
        })
    }

    fn run(&self, shared: &Arc<WorkerShared>) -> Result<(), Failure> {
        super::settle(self.spec.name(), &self.cpus)?;
        let before =
            LoadInput { cpus: &self.cpus, dir: self.dir, parameter: self.spec.parameter() };
        let prepare = self.spec.built_in().and_then(|load| load.prepare);
        let held = prepare.map(|prepare| prepare(&before)).transpose()?;
        end_with_parent(shared)?;
        report_each_second(shared)?;
        let Some(load) = self.spec.built_in() else {
            return wrap::run(&self.spec, &self.own, shared);
        };
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| format!("cannot tie the worker to its parent: {error}"))?;
        let parent = std::process::id().to_string();
        (load.work)(&LoadContext {
            before,
            held: held.as_ref(),
            memory_bytes_per_cpu: self.memory_bytes_per_cpu,
            counter: &shared.counter,
            stop: &shared.stop,
            no_op: &|| self.own.command(&[NO_OP]),
            program: &|path| {
                let mut command = self.own.command(&[LAUNCH, &parent]);
                command.arg(path);
                command
            },
            detail: &|text| Message::Detail(text.into()).send(),
        })?;
        if shared.stop.load(Ordering::Relaxed) || self.spec.is_idle() {
            return Ok(());
        }
        Err(Failure(format!("{} ended without being asked to: report this as a bug", self.spec)))
    }
}

/// Sets the stop flag when the other end of stdin is closed, and sees to it that the worker ends.
fn end_with_parent(shared: &Arc<WorkerShared>) -> Result<(), Failure> {
    let shared = Arc::clone(shared);
    let main = std::thread::current();
    spawn("stdin", move || {
        let mut ignored = [0; 64];
        // Whatever is sent is no order; end and error both mean that the parent is gone.
        while std::io::stdin().lock().read(&mut ignored).is_ok_and(|count| count > 0) {}
        shared.stop.store(true, Ordering::Relaxed);
        main.unpark();
        std::thread::sleep(END_MAX);
        Message::Done(shared.counter.get()).send();
        kill_self();
    })
}

/// Ends this process, and its group where that is its own, as when a disk does not answer.
fn kill_self() {
    let own = rustix::process::getpid();
    if rustix::process::getpgrp() == own {
        let _ = rustix::process::kill_current_process_group(Signal::KILL);
    }
    let _ = rustix::process::kill_process(own, Signal::KILL);
}

fn report_each_second(shared: &Arc<WorkerShared>) -> Result<(), Failure> {
    let shared = Arc::clone(shared);
    spawn("report", move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            Message::Work(shared.counter.get()).send();
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = std::thread::Builder::new().name(format!("rtproof-{name}")).spawn(work);
    thread
        .map(drop)
        .map_err(|error| format!("cannot start a thread: {error}; raise `ulimit -u`").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_arguments_are_named() {
        let call = |args: &[&str]| {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            main(&args).unwrap_err().to_string()
        };
        assert!(call(&[]).contains("rtproof starts it"));
        assert!(call(&["run", "cpu"]).contains("\"cpu\""));
        assert!(call(&["run", "cpux", "0", "0", "/tmp"]).contains("did you mean cpu?"));
        assert!(call(&["run", "cpu", "z", "0", "/tmp"]).contains("\"z\""));
        assert!(call(&["run", "cpu", "0", "-1", "/tmp"]).contains("\"-1\""));
        assert!(call(&["run", "cpu", "", "0", "/tmp"]).contains("no load CPUs"));
    }
}
