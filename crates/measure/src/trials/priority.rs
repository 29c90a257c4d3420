//! Priority: does this user get SCHED_FIFO at the priority of the application? Asked for by a
//! thread that ends at once; what else may stand behind a refusal is read beside it.

use rtproof_host::{Reading, Root};
use rtproof_model::trial::PriorityObservation;

use super::{Context, Observation, Refusal, Trial};
use crate::{Policy, sys, task::become_ordinary};

#[derive(Clone, Copy, Debug)]
pub struct Priority;

impl Trial for Priority {
    fn name(&self) -> &'static str {
        "priority"
    }

    fn about(&self) -> &'static str {
        "asks for SCHED_FIFO at --priority and gives it back"
    }

    fn observe(&self, ctx: &Context<'_>) -> Observation {
        let got = sys::set_policy(Policy::Fifo, ctx.priority).and_then(|()| sys::policy());
        // The thread of the trial ends with this; what it reads meanwhile it reads as an ordinary.
        let _ = become_ordinary();
        let name = format!("SCHED_FIFO {}", ctx.priority);
        Observation::Priority(PriorityObservation {
            got: got.map(|(_, priority)| priority).map_err(|error| Refusal::new(&name, &error)),
            limit: sys::rtprio_limit(),
            seccomp: seccomp(ctx.root),
            user_namespace: ctx.root.trimmed("/proc/self/uid_map").map(|map| {
                // user_namespaces(7): the initial one maps all ids to themselves.
                let words: Vec<&str> = map.split_whitespace().collect();
                words != ["0", "0", "4294967295"]
            }),
            group_runtime_us: group_runtime_us(ctx.root),
            ..PriorityObservation::unasked(ctx.priority)
        })
    }
}

fn seccomp(root: &Root) -> Reading<u32> {
    root.read_text("/proc/self/status").and_then(|path, status| {
        let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
        match mode.map(|mode| mode.trim().parse()) {
            Some(Ok(mode)) => Reading::known(path, mode),
            Some(Err(_)) => Reading::malformed(path, mode.unwrap_or_default(), "a number"),
            // CONFIG_SECCOMP is not set.
            None => Reading::known(path, 0),
        }
    })
}

/// `N:cpu,cpuacct:/path` of /proc/self/cgroup leads to the group. Where this process does not see
/// its own group (a container), the file is absent.
fn group_runtime_us(root: &Root) -> Reading<i64> {
    root.read_text("/proc/self/cgroup").and_then(|path, cgroup| {
        let group = cgroup.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, group) = (parts.next()?, parts.next()?);
            controllers.split(',').any(|name| name == "cpu").then_some((controllers, group))
        });
        let Some((controllers, group)) = group else {
            return Reading::absent(path);
        };
        let group = group.trim_end_matches('/');
        let file = |folder: &str| {
            let path = format!("/sys/fs/cgroup/{folder}{group}/cpu.rt_runtime_us");
            root.number(&path, "microseconds")
        };
        file(controllers).or_else(|| file("cpu"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::testing::try_out;

    #[test]
    fn it_is_granted_or_refused_and_nothing_stays() {
        let Observation::Priority(seen) = try_out(&Priority, 0, false) else {
            panic!("another observation");
        };
        match &seen.got {
            Ok(priority) => assert_eq!((*priority, seen.priority), (10, 10)),
            Err(refusal) => assert!(refusal.is_permission(), "{refusal:?}"),
        }
        assert!(seen.seccomp.value().is_some() && seen.user_namespace.value().is_some());
        assert_eq!(sys::policy().unwrap(), (Policy::Other, 0));
    }
}
