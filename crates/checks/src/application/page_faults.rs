//! Page faults of the real-time threads since they started.
//!
//! Minor faults belong to every start: one reading cannot tell those of the loop from those before
//! it, so they are reported and not judged. A major fault waited for a disk.

use crate::case::{Case, NAMED_MAX, name, of_threads};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{count, first_few};
use crate::{Impact, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "app-page-faults",
    title: "page faults of the application's real-time threads",
    why: "a major fault stops the thread until a page is read from disk, a minor one while the \
          kernel finds and clears a page",
    source: "proc_pid_stat(5) (minflt, majflt); mlockall(2)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("no major fault; no new minor ones"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.real_time(draft)?;
    let readings = threads.iter().map(|found| (found.thread, &found.thread.sched));
    let draft = draft.saw(of_threads(readings, |sched| {
        format!("{} major, {} minor", sched.major_faults, sched.minor_faults)
    }));
    let major: Vec<String> = threads
        .iter()
        .filter(|found| found.sched.major_faults > 0)
        .map(|found| {
            let number = found.sched.major_faults;
            format!("{number} of {}", name(found.thread, found.sched))
        })
        .collect();
    let minor: u64 =
        threads.iter().fold(0, |sum, found| sum.saturating_add(found.sched.minor_faults));
    if major.is_empty() {
        return Ok(draft.good(format!(
            "no major fault, {minor} minor since the start of {}",
            count(threads.len(), "real-time thread")
        )));
    }
    let command = format!("ps -L -o tid,comm,min_flt,maj_flt -p {}", case.app.pid);
    let text = "lock memory before the loop starts; then the counts no longer rise";
    Ok(draft
        .remedies([Remedy::Manual { text: text.into() }, Remedy::Command { command }])
        .doubtful(format!(
            "major faults since the start, perhaps before the loop: {}",
            first_few(&major, NAMED_MAX)
        )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, thread};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn major_minor_and_unknown() {
        let mut scene = Scene::good();
        sched_of(&mut scene, 100).major_faults = 9;
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Good, "faults of an ordinary thread");
        assert!(finding.summary.contains("120 minor"), "{}", finding.summary);
        sched_of(&mut scene, 101).major_faults = 1;
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, NotApplicable);
        blank(&mut thread(&mut scene, 101).sched);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
