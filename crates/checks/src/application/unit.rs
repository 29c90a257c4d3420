//! What its systemd unit says, by its files: which settings stand in the way?
//!
//! A unit whose process is real-time already got there before a filter was put on, or by
//! another's hand: what would refuse it is then doubtful, for its next thread.

use rtproof_host::CpuList;
use rtproof_host::facts::app::UnitFile;

use crate::case::{Case, NAMED_MAX};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{count, cpus, first_few};
use crate::{Evidence, Impact, Remedy, Status, When};

/// System calls and groups of them without which a thread cannot become real-time or lock memory
/// (systemd-analyze syscall-filter).
const NEEDED_CALLS: &[&str] =
    &["@resources", "@memlock", "sched_setscheduler", "sched_setattr", "mlockall", "mlock"];

pub(super) static CHECK: Check = Check {
    id: "app-unit",
    title: "settings of the application's systemd unit",
    why: "a setting of the unit refuses SCHED_FIFO or locked memory, stops its threads, or keeps \
          them off the real-time CPUs",
    source: "systemd.exec(5), systemd.resource-control(5), systemd.unit(5)",
    trade_off: Some("RestrictRealtime= and system call filters protect against a broken service"),
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("nothing that refuses or stops real-time threads"),
    judge: Judge::App(judge),
    ..Check::NEW
};

/// One setting that stands in the way.
struct Problem {
    status: Status,
    text: String,
    line: String,
}

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let files = &case.app.unit_file;
    let draft = draft.read(files, |unit| match unit {
        Some(unit) => shown(unit),
        None => "no service or scope".into(),
    });
    let unit = match files.value() {
        None => return Ok(draft.blind(files)),
        Some(None) => return Ok(draft.not_applicable("it runs in no service or scope")),
        Some(Some(unit)) => unit,
    };
    let draft = draft.saw(unit.settings.iter().map(|(key, set)| Evidence {
        path: set.file.clone(),
        value: format!("{key}={}", set.value),
    }));
    let problems = problems(case, unit);
    let Some(status) = problems.iter().map(|problem| problem.status).min() else {
        let files = count(unit.files.len(), "file");
        return Ok(draft.good(format!("{}: nothing in the way, in {files}", unit.name)));
    };
    let texts: Vec<&str> = problems.iter().map(|problem| problem.text.as_str()).collect();
    let summary = format!("{}: {}", unit.name, first_few(&texts, NAMED_MAX));
    let lines: Vec<&str> = problems.iter().map(|problem| problem.line.as_str()).collect();
    let restart = Remedy::Command {
        command: format!("systemctl daemon-reload && systemctl restart {}", unit.name),
    };
    let remedies = case.drop_in(&lines.join("\n")).into_iter().chain([restart]);
    Ok(draft.remedies(remedies).status(status, summary))
}

fn shown(unit: &UnitFile) -> String {
    format!("{}, {} that matter", unit.name, count(unit.settings.len(), "setting"))
}

fn problems(case: &Case<'_>, unit: &UnitFile) -> Vec<Problem> {
    let is_real_time = case.app.threads().any(|thread| thread.is_real_time());
    let refused = if is_real_time { Status::Doubtful } else { Status::Bad };
    let get = |key: &str| unit.settings.get(key).map(|set| set.value.as_str());
    let mut found = Vec::new();
    let mut add = |status, key: &str, wanted: &str, what: &str| {
        if let Some(value) = get(key) {
            let text = format!("{key}={value} {what}");
            found.push(Problem { status, text, line: format!("{key}={wanted}") });
        }
    };
    if get("RestrictRealtime").is_some_and(is_true) {
        add(refused, "RestrictRealtime", "no", "refuses real-time policies");
    }
    if get("SystemCallFilter").is_some_and(refuses_calls) {
        add(refused, "SystemCallFilter", "@resources @memlock", "refuses calls that it needs");
    }
    if get("CPUSchedulingResetOnFork").is_some_and(is_true) {
        let what = "makes new threads ordinary ones";
        add(Status::Doubtful, "CPUSchedulingResetOnFork", "no", what);
    }
    let policy = get("CPUSchedulingPolicy");
    if policy.is_some_and(|policy| !matches!(policy, "fifo" | "rr" | "ext")) && !is_real_time {
        add(Status::Bad, "CPUSchedulingPolicy", "fifo", "is an ordinary policy");
    }
    let most = |key| get(key).and_then(|value| value.split(':').next()?.parse::<u32>().ok());
    let needed = super::threads::priority(case.app).unwrap_or(case.intent.priority);
    if most("LimitRTPRIO").is_some_and(|most| most < needed) {
        add(Status::Doubtful, "LimitRTPRIO", "95", "is below its priority");
    }
    let is_finite = |key| get(key).is_some_and(|value| !value.starts_with("infinity"));
    if is_finite("LimitMEMLOCK") {
        add(Status::Doubtful, "LimitMEMLOCK", "infinity", "limits locked memory");
    }
    if is_finite("LimitRTTIME") {
        let what = "ends a thread that does not sleep";
        add(Status::Doubtful, "LimitRTTIME", "infinity", what);
    }
    if get("CPUQuota").is_some() {
        add(Status::Doubtful, "CPUQuota", "", "stops its ordinary threads");
    }
    if !is_real_time && most("Nice").is_some_and(|nice| nice > 0) {
        add(Status::Doubtful, "Nice", "0", "puts it behind others");
    }
    for key in ["CPUAffinity", "AllowedCPUs"] {
        let Some(list) = get(key).and_then(cpu_list) else {
            continue;
        };
        let wanted = &case.intent.rt_cpus;
        let missing = wanted.difference(&list);
        if missing.is_empty() {
            continue;
        }
        let is_none = wanted.intersection(&list).is_empty();
        let status = if is_none { Status::Bad } else { Status::Doubtful };
        let what = format!("leaves out {}", cpus(&missing));
        add(status, key, &format!("\n{key}={wanted}"), &what);
    }
    found
}

