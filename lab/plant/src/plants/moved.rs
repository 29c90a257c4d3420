//! An application whose thread is moved to a busy CPU while it sleeps, waits there, and is moved
//! back.

use rustix::{
    process::Pid,
    thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity},
};

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::policy::Policy;
use crate::run::{Frame, Run};
use crate::{clock, policy};

const PERIOD_NS: u64 = 1_000_000;
/// Of the thread that moves it, and keeps the other CPU busy meanwhile: above the application.
const MOVER: Policy = Policy::Fifo(90);

pub(super) fn moved(frame: Frame, args: &Args) -> Result<(), Failure> {
    let usage = Failure::Usage;
    let busy_ns = args.needed_ns("busy").map_err(usage)?;
    let every_ns = args.needed_ns("every").map_err(usage)?;
    let home = args.number("cpu").map_err(usage)?.unwrap_or(0);
    let away = another(home).ok_or_else(|| usage("there is no other CPU".into()))?;
    if every_ns < 2 * busy_ns {
        return Err(usage("--every: at least twice --busy".into()));
    }
    frame.run("move", args, |run, truth| {
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
        let mut all = Occurrences::with_room(room);
        let application = gettid();
        let result = std::thread::scope(|scope| {
            let mover = scope.spawn(|| {
                policy::pin(away)?;
                MOVER.apply()?;
                to_and_fro(run, application, (home, away), (busy_ns, every_ns), &mut all)
            });
            let mut due_ns = run.begin_ns;
            while !run.is_over() {
                due_ns = (due_ns + PERIOD_NS).max(now_ns());
                clock::sleep_once(due_ns);
            }
            mover.join().unwrap_or_else(|_| Err("its thread ended".into()))
        });
        all.tell(truth);
        truth.set("to", away);
        result
    })
}

/// Takes the application's thread to this CPU, keeps that busy, and gives the thread back.
fn to_and_fro(
    run: &Run,
    application: Pid,
    (home, away): (u64, u64),
    (busy_ns, every_ns): (u64, u64),
    all: &mut Occurrences,
) -> Result<(), String> {
    run.each(every_ns, |due_ns| {
        run.sleep_until(due_ns);
        place(application, away)?;
        let begin_ns = now_ns();
        while now_ns() < begin_ns + busy_ns {}
        place(application, home)?;
        all.add(begin_ns, now_ns());
        Ok(())
    })
}

fn place(task: Pid, cpu: u64) -> Result<(), String> {
    let mut set = CpuSet::new();
    set.set(usize::try_from(cpu).unwrap_or(usize::MAX));
    sched_setaffinity(Some(task), &set).map_err(|error| format!("thread cannot be moved: {error}"))
}

/// A CPU that this process may use beside the one.
fn another(cpu: u64) -> Option<u64> {
    let set = sched_getaffinity(None).ok()?;
    (0..CpuSet::MAX_CPU).filter(|&n| set.is_set(n)).map(|n| n as u64).find(|&n| n != cpu)
}
