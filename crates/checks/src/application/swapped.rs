//! Is a part of it in swap now?

use rtproof_host::facts::app::Status;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::bytes;
use crate::{Impact, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "app-swapped",
    title: "memory of the application that is in swap",
    why: "the next access to a page in swap waits until it is read back",
    source: "proc_pid_status(5) (VmSwap); mm/memory.c (do_swap_page)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let show = |status: &Status| format!("VmSwap {}", bytes(status.swapped_bytes));
    let (draft, found) = case.of_processes(draft, |process| &process.status, show)?;
    let sum = |sum: u64, found: &(_, &Status)| sum.saturating_add(found.1.swapped_bytes);
    let swapped = found.iter().fold(0, sum);
    if swapped == 0 {
        return Ok(draft.good("nothing of it is in swap"));
    }
    let text = "lock its memory with mlockall(2), which reads it back, or run without swap";
    Ok(draft
        .remedies([Remedy::Manual { text: text.into() }])
        .bad(format!("{} of it is in swap", bytes(swapped))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Good, Unknown};
    use crate::application::testing::{Scene, blank, status_of};

    #[test]
    fn good_bad_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        status_of(&mut scene).swapped_bytes = 4096;
        let finding = scene.judge(&CHECK);
        assert_eq!((finding.status, finding.summary.as_str()), (Bad, "4 KiB of it is in swap"));
        blank(&mut scene.app.processes[0].status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
