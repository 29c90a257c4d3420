//! How much may be written before the writer has to wait?
//!
//! Each limit exists twice, in percent and in bytes, and writing one clears the other: both are
//! read, and whichever is set counts. Percent are of the memory that can be dirty; bytes are held
//! against all memory, which is a little more.

use rtproof_host::{Facts, Knob, Reading, knobs::memory as knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::setting;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

/// Percent of memory that may be dirty, as tuned has them for latency.
const DIRTY_MAX: u64 = 10;
const BACKGROUND_MAX: u64 = 3;

pub(super) static CHECK: Check = Check {
    id: "dirty-writeback",
    title: "limits of unwritten file pages (vm.dirty_*)",
    why: "a thread that writes to a file sleeps in balance_dirty_pages once too much is unwritten, \
          and a large backlog goes to the disk in one burst",
    source: "Documentation/admin-guide/sysctl/vm.rst (dirty_ratio, dirty_bytes); \
             mm/page-writeback.c; tuned, profile latency-performance (10 and 3)",
    trade_off: Some("bulk writers wait earlier; a real-time thread should not write files at all"),
    impact: Impact::Milliseconds,
    knobs: &[
        &knobs::DIRTY_RATIO,
        &knobs::DIRTY_BYTES,
        &knobs::DIRTY_BACKGROUND_RATIO,
        &knobs::DIRTY_BACKGROUND_BYTES,
    ],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let wanted = format!("at most {DIRTY_MAX} %, written from {BACKGROUND_MAX} % on");
    let mut draft = draft.wants(wanted);
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    let limits = [
        (&knobs::DIRTY_RATIO, &knobs::DIRTY_BYTES, DIRTY_MAX, "a writer waits"),
        (
            &knobs::DIRTY_BACKGROUND_RATIO,
            &knobs::DIRTY_BACKGROUND_BYTES,
            BACKGROUND_MAX,
            "writing starts",
        ),
    ];
    for (ratio_knob, bytes_knob, most, what) in limits {
        let (ratio, bytes) = (number(facts, ratio_knob), number(facts, bytes_knob));
        draft = draft.read(&ratio, u64::to_string).read(&bytes, u64::to_string);
        let (Some(&percent), Some(&limit)) = (ratio.value(), bytes.value()) else {
            return draft.blind(if ratio.value().is_none() { &ratio } else { &bytes });
        };
        let is_over = if limit > 0 {
            let memory = &facts.identity.memory_bytes;
            draft = draft.read(memory, |&all| text::bytes(all));
            let Some(&all) = memory.value() else {
                return draft.blind(memory);
            };
            found.push(format!("{what} at {}", text::bytes(limit)));
            u128::from(limit) * 100 > u128::from(all) * u128::from(most)
        } else {
            found.push(format!("{what} at {percent} %"));
            percent > most
        };
        if is_over {
            let paths = vec![ratio.path.clone()];
            wrong.push(Remedy::set(ratio_knob, paths, most.to_string()));
        }
    }
    let summary = found.join(", ");
    if wrong.is_empty() {
        return draft.good(summary);
    }
    draft.remedies(wrong).doubtful(summary)
}

fn number(facts: &Facts, knob: &Knob) -> Reading<u64> {
    setting::number(facts, knob).and_then(|path, number| match u64::try_from(number) {
        Ok(number) => Reading::known(path, number),
        Err(_) => Reading::malformed(path, &number.to_string(), "not below 0"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{fill_setting, good, intent};

    fn judge(values: [&str; 4]) -> Finding {
        let mut facts = good();
        for (knob, value) in CHECK.knobs.iter().zip(values) {
            fill_setting(&mut facts, knob, value);
        }
        CHECK.judge(&facts, &intent())
    }

    fn status(values: [&str; 4]) -> Status {
        judge(values).status
    }

    #[test]
    fn percent_or_bytes_whichever_is_set() {
        assert_eq!(status(["10", "0", "3", "0"]), Good);
        assert_eq!(status(["20", "0", "10", "0"]), Doubtful);
        assert_eq!(status(["0", "67108864", "0", "16777216"]), Good);
        assert_eq!(status(["0", "8589934592", "3", "0"]), Doubtful);
        let finding = judge(["10", "0", "10", "0"]);
        assert_eq!(finding.summary, "a writer waits at 10 %, writing starts at 10 %");
        let paths = vec!["/proc/sys/vm/dirty_background_ratio".into()];
        assert_eq!(finding.remedies, [Remedy::set(&knobs::DIRTY_BACKGROUND_RATIO, paths, "3")]);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        assert_eq!(status(["10", "?", "3", "0"]), Unknown);
        assert_eq!(status(["-1", "0", "3", "0"]), Unknown);
        let mut facts = good();
        fill_setting(&mut facts, &knobs::DIRTY_BYTES, "1000");
        facts.identity.memory_bytes = Reading::absent("/proc/meminfo");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
