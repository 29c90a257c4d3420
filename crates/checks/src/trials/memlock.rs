//! Did `mlockall` work for a whole process, and were there no page faults after it?

use rtproof_host::Facts;
use rtproof_model::trial::MemlockObservation;

use crate::check::{Check, Wanted};
use crate::{Finding, Impact, Status, When, quantity};

pub(super) static CHECK: Check = Check {
    id: "proof-memlock",
    wanted: Wanted::Text("all memory locked, and no page fault after that"),
    why: "without locked memory a page may be missing when it is needed: a page fault, from disk \
          milliseconds",
    source: "tried here in a child process; mlockall(2), getrlimit(2); mm/mlock.c",
    impact: Impact::Milliseconds,
    when: When::Login,
    ..Check::NEW
};

pub(super) fn judge(seen: &MemlockObservation, facts: &Facts) -> Finding {
    let call = format!("mlockall(MCL_CURRENT | MCL_FUTURE) and {}", mib(seen.bytes));
    let limit = seen.limit.map_or("unlimited".into(), mib);
    let draft = CHECK.draft();
    let run = match &seen.run {
        Ok(run) => run,
        Err(refusal) => {
            let cap = &facts.limits.cap_ipc_lock;
            let draft = draft
                .took(call, refusal.text.clone())
                .took("getrlimit(RLIMIT_MEMLOCK)", &*limit)
                .read(cap, |has| if *has { "CAP_IPC_LOCK" } else { "no CAP_IPC_LOCK" }.into());
            // EPERM: no right at all. ENOMEM, EAGAIN: beyond the limit, or no memory.
            let is_limit = refusal.errno.is_some() && seen.limit.is_some();
            if is_limit && cap.value() != Some(&true) {
                let right = crate::remedies::right(
                    facts,
                    None,
                    "memlock",
                    "unlimited",
                    "LimitMEMLOCK=infinity",
                );
                let summary = format!("{}: this user may lock {limit}", refusal.text);
                return draft.remedies(right).status(Status::Bad, summary);
            }
            if refusal.errno.is_some() {
                let summary = format!("{}: the limit is not the reason", refusal.text);
                return draft.status(Status::Bad, summary);
            }
            return draft.status(Status::Unknown, format!("not tried: {}", refusal.text));
        }
    };
    let faults = format!("{} minor, {} major", run.faults_minor, run.faults_major);
    let draft = draft
        .took(call, "granted")
        .took("getrlimit(RLIMIT_MEMLOCK)", limit)
        .took("VmLck of the child", mib(run.locked_bytes))
        .took("page faults of the child after that", &*faults);
    let size = mib(seen.bytes);
    match run.faults_minor + run.faults_major {
        0 => draft.status(Status::Good, format!("{size} locked and written without a page fault")),
        // Hinting faults of NUMA balancing, KSM and the like come on locked pages too.
        count => draft.status(
            Status::Doubtful,
            format!(
                "{size} locked, and {} page faults ({faults}) all the same: NUMA balancing, KSM \
                 or compaction; see the checks of memory",
                quantity::grouped(count)
            ),
        ),
    }
}

fn mib(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mib => format!("{mib} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_host::Reading;
    use rtproof_model::trial::{Locked, Refusal};

    use super::*;
    use crate::testing::good;

    fn seen(run: Result<Locked, Refusal>, limit: Option<u64>) -> MemlockObservation {
        MemlockObservation { bytes: 64 << 20, run, limit }
    }

    fn refusal(errno: Option<i32>) -> Refusal {
        Refusal { errno, text: "mlockall: no".into() }
    }

    #[test]
    fn locked_without_faults_and_with() {
        let locked = Locked { locked_bytes: 70 << 20, faults_minor: 0, faults_major: 0 };
        let finding = judge(&seen(Ok(locked), None), &good());
        assert_eq!(finding.status, Status::Good);
        assert_eq!(finding.summary, "64 MiB locked and written without a page fault");
        let finding = judge(&seen(Ok(Locked { faults_minor: 7, ..locked }), None), &good());
        assert_eq!(finding.status, Status::Doubtful);
        assert!(finding.summary.contains("7 page faults"), "{}", finding.summary);
    }

    #[test]
    fn refused_by_the_limit_by_another_or_not_tried() {
        let mut facts = good();
        facts.limits.cap_ipc_lock = Reading::known("/proc/self/status", false);
        let finding = judge(&seen(Err(refusal(Some(12))), Some(8 << 20)), &facts);
        assert_eq!((finding.status, finding.remedies.len()), (Status::Bad, 3));
        assert!(finding.summary.ends_with("may lock 8 MiB"), "{}", finding.summary);
        let finding = judge(&seen(Err(refusal(Some(12))), None), &facts);
        assert_eq!((finding.status, finding.remedies.len()), (Status::Bad, 0));
        let finding = judge(&seen(Err(refusal(None)), None), &facts);
        assert_eq!(finding.status, Status::Unknown);
    }
}
