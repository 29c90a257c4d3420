//! Does what the scheduler takes from real-time tasks by rule reach this application?
//!
//! `rt-throttling` judges the machine. Here the time that the threads used since they started is
//! put beside the limit: an average, so a thread far below it may still reach it in a burst.

use rtproof_host::CpuList;
use rtproof_host::knobs::sched::FAIR_SERVER;
use rtproof_host::knobs::sched::RT_RUNTIME;

use crate::case::{Case, Placed, name};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::since;
use crate::text::cpus;
use crate::{Finding, Impact, Remedy, quantity};

pub(super) static CHECK: Check = Check {
    id: "app-throttling",
    title: "whether RT throttling or the fair server stops the application",
    why: "a real-time thread that leaves too little time to others is stopped, or has ordinary \
          tasks run in front of it, for 50 ms of each second by default",
    source: "kernel/sched/rt.c (sched_rt_runtime_exceeded); kernel/sched/deadline.c (fair server, \
             6.12); proc_pid_stat(5) (utime, stime)",
    trade_off: Some("without the limit a thread that runs away makes the machine unreachable"),
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("no time taken, or far from the limit"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let mut used = CpuList::default();
    for thread in &threads {
        used = used.union(&thread.status.cpus);
    }
    let (draft, left_percent, remedy) = limit(case, draft, &used)?;
    let Some(left) = left_percent else {
        return Ok(draft.good(format!("nothing takes time from it on {}", cpus(&used))));
    };
    let uptime = &case.app.uptime_ticks;
    let draft = draft.read(uptime, |ticks| {
        format!("{} since boot", quantity::ns(ticks.saturating_mul(10_000_000)))
    });
    let Some(&now) = uptime.value() else {
        return Ok(draft.blind(uptime));
    };
    let share = |thread: &Placed<'_>| {
        let age = now.saturating_sub(thread.sched.start_ticks).max(1);
        thread.sched.cpu_ticks.saturating_mul(100) / age
    };
    // `placed` gives at least one.
    let Some(busiest) = threads.iter().max_by_key(|thread| share(thread)) else {
        return Ok(draft.unknown("no thread"));
    };
    let draft = draft.remedies([remedy]);
    let who = name(busiest.thread, busiest.sched);
    let share = share(busiest);
    Ok(if share >= left {
        draft.bad(format!("{who} uses {share} % of a CPU, and may use {left} %"))
    } else {
        draft.doubtful(format!(
            "{who} uses {share} % of a CPU on average, and may use {left} % of any second"
        ))
    })
}

/// The share of a CPU that is left to real-time tasks, in percent; `None`: all of it.
fn limit(
    case: &Case<'_>,
    draft: Draft,
    used: &CpuList,
) -> Result<(Draft, Option<u64>, Remedy), Box<Finding>> {
    let sched = &case.facts.sched;
    let percent = |part: u64, whole: u64| part.saturating_mul(100) / whole.max(1);
    if let Some(servers) = sched.fair_server.value() {
        let own = servers.iter().filter(|server| used.contains(server.cpu));
        let shown: Vec<String> = own
            .clone()
            .map(|server| format!("cpu {}: {}", server.cpu, quantity::ns(server.runtime_ns)))
            .collect();
        let draft = draft.read(&sched.fair_server, |_| shown.join(", ") + "; others not asked");
        let known = CpuList::new(own.clone().map(|server| server.cpu));
        let missing = used.difference(&known);
        if !missing.is_empty() {
            return Err(Box::new(
                draft.unknown(format!("{}: no fair server listed", cpus(&missing))),
            ));
        }
        let on: Vec<_> = own.filter(|server| server.runtime_ns > 0).collect();
        let least =
            on.iter().map(|server| 100 - percent(server.runtime_ns, server.period_ns).min(100));
        let path = |cpu: u32| format!("{}/cpu{cpu}/runtime", sched.fair_server.path);
        let paths = on.iter().map(|server| path(server.cpu)).collect();
        return Ok((draft, least.min(), Remedy::set(&FAIR_SERVER, paths, "0")));
    }
    let version = &case.facts.kernel.version;
    let draft = draft.read(version, |(major, minor)| format!("{major}.{minor}"));
    match since(case.facts, (6, 12)) {
        None => return Err(Box::new(draft.blind(version))),
        Some(true) => return Err(Box::new(draft.blind(&sched.fair_server))),
        Some(false) => {}
    }
    let (runtime, period) = (&sched.rt_runtime_us, &sched.rt_period_us);
    let draft = draft.read(runtime, i64::to_string);
    let Some(&runtime_us) = runtime.value() else {
        return Err(Box::new(draft.blind(runtime)));
    };
    let remedy = Remedy::set(&RT_RUNTIME, vec![runtime.path.clone()], "-1");
    if runtime_us < 0 {
        return Ok((draft, None, remedy));
    }
    let draft = draft.read(period, i64::to_string);
    let Some(&period_us) = period.value() else {
        return Err(Box::new(draft.blind(period)));
    };
    let us = |value: i64| u64::try_from(value).unwrap_or(0);
    let left = (runtime_us < period_us).then(|| percent(us(runtime_us), us(period_us)));
    Ok((draft, left, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, sched_of};
    use crate::testing::good_stock;
    use rtproof_host::{Reading, reading::State};

    #[test]
    fn the_fair_server() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        let State::Known { value } = &mut scene.facts.sched.fair_server.state else { panic!() };
        value[2].runtime_ns = 50_000_000;
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "loop (tid 101, SCHED_FIFO 80) uses 10 % of a CPU on average, and may use 95 % of any \
             second"
        );
        sched_of(&mut scene, 101).cpu_ticks = 990;
        assert_eq!(scene.judge(&CHECK).status, Bad);
        blank(&mut scene.app.uptime_ticks);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        blank(&mut scene.facts.sched.fair_server);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }

    #[test]
    fn throttling_before_6_12() {
        let mut scene = Scene { facts: good_stock(), ..Scene::good() };
        assert_eq!(scene.judge(&CHECK).status, Good);
        let path = "/proc/sys/kernel/sched_rt_runtime_us";
        scene.facts.sched.rt_runtime_us = Reading::known(path, 950_000);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut scene.facts.sched.rt_period_us);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
