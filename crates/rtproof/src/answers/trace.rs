//! The answer of `trace`: what was late, or how long the longest was.

use rtproof_judge::units;
use rtproof_results::answer::{Answer, Tone};
use rtproof_run::trace::Traced;

/// The answer; `next`: a command that can be pasted.
pub(crate) fn answer(tracer: &str, traced: &Traced, over_ns: u64, next: Option<String>) -> Answer {
    let (over, time) = (units::ns(over_ns), units::duration(traced.traced_ns));
    if is_late(traced, over_ns) {
        return super::explain::answer(&traced.explained, next);
    }
    let events = units::grouped(traced.lost_events);
    let lost =
        (traced.lost_events > 0).then(|| format!("{events} events were lost and may hold one"));
    let told = &traced.explained;
    let open = lost.iter().chain(&told.doubts).chain(&told.gaps);
    let open: String = open.map(|clause| format!("; {clause}")).collect();
    let result = match traced.longest_ns {
        Some(ns) => {
            format!(
                "{tracer} saw nothing over {over} in {time}; the longest was {}{open}",
                units::ns(ns)
            )
        }
        None if traced.explained.saw_none => {
            format!(
                "not known: nothing that {tracer} kept in {time} says how late a task was{open}"
            )
        }
        None => format!("{tracer} saw nothing over 1 µs in {time}{open}"),
    };
    let tone = if is_open(traced, over_ns) { Tone::Doubtful } else { Tone::Good };
    Answer { result, tone, ..Answer::default() }
}

/// Whether something was late.
fn is_late(traced: &Traced, over_ns: u64) -> bool {
    traced.longest_ns.is_some_and(|ns| ns > over_ns) && traced.explained.spikes.seen > 0
}

/// Whether nothing late was seen, and yet may have been.
pub(crate) fn is_open(traced: &Traced, over_ns: u64) -> bool {
    let told = &traced.explained;
    let is_blind = told.saw_none || told.is_open() || traced.lost_events > 0;
    !is_late(traced, over_ns) && is_blind
}

#[cfg(test)]
mod tests {
    use rtproof_judge::causes::Spikes;
    use rtproof_run::explain::Explained;

    use super::*;

    fn traced(longest_ns: Option<u64>, seen: u64, lost_events: u64) -> Traced {
        let spikes = Spikes { threshold_ns: 100_000, seen, explained: seen, ..Spikes::default() };
        let explained = Explained {
            about: String::new(),
            spikes,
            windows: Vec::new(),
            notes: Vec::new(),
            saw_none: longest_ns.is_none(),
            gaps: Vec::new(),
            doubts: Vec::new(),
            locks: None,
            report: None,
        };
        Traced { explained, longest_ns, lost_events, traced_ns: 2_000_000_000 }
    }

    fn of(traced: &Traced) -> (String, Tone) {
        let answer = answer("wakeup_rt", traced, 100_000, None);
        (answer.result, answer.tone)
    }

    #[test]
    fn the_longest_is_named_where_nothing_was_late() {
        // The trace of the longest is explained, however short it is.
        let (result, tone) = of(&traced(Some(57_000), 1, 0));
        assert_eq!(result, "wakeup_rt saw nothing over 100 µs in 2 s; the longest was 57 µs");
        assert_eq!(tone, Tone::Good);
        assert_eq!(
            of(&traced(Some(157_000), 1, 0)).0,
            "1 wake-up more than 100 µs late; 1 explained"
        );
    }

    #[test]
    fn what_was_lost_or_never_seen_is_not_good() {
        for traced in [traced(None, 0, 0), traced(Some(57_000), 0, 7)] {
            assert_eq!(of(&traced).1, Tone::Doubtful);
            assert!(is_open(&traced, 100_000));
        }
        let nothing = of(&traced(None, 0, 0)).0;
        assert!(nothing.starts_with("not known"), "{nothing}");
        assert!(!is_open(&traced(Some(157_000), 1, 7), 100_000));
        let mut unseen = traced(Some(57_000), 0, 0);
        unseen.explained.gaps.push("2 wake-ups have no end".into());
        let (result, tone) = of(&unseen);
        assert!(result.ends_with("; 2 wake-ups have no end"), "{result}");
        assert!(tone == Tone::Doubtful && is_open(&unseen, 100_000));
    }
}
