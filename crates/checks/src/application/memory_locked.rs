//! Is its memory locked?
//!
//! VmLck counts locked address space, VmRSS what is resident. Without a lock even a resident page
//! of the program may be dropped and read again from disk, with or without swap. Where VmLck covers
//! all but a little of VmSize, mlockall(2) with both flags is in force: vdso and vvar are never
//! counted. What else is left out may be device memory and huge pages, which cannot be paged, or
//! memory mapped after an mlockall(MCL_CURRENT) alone: only the user knows.

use rtproof_host::facts::app::Status;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::bytes;
use crate::{Impact, Remedy, When};

/// Pages that the kernel maps and never counts as locked: vdso, vvar and their like, some pages of
/// up to 64 KiB each.
const NEVER_LOCKED_BYTES: u64 = 512 << 10;

pub(super) static CHECK: Check = Check {
    id: "app-memory-locked",
    title: "memory of the application that is locked",
    why: "the first access to a page that is not resident is a page fault: µs when memory is at \
          hand, ms when the page is read from disk",
    source: "mlockall(2); proc_pid_status(5) (VmLck, VmRSS); mm/mlock.c (mlock_fixup)",
    trade_off: Some("locked memory is lost to all others"),
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("the whole address space: mlockall(MCL_CURRENT | MCL_FUTURE)"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    let text = "call mlockall(MCL_CURRENT | MCL_FUTURE) at the start, before threads are made";
    let remedy = || [Remedy::Manual { text: text.into() }];
    if let Some((process, status)) = found.iter().find(|(_, status)| status.locked_bytes == 0) {
        let resident = bytes(status.resident_bytes);
        return Ok(draft.remedies(remedy()).bad(format!(
            "{} (pid {}): none of its {resident} is locked",
            process.name, process.pid
        )));
    }
    let open = |status: &Status| {
        let locked = status.locked_bytes.saturating_add(status.hugetlb_bytes);
        status.size_bytes.saturating_sub(locked)
    };
    match found.iter().find(|(_, status)| open(status) > NEVER_LOCKED_BYTES) {
        Some((process, status)) => {
            let least = status.resident_bytes.saturating_sub(status.locked_bytes);
            let resident = match least {
                0 => String::new(),
                least => format!(", at least {} of it resident", bytes(least)),
            };
            Ok(draft.remedies(remedy()).doubtful(format!(
                "{} (pid {}): {} of its address space is not locked{resident}: device memory, or \
                 memory that was mapped later",
                process.name,
                process.pid,
                bytes(open(status)),
            )))
        }
        None => {
            let locked = found
                .iter()
                .fold(0_u64, |sum, (_, status)| sum.saturating_add(status.locked_bytes));
            let resident = found
                .iter()
                .fold(0_u64, |sum, (_, status)| sum.saturating_add(status.resident_bytes));
            let rest = if locked.saturating_sub(resident) > NEVER_LOCKED_BYTES {
                "; the rest is only reserved, or under MCL_ONFAULT faults once"
            } else {
                ""
            };
            Ok(draft.good(format!(
                "all of the address space is locked: {}, {} resident{rest}",
                bytes(locked),
                bytes(resident)
            )))
        }
    }
}

fn show(status: &Status) -> String {
    format!(
        "VmLck {}, VmRSS {}, VmSize {}, HugetlbPages {}",
        bytes(status.locked_bytes),
        bytes(status.resident_bytes),
        bytes(status.size_bytes),
        bytes(status.hugetlb_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn all_some_none_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        let status = status_of(&mut scene);
        (status.size_bytes, status.hugetlb_bytes) = (status.size_bytes + (1 << 30), 1 << 30);
        assert_eq!(scene.judge(&CHECK).status, Good, "huge pages cannot be paged");
        status_of(&mut scene).locked_bytes = 1 << 20;
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("at least 7 MiB of it resident"), "{}", finding.summary);
        status_of(&mut scene).locked_bytes = 0;
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "arm (pid 100): none of its 8 MiB is locked");
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
