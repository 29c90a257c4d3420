//! The memory nodes of a program: where its CPUs are, and whether it is bound to their memory.

use anyhow::Context as _;
use rtproof_host::{CpuList, Facts, Root};
use rtproof_judge::units;
use rtproof_measure::process::{bind_memory, memory_is_bound_to};
use rtproof_results::launch::Cannot;

use super::options::Memory;
use crate::usage::usage;

/// Nodes that have memory at all.
const WITH_MEMORY: &str = "/sys/devices/system/node/has_memory";

/// Nodes to bind a program to that runs on these CPUs; `None`: it is not bound.
///
/// # Errors
/// Usage: no list of nodes.
pub(super) fn nodes(
    root: &Root,
    facts: &Facts,
    memory: &Memory,
    cpus: &CpuList,
    cannot: &mut Vec<Cannot>,
) -> anyhow::Result<Option<CpuList>> {
    let asked = match memory {
        Memory::Kernel => return Ok(None),
        Memory::Local => {
            of(facts, cpus).ok_or_else(|| "the nodes of its CPUs are not known".to_owned())
        }
        Memory::Nodes(list) => {
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
pub(super) fn note(
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
pub(super) fn make(nodes: &CpuList) -> anyhow::Result<()> {
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
        assert_eq!(note(&Root::live(), &facts, &list("2"), None), None);
    }
}
