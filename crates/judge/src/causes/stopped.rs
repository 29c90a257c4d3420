//! SIGSTOP, or a debugger: the thread was not to run.

use rtproof_trace::What;

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
const STOPS: [i32; 4] = [19, 20, 21, 22];

/// Stopped by a signal or a debugger.
#[derive(Debug)]
pub(super) struct Stopped;

impl Cause for Stopped {
    fn id(&self) -> &'static str {
        "stopped"
    }

    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    fn title(&self) -> &'static str {
        "stopped by a signal or a debugger"
    }

    fn about(&self) -> &'static str {
        "sched_switch saw the thread leave as stopped (T) or traced (t); signal_generate tells \
         who sent SIGSTOP"
    }

    fn source(&self) -> &'static str {
        "include/linux/sched.h (TASK_STOPPED, TASK_TRACED); signal(7)"
    }

    fn checks(&self) -> &'static [&'static str] {
        &["app-debugger"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        if moment.phase != Phase::Stopped {
            return None;
        }
        let scene = moment.scene;
        let ours = scene.task(scene.wake.tid).map_or(scene.wake.tid, |task| task.tgid);
        let stop = scene.window.events.iter().rev().find_map(|event| match &event.what {
            What::Signal { number, pid, .. }
                if STOPS.contains(number) && (*pid == ours || *pid == scene.wake.tid) =>
            {
                Some((event, *number))
            }
            _ => None,
        });
        let claim = match stop {
            Some((event, number)) => {
                let by = names::comm(scene, event.pid);
                Claim::by(format!("signal {number} of {by}")).owner(names::owner(scene, event.pid))
            }
            None => Claim::by("a signal or debugger that was not seen"),
        };
        Some(claim.manual("nothing may stop the application while it has to be on time"))
    }
}
