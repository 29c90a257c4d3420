//! What a program is started with: set by the process that then becomes the program, in the order
//! that the kernel needs. Nothing of it is left when the program ends.

use anyhow::Context as _;
use rustix::{
    process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit},
    thread::{self as kernel, CapabilitySet},
};
use serde::{Deserialize, Serialize};

use rtproof_host::{
    CpuList, Facts, Root,
    door::usage,
    task,
    tune::{Scheduling, Tasks as _},
};
use rtproof_judge::units;
use rtproof_measure::{LiveTasks, bind_memory, memory_is_bound_to};
use rtproof_results::launch::{Cannot, LaunchSetting};

use super::{MemoryPolicy, User};

/// What a program is started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramSetup {
    pub(super) group: Option<String>,
    pub(super) cpus: CpuList,
    pub(super) scheduling: Scheduling,
    /// Whether it gets a cookie of core scheduling.
    pub(super) has_cookie: bool,
    /// Memory nodes that it is bound to.
    pub(super) nodes: Option<CpuList>,
    /// Limit of its priority (RLIMIT_RTPRIO).
    pub(super) rtprio: Option<u64>,
    /// Whether it may lock all its memory (RLIMIT_MEMLOCK).
    pub(super) locks_memory: bool,
    pub(super) user: Option<User>,
    /// Capabilities that it keeps, as bits; `None`: as they are.
    pub(super) capabilities: Option<u64>,
}

/// A part of it, with what it does.
type Part = (&'static str, fn(&ProgramSetup) -> anyhow::Result<()>);

/// All parts, in the order in which they are set. The rights to set them go last.
const PARTS: &[Part] = &[
    ("control group", join),
    ("CPUs", affinity),
    ("core scheduling", cookie),
    ("memory node", memory),
    ("limit of the priority", rtprio),
    ("limit of locked memory", memlock),
    ("policy", policy),
    ("user and capabilities", rights),
];

impl ProgramSetup {
    /// Sets everything; returns what could not be set.
    pub(super) fn make(&self) -> Vec<Cannot> {
        let set = |(what, set): &Part| {
            let error = set(self).err()?;
            Some(Cannot { what: (*what).into(), why: format!("{error:#}") })
        };
        PARTS.iter().filter_map(set).collect()
    }

    /// Whether it may be started with this missing: never as another user than it should be.
    pub(super) fn is_vital(missing: &Cannot) -> bool {
        missing.what == "user and capabilities"
    }

    /// In words, for the plan.
    pub(super) fn words(&self, place: &str) -> Vec<LaunchSetting> {
        let setting = |what: &str, value: String, how: &str| LaunchSetting {
            what: what.into(),
            value,
            how: how.into(),
        };
        let mut all = vec![
            setting("CPUs", self.cpus.to_string(), place),
            setting("policy", policy_words(&self.scheduling), policy_how(&self.scheduling)),
        ];
        if self.has_cookie {
            let how = "no other task runs on the other threads of its core at the same time, but \
                       interrupts do; threads and processes that it starts have the same cookie";
            all.push(setting("core scheduling", "a cookie of its own".into(), how));
        }
        if let Some(nodes) = &self.nodes {
            let how = "memory is taken there alone, never from another node: where none is left, \
                       the kernel ends a process; what it starts is bound, too";
            all.push(setting("memory node", nodes.to_string(), how));
        }
        if let Some(limit) = self.rtprio {
            let how = "it may set priorities up to this one itself";
            all.push(setting("RLIMIT_RTPRIO", limit.to_string(), how));
        }
        if self.locks_memory {
            let how = "it may lock its memory; mlockall is its own to call";
            all.push(setting("RLIMIT_MEMLOCK", "unlimited".into(), how));
        }
        if let Some(user) = &self.user {
            let groups: Vec<String> = user.groups.iter().map(u32::to_string).collect();
            let value = format!("{} (uid {}, gid {})", user.name, user.uid, user.gid);
            let how = format!("groups {}; HOME, USER and LOGNAME are set", groups.join(","));
            all.push(setting("user", value, &how));
        }
        if let Some(bits) = self.capabilities {
            let kept = CapabilitySet::from_bits_retain(bits);
            let names: Vec<String> =
                kept.iter_names().map(|(name, _)| format!("CAP_{name}")).collect();
            let value = if names.is_empty() { "none".into() } else { names.join(", ") };
            all.push(setting("capabilities", value, "all others are dropped for good"));
        }
        all
    }
}

fn policy_words(set: &Scheduling) -> String {
    let policy = set.policy.as_deref().unwrap_or_default().to_uppercase();
    match (set.priority, set.deadline_ns) {
        (Some(priority), _) => format!("SCHED_{policy}, priority {priority}"),
        (None, Some([runtime, deadline, period])) => format!(
            "SCHED_{policy}, runtime {runtime} ns, deadline {deadline} ns, period {period} ns"
        ),
        (None, None) => format!("SCHED_{policy}"),
    }
}

const fn policy_how(set: &Scheduling) -> &'static str {
    match set.deadline_ns {
        Some(_) => "of its first thread; threads that it starts are ordinary ones",
        None => "threads and processes that it starts have it, too, unless it says otherwise",
    }
}

