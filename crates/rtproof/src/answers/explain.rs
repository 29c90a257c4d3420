//! The answer of `explain`: how many wake-ups were late, of what, and the knob that removes it.

use rtproof_judge::{causes::Spikes, units};
use rtproof_results::answer::{self, Answer, Tone};
use rtproof_run::explain::Explained;

/// The answer; `next`: a command that can be pasted.
pub(crate) fn answer(told: &Explained, next: Option<String>) -> Answer {
    let mut answer = of_wakes(told, next);
    let locks = told.locks.iter().flat_map(|of| &of.waits);
    if let Some(worst) = locks.filter(|of| of.is_inversion()).max_by_key(|of| of.inversion_ns) {
        answer.tone = if worst.is_certain { Tone::Bad } else { Tone::Doubtful };
        answer.result = format!(
            "{}priority inversion of {}: {} waited {} for a lock of {}; {}",
            if worst.is_certain { "" } else { "likely " },
            units::ns(worst.inversion_ns),
            rtproof_report::text::party(&worst.waiter),
            units::ns(worst.worst_ns),
            rtproof_report::text::party(&worst.holder),
            answer.result
        );
    }
    answer
}

fn of_wakes(told: &Explained, next: Option<String>) -> Answer {
    let Spikes { seen, explained, threshold_ns, .. } = &told.spikes;
    let over = units::ns(*threshold_ns);
    if told.saw_none {
        let result = "not known: no wake-up of these threads was seen".to_owned();
        return Answer { result, tone: Tone::Doubtful, ..Answer::default() };
    }
    let doubts = told.doubts.join("; ");
    if *seen == 0 && told.is_open() {
        let gaps = [&told.doubts[..], &told.gaps[..]].concat().join("; ");
        let result = format!("not known: no wake-up was seen to be more than {over} late; {gaps}");
        return Answer { result, tone: Tone::Doubtful, ..Answer::default() };
    }
    if *seen == 0 {
        let result = format!("no wake-up was more than {over} late");
        return Answer { result, tone: Tone::Good, ..Answer::default() };
    }
    let worst = told.spikes.worst.iter().map(|spike| spike.explanation.wake.latency_ns()).max();
    let worst = worst.map_or_else(String::new, |ns| format!(", the worst {}", units::ns(ns)));
    let is_doubtful = !doubts.is_empty();
    let result = format!(
        "{}{} more than {over} late{worst}; {} explained{}{doubts}",
        if is_doubtful { "seemingly " } else { "" },
        units::count(*seen, "wake-up"),
        units::grouped(*explained),
        if is_doubtful { "; " } else { "" },
    );
    let is_plain = explained == seen && !is_doubtful;
    let tone = if is_plain { Tone::Plain } else { Tone::Doubtful };
    Answer { result, tone, why: answer::why(&told.spikes), next }
}

/// What is known of a cause that no knob removes here: the check that tells of the largest one.
pub(crate) fn known(spikes: &Spikes) -> Option<String> {
    let id = spikes.causes.iter().flat_map(|cause| &cause.checks).next()?;
    Some(format!("rtproof check explain {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seen: u64, explained: u64) -> Explained {
        let spikes = Spikes { threshold_ns: 100_000, seen, explained, ..Spikes::default() };
        Explained {
            about: String::new(),
            spikes,
            windows: Vec::new(),
            notes: Vec::new(),
            saw_none: false,
            gaps: Vec::new(),
            doubts: Vec::new(),
            locks: None,
            report: None,
        }
    }

    #[test]
    fn what_was_not_seen_is_not_good() {
        let of = |told: &Explained| answer(told, Some("x".into()));
        let none = of(&told(0, 0));
        assert_eq!(none.result, "no wake-up was more than 100 µs late");
        assert_eq!((none.tone, none.next), (Tone::Good, None));
        let unseen = of(&Explained { saw_none: true, ..told(0, 0) });
        assert_eq!((unseen.tone, unseen.next), (Tone::Doubtful, None));
        let gaps = vec!["lost: 3 kernel events".into()];
        let gaps = of(&Explained { gaps, ..told(0, 0) });
        assert_eq!((gaps.tone, gaps.next), (Tone::Doubtful, None));
        assert!(gaps.result.ends_with("100 µs late; lost: 3 kernel events"), "{}", gaps.result);
        let some = of(&told(1_431, 226));
        assert_eq!(some.result, "1\u{202f}431 wake-ups more than 100 µs late; 226 explained");
        assert_eq!((some.tone, some.next.as_deref()), (Tone::Doubtful, Some("x")));
        assert_eq!(of(&told(2, 2)).tone, Tone::Plain);
        let doubts = vec!["it has no event of CPU 1".into()];
        let doubted = of(&Explained { doubts: doubts.clone(), ..told(2, 2) });
        assert_eq!(doubted.tone, Tone::Doubtful);
        assert!(doubted.result.starts_with("seemingly 2 wake-ups"), "{}", doubted.result);
        assert!(doubted.result.ends_with("explained; it has no event of CPU 1"));
        assert_eq!(of(&Explained { doubts, ..told(0, 0) }).tone, Tone::Doubtful);
    }
}
