//! SIGSTOP, or a debugger: the thread was not to run.

use rtproof_trace::What;

use super::{
    cause::{Attribution, Cause, Kind},
    names,
    scene::{Moment, Phase},
};

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS: [i32; 4] = [19, 20, 21, 22];

pub(super) const CAUSE: Cause = Cause {
    id: "stopped",
    kind: Kind::Scheduling,
    title: "stopped by a signal or a debugger",
    about: "sched_switch saw the thread leave as stopped (T) or traced (t); signal_generate tells \
        who sent SIGSTOP",
    source: "include/linux/sched.h (TASK_STOPPED, TASK_TRACED); signal(7)",
    checks: &["app-debugger"],
    attribute,
};

fn attribute(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != Phase::Stopped {
        return None;
    }
    let scene = moment.scene;
    let ours = scene.task(scene.wake.tid).map_or(scene.wake.tid, |task| task.tgid);
    let stop = scene.rare().iter().rev().find_map(|event| match &event.what {
        What::Signal { number, pid, .. }
            if STOPS.contains(number) && (*pid == ours || *pid == scene.wake.tid) =>
        {
            Some((event, *number))
        }
        _ => None,
    });
    let attribution = match stop {
        Some((event, number)) => {
            let by = names::comm(scene, event.pid);
            Attribution::by(format!("signal {number} of {by}"))
                .owner(names::owner(scene, event.pid))
        }
        // A tracer lets it go on; the kernel records no signal of a stop by ptrace.
        None => match names::waking(scene, scene.wake.tid, scene.wake.ran_ns) {
            Some(event) if event.at_ns >= moment.from_ns => {
                Attribution::by(format!("let go on by {}", names::waker_of(scene, event)))
                    .owner(names::owner(scene, event.pid))
            }
            _ => Attribution::by("a signal or debugger that was not seen"),
        },
    };
    Some(attribution.manual("nothing may stop the application while it has to be on time"))
}