fn join(setup: &ProgramSetup) -> anyhow::Result<()> {
    let Some(group) = &setup.group else { return Ok(()) };
    task::join_group(group).with_context(|| format!("{group}/cgroup.procs"))
}

fn affinity(setup: &ProgramSetup) -> anyhow::Result<()> {
    let set = Scheduling { cpus: Some(setup.cpus.clone()), ..Scheduling::default() };
    let cpus = &setup.cpus;
    LiveTasks.set(0, &set).with_context(|| {
        format!(
            "CPUs {cpus}: the kernel refuses them: is this a container or a group without them?"
        )
    })?;
    let now = LiveTasks.scheduling(0)?.cpus.unwrap_or_default();
    // The kernel takes those of a list that the group allows, and ignores the others silently.
    anyhow::ensure!(now == *cpus, "CPUs {cpus}: only {now} are allowed to this group of processes");
    Ok(())
}

fn cookie(setup: &ProgramSetup) -> anyhow::Result<()> {
    if setup.has_cookie { super::make_cookie() } else { Ok(()) }
}

fn memory(setup: &ProgramSetup) -> anyhow::Result<()> {
    setup.nodes.as_ref().map_or(Ok(()), bind_nodes)
}

fn rtprio(setup: &ProgramSetup) -> anyhow::Result<()> {
    setup.rtprio.map_or(Ok(()), |limit| raise(Resource::Rtprio, Some(limit), "RLIMIT_RTPRIO"))
}

fn memlock(setup: &ProgramSetup) -> anyhow::Result<()> {
    match setup.locks_memory {
        true => raise(Resource::Memlock, None, "RLIMIT_MEMLOCK"),
        false => Ok(()),
    }
}

/// Raises a limit, the hard one where that is lower; `None`: no limit.
fn raise(of: Resource, to: Option<u64>, name: &str) -> anyhow::Result<()> {
    let is_enough = |limit: Option<u64>| match (limit, to) {
        (None, _) => true,
        (Some(limit), Some(to)) => limit >= to,
        (Some(_), None) => false,
    };
    let Rlimit { current, maximum } = getrlimit(of);
    if is_enough(current) {
        return Ok(());
    }
    let maximum = if is_enough(maximum) { maximum } else { to };
    setrlimit(of, Rlimit { current: to, maximum }).with_context(|| {
        let to = to.map_or_else(|| "unlimited".into(), |to| to.to_string());
        format!(
            "{name} to {to}: it needs CAP_SYS_RESOURCE, which root has as a rule, or a higher hard \
             limit in /etc/security/limits.d"
        )
    })
}

