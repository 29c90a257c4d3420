//! Lists of CPUs that a user names.

use rtproof_host::{CpuList, Facts};

use crate::usage::usage;

/// CPUs of a list, all of them online.
///
/// # Errors
/// Usage: no list, an empty one, or CPUs that are not online.
pub fn online_cpus(text: &str, option: &str, facts: &Facts) -> anyhow::Result<CpuList> {
    let online = facts.cpus.online.value();
    let last = online.and_then(|online| online.as_slice().last().copied());
    let list =
        CpuList::parse(text, last).map_err(|error| usage(format!("{option} {text}: {error}")))?;
    if list.is_empty() {
        return Err(usage(format!("{option}: the list is empty; write e.g. {option} 2-3")));
    }
    let Some(online) = online else { return Ok(list) };
    let missing = list.difference(online);
    if missing.is_empty() {
        return Ok(list);
    }
    Err(usage(format!("{option} {text}: not online: CPU {missing}; online are {online}")))
}
