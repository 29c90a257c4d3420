//! Does a debugger or strace hold it?

use rtproof_host::facts::app::Status;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Impact, Remedy};

pub(super) static CHECK: Check = Check {
    id: "app-debugger",
    title: "whether the application is traced",
    why: "a traced thread stops at each signal, and under strace at each system call, until the \
          tracer, an ordinary task, lets it go on",
    source: "ptrace(2); proc_pid_status(5) (TracerPid)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let show = |status: &Status| format!("TracerPid {}", status.tracer);
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    match found.iter().find(|(_, status)| status.tracer != 0) {
        Some((process, status)) => {
            let text = format!("detach the tracer, process {}", status.tracer);
            Ok(draft.remedies([Remedy::Manual { text }]).doubtful(format!(
                "{} (pid {}) is traced by process {}",
                process.name, process.pid, status.tracer
            )))
        }
        None => Ok(draft.good("nobody traces it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn nobody_somebody_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        status_of(&mut scene).tracer = 77;
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