fn policy(setup: &ProgramSetup) -> anyhow::Result<()> {
    let set = &setup.scheduling;
    LiveTasks.set(0, set).map_err(|error| {
        let words = policy_words(set);
        let next = match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::BUSY) => {
                "the kernel has no bandwidth left for this deadline: a shorter runtime, a longer \
                 period, or fewer deadline tasks"
            }
            Some(rustix::io::Errno::PERM) if set.deadline_ns.is_some() => {
                "it needs root, and the CPUs have to be all of a partition (--place partition), or \
                 no --cpus"
            }
            Some(rustix::io::Errno::PERM) => {
                "it needs root, or a limit rtprio in /etc/security/limits.d; in a group of cgroup \
                 v1 also a cpu.rt_runtime_us"
            }
            Some(rustix::io::Errno::INVAL) if set.deadline_ns.is_some() => {
                "the kernel does not take these times (/proc/sys/kernel/sched_deadline_period_*_us)"
            }
            _ => "the kernel refuses it",
        };
        anyhow::anyhow!("{words}: {error}; {next}")
    })
}

/// The user, and the capabilities that are left.
fn rights(setup: &ProgramSetup) -> anyhow::Result<()> {
    let keep = setup.capabilities.map(CapabilitySet::from_bits_retain);
    if let Some(keep) = keep {
        drop_bounding(keep)?;
    }
    if let Some(user) = &setup.user {
        let kept = keep.is_some_and(|keep| !keep.is_empty());
        kernel::set_keep_capabilities(kept).context("PR_SET_KEEPCAPS")?;
        become_user(user).with_context(|| format!("user {}: it needs root", user.name))?;
    }
    let Some(keep) = keep else { return Ok(()) };
    let sets = kernel::CapabilitySets { effective: keep, permitted: keep, inheritable: keep };
    kernel::set_capabilities(None, sets).context("capset")?;
    // Root gets its capabilities by the bounding set, another user by the ambient one.
    if setup.user.as_ref().is_some_and(|user| user.uid != 0) {
        for one in keep.iter() {
            kernel::configure_capability_in_ambient_set(one, true).context("PR_CAP_AMBIENT")?;
        }
    }
    Ok(())
}

fn drop_bounding(keep: CapabilitySet) -> anyhow::Result<()> {
    for one in CapabilitySet::all().difference(keep).iter() {
        // Others are not there, or not known to this kernel.
        if let Ok(true) = kernel::capability_is_in_bounding_set(one) {
            kernel::remove_capability_from_bounding_set(one)
                .context("capabilities: it needs CAP_SETPCAP")?;
        }
    }
    Ok(())
}

fn become_user(user: &User) -> anyhow::Result<()> {
    let groups: Vec<Gid> = user.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    kernel::set_thread_groups(&groups)?;
    kernel::set_thread_res_gid(gid, gid, gid)?;
    Ok(kernel::set_thread_res_uid(uid, uid, uid)?)
}

// The memory nodes of a program: where its CPUs are, and whether it is bound to their memory.

/// Nodes that have memory at all.
const WITH_MEMORY: &str = "/sys/devices/system/node/has_memory";

/// Nodes to bind a program to that runs on these CPUs; `None`: it is not bound.
///
/// # Errors
/// Usage: no list of nodes.
pub(super) fn nodes(
    root: &Root,
    facts: &Facts,
    memory: &MemoryPolicy,
    cpus: &CpuList,
    cannot: &mut Vec<Cannot>,
) -> anyhow::Result<Option<CpuList>> {
    let asked = match memory {
        MemoryPolicy::Kernel => return Ok(None),
        MemoryPolicy::Local => {
            of(facts, cpus).ok_or_else(|| "the nodes of its CPUs are not known".to_owned())
        }
        MemoryPolicy::Nodes(list) => {
            let nodes = CpuList::parse(list, None).ok().filter(|nodes| !nodes.is_empty());
            let wrong = || usage(format!("--numa {list}: `local`, or nodes like 0 or 0-1"));
            Ok(nodes.ok_or_else(wrong)?)
        }
    };
    let with_memory = root.cpu_list(WITH_MEMORY);
    let found: Result<CpuList, String> = asked.and_then(|nodes: CpuList| {
        let Some(with) = with_memory.value() else {
            return Err(format!(
                "{WITH_MEMORY}: {}",
                with_memory.why_unknown().unwrap_or_default()
            ));
        };
        let missing = nodes.difference(with);
        match missing.is_empty() {
            true => Ok(nodes),
            false => Err(format!(
                "{} of {nodes} has no memory; {with} has (numactl --hardware)",
                named(&missing)
            )),
        }
    });
    match found {
        Ok(nodes) => Ok(Some(nodes)),
        Err(why) => {
            cannot.push(Cannot { what: "memory node".into(), why });
            Ok(None)
        }
    }
}

