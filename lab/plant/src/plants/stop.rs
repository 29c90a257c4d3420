//! SIGSTOP and SIGCONT: the measuring process, or another one, stands still for a while.

use rustix::process::{Pid, Signal, kill_process};

use crate::args::Args;
use crate::clock::now_ns;
use crate::failure::Failure;
use crate::measuring;
use crate::occurrences::Occurrences;
use crate::run::Frame;

pub(super) fn stop(frame: Frame, args: &Args) -> Result<(), Failure> {
    let usage = Failure::Usage;
    let busy_ns = args.needed_ns("busy").map_err(usage)?;
    let every_ns = args.needed_ns("every").map_err(usage)?;
    let asked = args.number("pid").map_err(usage)?;
    frame.run("stop", args, |run, truth| {
        let pid = match asked {
            Some(pid) => u32::try_from(pid).ok(),
            None => measuring::process(),
        };
        let raw = pid.ok_or("no rtproof is measuring")?.cast_signed();
        let pid = Pid::from_raw(raw).ok_or_else(|| format!("--pid {raw}: no process"))?;
        let send = |signal: Signal| {
            kill_process(pid, signal).map_err(|error| format!("process {raw}: {error}"))
        };
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
        let mut all = Occurrences::with_room(room);
        let result = run.each(every_ns, |due_ns| {
            run.sleep_until(due_ns);
            let begin_ns = now_ns();
            send(Signal::STOP)?;
            run.sleep_until(begin_ns + busy_ns);
            let end_ns = now_ns();
            send(Signal::CONT)?;
            all.add(begin_ns, end_ns);
            Ok(())
        });
        all.tell(truth);
        truth.set("target", raw);
        // The run may have ended between two stops; that ends the plant, and is no failure.
        if all.count() > 0 { Ok(()) } else { result }
    })
}
