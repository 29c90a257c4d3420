//! Memory limits of its control groups: met or not.

use rtproof_host::facts::app::MemoryGroup;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{bytes, count, times};
use crate::{Impact, Remedy};

pub(super) static CHECK: Check = Check {
    id: "app-memory-limit",
    title: "memory limits of the application's control groups",
    why: "at the limit of its group a thread that allocates has to free memory itself first, and \
          above memory.high it is made to sleep",
    source: "Documentation/admin-guide/cgroup-v2.rst (memory.high, memory.max, memory.events)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("none that is met"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let groups = &case.app.groups.memory;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.blind(groups));
    };
    for group in list {
        let limit = |limit: &Option<u64>| limit.map_or_else(|| "no limit".into(), bytes);
        let hits = |hits: &Option<u64>| {
            hits.map_or_else(|| "no such file".into(), |hits| format!("met {}", times(hits)))
        };
        draft = draft.read(&group.limit_bytes, limit).read(&group.hits, hits);
    }
    let hits = |group: &&MemoryGroup| group.hits.value().copied().flatten().unwrap_or(0) > 0;
    let limit = |group: &MemoryGroup| group.limit_bytes.value().copied().flatten();
    if let Some(group) = list.iter().find(|group| hits(group) && limit(group).is_some()) {
        let most = limit(group).map_or_else(String::new, bytes);
        let met = times(group.hits.value().copied().flatten().unwrap_or(0));
        return Ok(draft
            .remedies([Remedy::Manual {
                text: "raise MemoryHigh= and MemoryMax= of the unit, or of those above".into(),
            }])
            .doubtful(format!("{}: the limit of {most} was met {met}", group.folder)));
    }
    for group in list {
        if group.limit_bytes.value().is_none() {
            return Ok(draft.blind(&group.limit_bytes));
        }
        if group.hits.value().is_none() {
            return Ok(draft.blind(&group.hits));
        }
    }
    let least = list.iter().filter_map(limit).min();
    Ok(draft.good(match least {
        Some(least) => format!("limit of {}, not met", bytes(least)),
        None => "no limit".into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, memory_group, set_some};

    #[test]
    fn none_unmet_met_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "no limit");
        set_some(&mut memory_group(&mut scene).limit_bytes, 1 << 20);
        let finding = scene.judge(&CHECK);
        assert_eq!((finding.status, finding.summary.as_str()), (Good, "limit of 1 MiB, not met"));
        set_some(&mut memory_group(&mut scene).hits, 3);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut memory_group(&mut scene).limit_bytes);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