/// A boolean of systemd.syntax(7).
fn is_true(value: &str) -> bool {
    ["1", "yes", "y", "true", "t", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether the lines of a filter, joined by `; `, take away what a real-time thread needs. A line
/// that begins with `~` names what is refused. A list of what is allowed is not taken apart: what
/// its groups hold depends on the version of systemd.
fn refuses_calls(value: &str) -> bool {
    let names = |line: &str| {
        let refused = line.trim().strip_prefix('~')?;
        let word = |word: &str| word.split(':').next().unwrap_or_default().to_owned();
        Some(refused.split_whitespace().map(word).collect::<Vec<String>>())
    };
    value.split(';').filter_map(names).flatten().any(|name| NEEDED_CALLS.contains(&name.as_str()))
}

/// CPUs separated by white space, commas or `; `; `None` for `numa` and what cannot be read.
fn cpu_list(value: &str) -> Option<CpuList> {
    let mut all = CpuList::default();
    let words = value.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    for word in words.filter(|word| !word.is_empty()) {
        all = all.union(&CpuList::parse(word, None).ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, set_unit};
    use rtproof_host::{Reading, facts::tasks::Policy};

    fn with(key: &str, value: &str) -> Scene {
        let mut scene = Scene::good();
        set_unit(&mut scene, key, value);
        scene
    }

    #[test]
    fn settings_in_the_way() {
        assert_eq!(Scene::good().judge(&CHECK).status, Good);
        let mut scene = with("RestrictRealtime", "yes");
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "arm.service: RestrictRealtime=yes refuses real-time policies");
        let line = "[Service]\nRestrictRealtime=no".to_owned();
        let path = "/etc/systemd/system/arm.service.d/90-rtproof.conf".to_owned();
        assert_eq!(finding.remedies[0], Remedy::File { path, line });
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, Bad);
        for (key, value, status) in [
            ("CPUQuota", "20%", Doubtful),
            ("LimitRTPRIO", "10", Doubtful),
            ("LimitRTPRIO", "99", Good),
            ("LimitMEMLOCK", "8M", Doubtful),
            ("LimitMEMLOCK", "infinity", Good),
            ("LimitRTTIME", "200000", Doubtful),
            ("CPUAffinity", "0-1", Bad),
            ("CPUAffinity", "0 1, 2; 3", Good),
            ("AllowedCPUs", "0-2", Doubtful),
            ("CPUAffinity", "numa", Good),
            ("SystemCallFilter", "@system-service; ~@privileged @resources", Doubtful),
            ("SystemCallFilter", "@system-service", Good),
            ("CPUSchedulingPolicy", "batch", Good),
            ("CPUSchedulingResetOnFork", "true", Doubtful),
        ] {
            assert_eq!(with(key, value).judge(&CHECK).status, status, "{key}={value}");
        }
    }

    #[test]
    fn no_unit_and_unknown() {
        let mut scene = Scene::good();
        scene.app.unit_file = Reading::known("/proc/100/cgroup", None);
        assert_eq!(scene.judge(&CHECK).status, NotApplicable);
        blank(&mut scene.app.unit_file);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
