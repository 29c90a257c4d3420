//! What is asked of `measure`, from the command line or a file: lists whose product are the cells.

use crate::usage::Invalid;
use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_measure::{loads::LoadSet, workloads};

/// One block of a matrix: every combination of its lists is a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub workloads: Vec<Choice>,
    /// CPUs, as a list; `None`: the isolated ones if there are any, else all.
    pub cpus: Option<String>,
    /// Each CPU in turn instead of all at once.
    pub each: bool,
    pub policies: Vec<Policy>,
    /// Priorities of the policies that have any.
    pub priorities: Vec<u32>,
    pub periods_ns: Vec<u64>,
    /// Loads, as they are written.
    pub loads: Vec<String>,
    /// Duration of a cell; `None`: ten seconds, or what the samples take.
    pub duration_ns: Option<u64>,
    /// Wake-ups of each thread that end a cell.
    pub samples: Option<u64>,
    /// How often each is measured.
    pub repeat: u32,
}

/// A workload for all CPUs, or one for each of some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// On every CPU that is measured.
    Everywhere(String),
    /// Each on its own CPUs, all at once.
    Placed(Vec<(String, CpuList)>),
}

/// Workloads of one word: `NAME`, `NAME,NAME`, `NAME@CPUS,NAME@CPUS`, or `exec:COMMAND` to its end.
///
/// # Errors
/// What is wrong, and how it is written.
pub fn workloads(text: &str) -> Result<Vec<Choice>, Invalid> {
    let text = text.trim();
    if text.starts_with("exec:") {
        // A command may hold commas and at signs.
        return Ok(vec![Choice::Everywhere(workload(text)?)]);
    }
    let mut everywhere = Vec::new();
    let mut placed: Vec<(String, CpuList)> = Vec::new();
    let mut open: Option<usize> = None;
    for part in text.split(',').map(str::trim) {
        let is_cpus = part.starts_with(|c: char| c.is_ascii_digit());
        match (part.split_once('@'), open) {
            (Some((name, cpus)), _) => {
                placed.push((workload(name)?, cpu_list(cpus)?));
                open = Some(placed.len() - 1);
            }
            // `registers@1,3`: more CPUs of the same.
            (None, Some(at)) if is_cpus => placed[at].1 = placed[at].1.union(&cpu_list(part)?),
            (None, _) => everywhere.push(Choice::Everywhere(workload(part)?)),
        }
    }
    match (placed.is_empty(), everywhere.is_empty()) {
        (true, _) => Ok(everywhere),
        (false, false) => Err(format!(
            "{text}: some workloads have CPUs and some have none; write each as NAME@CPUS, or ask \
             twice"
        )
        .into()),
        (false, true) => {
            let twice = |at: usize| {
                let before = placed[..at].iter();
                before.fold(CpuList::default(), |all, (_, cpus)| all.union(cpus))
            };
            for (at, (name, cpus)) in placed.iter().enumerate() {
                let both = cpus.intersection(&twice(at));
                if !both.is_empty() {
                    return Err(format!("{name}@{cpus}: CPU {both} has a workload already").into());
                }
            }
            Ok(vec![Choice::Placed(placed)])
        }
    }
}

/// A workload as records spell it.
fn workload(text: &str) -> Result<String, Invalid> {
    workloads::parse(text).map(|workload| workload.spec()).map_err(|error| error.to_string().into())
}

fn cpu_list(text: &str) -> Result<CpuList, Invalid> {
    let list = CpuList::parse(text, None).map_err(|error| format!("@{text}: {error}"))?;
    if list.is_empty() {
        return Err(format!("@{text}: no CPU; write e.g. memory@2 or memory@2-3").into());
    }
    Ok(list)
}

/// A policy by name.
///
/// # Errors
/// It is none.
pub fn policy(text: &str) -> Result<Policy, Invalid> {
    match text.trim() {
        "other" => Ok(Policy::Other),
        "fifo" => Ok(Policy::Fifo),
        "rr" => Ok(Policy::Rr),
        "deadline" => Ok(Policy::Deadline),
        _ => Err(format!("\"{text}\" is no policy; expected other, fifo, rr or deadline").into()),
    }
}

/// A load, checked.
///
/// # Errors
/// It is none.
pub fn load(text: &str) -> Result<String, Invalid> {
    LoadSet::from_command_line(text)
        .map(|set| set.to_string())
        .map_err(|error| error.to_string().into())
}

/// A number of repetitions.
///
/// # Errors
/// Not 1 to 10000.
pub fn repeat(text: &str) -> Result<u32, Invalid> {
    match text.trim().parse() {
        Ok(n @ 1..=10_000) => Ok(n),
        _ => Err("a number of repetitions is 1 to 10000".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everywhere(name: &str) -> Choice {
        Choice::Everywhere(name.into())
    }

    #[test]
    fn workloads_are_lists_or_have_their_cpus() {
        assert_eq!(workloads("timer-wakeup"), Ok(vec![everywhere("timer-wakeup")]));
        let two = vec![everywhere("timer-wakeup"), everywhere("timer-wakeup")];
        assert_eq!(workloads("timer-wakeup, timer-wakeup"), Ok(two));
        let placed = |cpus: &[u32]| ("timer-wakeup".to_owned(), CpuList::new(cpus.iter().copied()));
        let both = vec![Choice::Placed(vec![placed(&[1, 3]), placed(&[5, 6])])];
        assert_eq!(workloads("timer-wakeup@1,3,timer-wakeup@5-6"), Ok(both));
        for (text, part) in [
            ("nothing", "`nothing` is no workload; expected one of"),
            ("timer-wakeup@", "no CPU"),
            ("timer-wakeup@x", "@x"),
            ("timer-wakeup@1,timer-wakeup", "some have none"),
            ("timer-wakeup@1,timer-wakeup@0-1", "CPU 1 has a workload already"),
            ("", "no workload"),
        ] {
            let error = workloads(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn other_values() {
        assert_eq!((policy("rr"), policy("deadline")), (Ok(Policy::Rr), Ok(Policy::Deadline)));
        assert!(policy("FIFO").is_err_and(|e| e.contains("other, fifo, rr or deadline")));
        assert_eq!(load("memory+cpu").as_deref(), Ok("memory+cpu"));
        assert!(load("noise").is_err());
        assert_eq!((repeat("3"), repeat("0").is_err(), repeat("x").is_err()), (Ok(3), true, true));
    }
}
