//! Memory nodes that it may take memory from: is that of its CPUs among them?

use rtproof_host::CpuList;
use rtproof_host::facts::cpu::Node;

use crate::case::{Case, GROUPS_MAX, NAMED_MAX, name, of_threads};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::first_few;
use crate::{Impact, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "app-memory-nodes",
    title: "memory nodes that the application may use",
    why: "memory of another node is reached over the link between the sockets, which others load",
    source: "numa(7); proc_pid_status(5) (Mems_allowed_list); \
             Documentation/admin-guide/cgroup-v2.rst (cpuset.mems)",
    impact: Impact::Microseconds,
    when: When::Login,
    wanted: Wanted::Text("those of the threads' CPUs"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let nodes = &case.facts.cpus.nodes;
    let draft = draft.read(nodes, |nodes| {
        let shown: Vec<String> =
            nodes.iter().map(|node| format!("node {}: {}", node.id, node.cpus)).collect();
        first_few(&shown, GROUPS_MAX)
    });
    let Some(list) = nodes.value() else {
        return Ok(draft.blind(nodes));
    };
    if list.len() < 2 {
        return Ok(draft.good("one memory node"));
    }
    let readings = threads.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.saw(of_threads(readings, |status| format!("nodes {}", status.mems)));
    let far: Vec<String> = threads
        .iter()
        .filter(|thread| is_far(&thread.status.cpus, &thread.status.mems, list))
        .map(|thread| name(thread.thread, thread.sched))
        .collect();
    if !far.is_empty() {
        let text = "allow the node of its CPUs: AllowedMemoryNodes=, cpuset.mems, numactl(8)";
        let names = first_few(&far, NAMED_MAX);
        return Ok(draft
            .remedies([Remedy::Manual { text: text.into() }])
            .bad(format!("only memory of other nodes than its CPUs': {names}")));
    }
    let wide: Vec<String> = threads
        .iter()
        .filter(|thread| of_cpus(&thread.status.cpus, list).len() > 1)
        .map(|thread| name(thread.thread, thread.sched))
        .collect();
    if !wide.is_empty() {
        let text = "keep each thread on the CPUs of one node";
        let names = first_few(&wide, NAMED_MAX);
        return Ok(draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("may move between nodes, away from its memory: {names}")));
    }
    Ok(draft.good("each thread on one node, whose memory it may use"))
}

fn of_cpus<'a>(cpus: &CpuList, nodes: &'a [Node]) -> Vec<&'a Node> {
    nodes.iter().filter(|node| !node.cpus.intersection(cpus).is_empty()).collect()
}

/// Whether memory of none of the nodes of these CPUs may be used.
fn is_far(cpus: &CpuList, mems: &CpuList, nodes: &[Node]) -> bool {
    let own = of_cpus(cpus, nodes);
    !own.is_empty() && !mems.is_empty() && !own.iter().any(|node| mems.contains(node.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, set_cpus, thread};
    use crate::testing::cpus;
    use rtproof_host::{Reading, reading::State};

    #[test]
    fn one_node_near_far_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "one memory node");
        let node = |id, on: &[u32]| Node { id, cpus: cpus(on) };
        let nodes = vec![node(0, &[0, 1]), node(1, &[2, 3])];
        scene.facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        assert_eq!(scene.judge(&CHECK).status, Bad, "node 0 for CPU 2");
        let State::Known { value } = &mut thread(&mut scene, 101).status.state else { panic!() };
        value.mems = cpus(&[0, 1]);
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_cpus(&mut scene, 101, &[1, 2]);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut scene.facts.cpus.nodes);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