/// The nodes of some CPUs, where those of all are known.
fn of(facts: &Facts, cpus: &CpuList) -> Option<CpuList> {
    let nodes = facts.cpus.nodes.value()?;
    let all = nodes.iter().fold(CpuList::default(), |all, node| all.union(&node.cpus));
    let is_on = |cpus_of: &CpuList| !cpus_of.intersection(cpus).is_empty();
    let on = nodes.iter().filter(|node| is_on(&node.cpus)).map(|node| node.id);
    (!cpus.is_empty() && cpus.difference(&all).is_empty()).then(|| CpuList::new(on))
}

/// Where the CPUs are, on a machine with several nodes.
pub(super) fn numa_note(
    root: &Root,
    facts: &Facts,
    cpus: &CpuList,
    bound: Option<&CpuList>,
) -> Option<String> {
    let count = facts.cpus.nodes.value()?.len();
    if count < 2 {
        return None;
    }
    let Some(own) = of(facts, cpus) else {
        return Some(format!("The memory nodes of {} are not known.", cpus.phrase()));
    };
    let with_memory = root.cpu_list(WITH_MEMORY);
    let memory = match with_memory.value().map(|with| own.difference(with)) {
        None => "; whether they have memory is not known".into(),
        Some(without) if without.is_empty() => String::new(),
        Some(without) => format!("; {} has no memory", named(&without)),
    };
    let far = match bound {
        Some(bound) if bound.difference(&own).is_empty() => "it takes memory there alone",
        Some(_) => "it is bound to memory of another one",
        None => {
            "it takes memory there while there is some, else from another one (--numa local binds \
             it)"
        }
    };
    Some(format!(
        "{} is on {} of {}{memory}: {far}.",
        cpus.phrase(),
        named(&own),
        units::count(count, "memory node")
    ))
}

fn named(nodes: &CpuList) -> String {
    if nodes.len() == 1 { format!("node {nodes}") } else { format!("nodes {nodes}") }
}

/// Binds this thread and what it starts, and reads it back.
pub(super) fn bind_nodes(nodes: &CpuList) -> anyhow::Result<()> {
    bind_memory(nodes.as_slice()).with_context(|| {
        format!(
            "set_mempolicy(2), {}: the kernel refuses it: is it outside of this group's nodes \
             (cpuset.mems), or is this a container?",
            named(nodes)
        )
    })?;
    let now = memory_is_bound_to().context("get_mempolicy(2)")?.map(CpuList::new);
    anyhow::ensure!(now.as_ref() == Some(nodes), "{}: only {now:?} came of it", named(nodes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtproof_host::{Reading, facts::cpu::Node};

    #[test]
    fn the_nodes_of_cpus_are_known_or_not() {
        let mut facts = Facts::read(&Root::live());
        let list = |text: &str| CpuList::parse(text, None).unwrap();
        let node = |id, cpus: &str| Node { id, cpus: list(cpus) };
        let path = "/sys/devices/system/node";
        facts.cpus.nodes = Reading::known(path, vec![node(0, "0-1"), node(1, "2-3")]);
        assert_eq!(of(&facts, &list("2")), Some(list("1")));
        assert_eq!(of(&facts, &list("1-2")), Some(list("0-1")));
        assert_eq!(of(&facts, &list("3-4")), None);
        facts.cpus.nodes = Reading::absent(path);
        assert_eq!(of(&facts, &list("2")), None);
        assert_eq!(numa_note(&Root::live(), &facts, &list("2"), None), None);
    }
}
