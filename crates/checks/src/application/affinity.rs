//! Do its threads stay on the real-time CPUs?

use rtproof_host::tune::Scheduling;

use crate::case::{Case, NAMED_MAX, Placed, name, place, set};
use crate::check::{Answer, Check, Judge};
use crate::draft::Draft;
use crate::text::{cpus, first_few};
use crate::{Impact, Remedy};

pub(super) static CHECK: Check = Check {
    id: "app-affinity",
    title: "CPUs that the application's real-time threads may run on",
    why: "on a CPU that is not kept free, interrupts, timers and threads of the kernel run in \
          front of it",
    source: "sched_setaffinity(2); Documentation/admin-guide/kernel-parameters.txt (isolcpus)",
    impact: Impact::Hundreds,
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let wanted = &case.intent.rt_cpus;
    let draft = draft.wants(format!("none but {}", cpus(wanted))).cpus(wanted);
    if wanted.is_empty() {
        return Ok(draft.no_rt_cpus(case.facts));
    }
    let (draft, mut threads) = case.scheduled(draft)?;
    // Without real-time threads it is about all: where they run is where they will be real-time.
    if threads.iter().any(|thread| thread.sched.policy.is_real_time()) {
        threads.retain(|thread| thread.sched.policy.is_real_time());
    }
    let (draft, threads) = place(draft, &threads)?;
    let outside: Vec<&Placed<'_>> =
        threads.iter().filter(|t| !t.status.cpus.difference(wanted).is_empty()).collect();
    if outside.is_empty() {
        let mut all = threads[0].status.cpus.clone();
        for thread in &threads {
            all = all.union(&thread.status.cpus);
        }
        return Ok(draft.good(format!("on {} only", cpus(&all))));
    }
    let move_to = |placed: &&Placed<'_>| {
        let cpus = Scheduling { cpus: Some(wanted.clone()), ..Scheduling::default() };
        set(placed.thread, placed.sched, cpus)
    };
    let remedies: Vec<Remedy> = outside.iter().map(move_to).collect();
    let line = format!("CPUAffinity={wanted}");
    let draft = draft.remedies(remedies).remedies(case.drop_in(&line));
    let names: Vec<String> = outside
        .iter()
        .map(|t| format!("{} on {}", name(t.thread, t.sched), cpus(&t.status.cpus)))
        .collect();
    let is_apart = |t: &&&Placed<'_>| t.status.cpus.intersection(wanted).is_empty();
    let names = first_few(&names, NAMED_MAX);
    Ok(match outside.iter().find(is_apart) {
        Some(_) => draft.bad(format!("not on the real-time {}: {names}", cpus(wanted))),
        None => draft.doubtful(format!("also on other CPUs than {}: {names}", cpus(wanted))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Intent;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, set_cpus, thread};
    use crate::testing::{cpus as list, intent};

    #[test]
    fn within_beside_and_across() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "on CPU 2 only");
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_cpus(&mut scene, 101, &[0, 1, 2]);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        set_cpus(&mut scene, 101, &[0]);
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.remedies[0].to_string(), "taskset -cp 2-3 101");
        blank(&mut thread(&mut scene, 101).status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        let nowhere = Intent { rt_cpus: list(&[]), ..intent() };
        let scene = Scene::good();
        assert_eq!(CHECK.judge_app(&scene.facts, &scene.app, &nowhere).status, Unknown);
    }
}
