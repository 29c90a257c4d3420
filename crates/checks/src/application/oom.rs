//! Is it among the first to be killed when memory runs out?

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Impact, Remedy};
use rtproof_host::knobs::sched::OOM_SCORE_ADJ;

pub(super) static CHECK: Check = Check {
    id: "app-oom",
    title: "whether the application is spared when memory runs out",
    why: "locked memory makes a process large, and of equal scores the largest is killed",
    source: "proc_pid_oom_score_adj(5); mm/oom_kill.c (oom_badness)",
    trade_off: Some("a process that is never killed may take the whole machine with it"),
    impact: Impact::Information,
    wanted: Wanted::Text("at most 0; -1000 is never"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, found) =
        case.of_processes(draft, |process| &process.oom_score_adj, i64::to_string)?;
    match found.iter().find(|&&(_, &score)| score > 0) {
        Some((process, score)) => {
            let paths = vec![process.oom_score_adj.path.clone()];
            Ok(draft
                .remedies([Remedy::set(&OOM_SCORE_ADJ, paths, "-900")])
                .remedies(case.drop_in("OOMScoreAdjust=-900"))
                .doubtful(format!(
                    "{} (pid {}) is offered as one of the first (oom_score_adj {score})",
                    process.name, process.pid
                )))
        }
        None => {
            let most = found.iter().map(|(_, score)| **score).max().unwrap_or(0);
            Ok(draft.good(format!("oom_score_adj {most}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank};
    use rtproof_host::Reading;

    #[test]
    fn spared_offered_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        let path = "/proc/100/oom_score_adj";
        scene.app.processes[0].oom_score_adj = Reading::known(path, 500);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut scene.app.processes[0].oom_score_adj);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
