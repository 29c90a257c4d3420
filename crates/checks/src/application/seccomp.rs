//! Do filters look at each of its system calls?

use rtproof_host::facts::app::Status;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Impact, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "app-seccomp",
    title: "system call filters of the application",
    why: "a filter is a program that the kernel runs at each system call of the thread",
    source: "Documentation/userspace-api/seccomp_filter.rst; proc_pid_status(5) (Seccomp)",
    trade_off: Some("filters keep a broken or broken-into program from doing harm"),
    impact: Impact::Microseconds,
    when: When::Login,
    wanted: Wanted::Text("none, or known"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let show = |status: &Status| match status.seccomp {
        None => "no Seccomp line: a kernel without it".into(),
        Some(mode) => format!("Seccomp {mode}"),
    };
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    match found.iter().find(|(_, status)| status.seccomp == Some(2)) {
        Some((process, _)) => {
            let text = "if its system calls are in the loop, measure with and without the filter";
            Ok(draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
                "{} (pid {}): each system call is filtered",
                process.name, process.pid
            )))
        }
        None => Ok(draft.good("no system call filter")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn none_filtered_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        status_of(&mut scene).seccomp = Some(2);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
