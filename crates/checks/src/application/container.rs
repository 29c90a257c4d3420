//! Does it run in a container? Reported, not judged: latencies are the host's (S1), but rights,
//! limits and quotas are the runtime's.

use rtproof_host::{Reading, facts::app::Status};

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Impact, When};

/// What the groups of container runtimes are called.
const MARKS: &[(&str, &str)] = &[
    ("kubepods", "Kubernetes"),
    ("libpod", "Podman"),
    ("docker", "Docker"),
    ("lxc", "LXC"),
    ("containerd", "containerd"),
    ("machine.slice", "machine.slice"),
];

pub(super) static CHECK: Check = Check {
    id: "app-container",
    title: "container that the application runs in",
    why: "rights, limits and quotas of a container come from its runtime, and real-time policies \
          are refused unless it was told otherwise",
    source: "capabilities(7) (CAP_SYS_NICE); cgroups(7); pid_namespaces(7)",
    impact: Impact::Information,
    when: When::Login,
    wanted: Wanted::Text("known"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let paths = &case.app.groups.paths;
    let draft = draft.read(paths, |text| text.replace('\n', " "));
    let Some(text) = paths.value() else {
        return Ok(draft.blind(paths));
    };
    let show = |status: &Status| format!("{} PID namespaces", status.pid_namespaces);
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    let name = of_groups(text);
    let is_nested = found.iter().any(|(_, status)| status.pid_namespaces > 1);
    Ok(match name {
        Some(name) => draft.good(format!("in a container, by its control group: {name}")),
        None if is_nested => draft.good("in a PID namespace of its own: a container"),
        None => draft.good("in no container that can be seen from here"),
    })
}

/// The runtime that a control group is named after.
fn of_groups(text: &str) -> Option<&'static str> {
    // docker.service is the daemon's own group, on a host.
    let mut groups = text.lines().filter(|line| !line.ends_with(".service"));
    groups.find_map(|line| MARKS.iter().find(|(mark, _)| line.contains(mark)).map(|mark| mark.1))
}

/// The runtime of an application's container, where its control group shows one.
pub(super) fn runtime(groups: &Reading<String>) -> Option<&'static str> {
    groups.value().and_then(|text| of_groups(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn none_nested_named_and_unknown() {
        let mut scene = Scene::good();
        assert!(scene.judge(&CHECK).summary.starts_with("in no container"));
        status_of(&mut scene).pid_namespaces = 2;
        assert_eq!(scene.judge(&CHECK).status, Good);
        let path = "/proc/100/cgroup";
        scene.app.groups.paths = Reading::known(path, "0::/kubepods.slice/x.scope".into());
        assert!(scene.judge(&CHECK).summary.ends_with("Kubernetes"));
        blank(&mut scene.app.groups.paths);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
