//! What the report of a run says about its spikes: whether shares sum, and how much is certain.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::matching::{Expected, Judged};
use super::spikes::Spike;

/// Sums over the spikes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Spikes of which the report has all shares.
    pub shown: u64,
    /// Of those, spikes whose shares and whose spans sum to their latency exactly, without gaps.
    pub exact: u64,
    /// Sum of the latencies of the planted spikes among them.
    pub planted_ns: u64,
    pub planted_certain_ns: u64,
    /// Sum of the latencies of all explained spikes.
    pub sum_ns: u64,
    pub certain_ns: u64,
}

/// What came of one plant, kept for the matrix of them all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Name of the plant.
    pub plant: String,
    pub judged: Vec<Judged>,
    /// Sums over all spikes of the run.
    pub sums: Sums,
}

impl Kept {
    /// What the names of the files begin with.
    pub const PREFIX: &str = "causes-";

    /// Spikes of which rtproof names a cause, or should: right ones and all.
    pub fn right(&self) -> (usize, usize) {
        let complete = self.judged.iter().filter(|judged| !judged.incomplete);
        (complete.clone().filter(|judged| judged.right).count(), complete.count())
    }
}

impl std::ops::AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.shown += other.shown;
        self.exact += other.exact;
        self.planted_ns += other.planted_ns;
        self.planted_certain_ns += other.planted_certain_ns;
        self.sum_ns += other.sum_ns;
        self.certain_ns += other.certain_ns;
    }
}

/// Sums over `rtproof prove --json` or `rtproof report --json`, and what of them is planted.
pub fn sums(report: &Value, expected: &Expected) -> Sums {
    let spikes = &report["spikes"];
    let mut sums = Sums {
        sum_ns: spikes["sum_ns"].as_u64().unwrap_or(0),
        certain_ns: spikes["certain_ns"].as_u64().unwrap_or(0),
        ..Sums::default()
    };
    for explanation in explanations(report) {
        sums.shown += 1;
        sums.exact += u64::from(is_exact(explanation).unwrap_or(false));
        if let Some(spike) = one_shown(explanation).filter(|spike| expected.is_planted(spike)) {
            sums.planted_ns += spike.latency_ns;
            sums.planted_certain_ns += certain_ns(explanation);
        }
    }
    sums
}

fn explanations(report: &Value) -> impl Iterator<Item = &Value> {
    let worst = report["spikes"]["worst"].as_array().map_or(&[][..], Vec::as_slice);
    worst.iter().map(|spike| &spike["explanation"])
}

/// What can be nothing else.
fn certain_ns(explanation: &Value) -> u64 {
    let shares = explanation["shares"].as_array().map_or(&[][..], Vec::as_slice);
    let certain = shares.iter().filter(|share| share["or"].as_array().is_none_or(Vec::is_empty));
    certain.filter_map(|share| share["ns"].as_u64()).sum()
}

/// The spikes of which a report has all shares, on the clock of the trace: also those of an
/// application, of which there is no record.
pub fn shown(report: &Value) -> Vec<Spike> {
    explanations(report).filter_map(one_shown).collect()
}

fn one_shown(explanation: &Value) -> Option<Spike> {
    let wake = &explanation["wake"];
    let due_ns = wake["due_ns"].as_u64()?;
    let top = &explanation["shares"][0];
    Some(Spike {
        due_ns,
        latency_ns: wake["ran_ns"].as_u64()?.saturating_sub(due_ns),
        cause: top["cause"].as_str().map(str::to_owned),
        culprit: top["culprit"].as_str().unwrap_or_default().to_owned(),
        complete: explanation["incomplete"].as_array().is_some_and(Vec::is_empty),
    })
}

/// Whether spans lie end to end from due to ran, and both they and the shares sum to the latency.
fn is_exact(explanation: &Value) -> Option<bool> {
    let wake = &explanation["wake"];
    let (due_ns, ran_ns) = (wake["due_ns"].as_u64()?, wake["ran_ns"].as_u64()?);
    let shares: Option<Vec<u64>> =
        explanation["shares"].as_array()?.iter().map(|share| share["ns"].as_u64()).collect();
    let shares = shares?;
    let mut of_spans = vec![0; shares.len()];
    let mut at_ns = due_ns;
    for span in explanation["spans"].as_array()? {
        let (from_ns, to_ns) = (span["from_ns"].as_u64()?, span["to_ns"].as_u64()?);
        if from_ns != at_ns || to_ns < from_ns {
            return Some(false);
        }
        at_ns = to_ns;
        *of_spans.get_mut(usize::try_from(span["share"].as_u64()?).ok()?)? += to_ns - from_ns;
    }
    let sum_ns: u64 = shares.iter().sum();
    Some(at_ns == ran_ns && of_spans == shares && sum_ns == ran_ns - due_ns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(shares: Value, spans: Value) -> Value {
        let explanation = json!({
            "wake": {"due_ns": 100, "ran_ns": 200}, "shares": shares, "spans": spans,
        });
        json!({"spikes": {
            "sum_ns": 100, "certain_ns": 90, "worst": [{"explanation": explanation}],
        }})
    }

    #[test]
    fn what_a_report_shows_has_its_largest_share_first() {
        let shares = json!([{"ns": 70, "cause": "stall", "culprit": "x"}, {"ns": 30}]);
        let mut report = report(shares, json!([]));
        assert!(!shown(&report)[0].complete);
        report["spikes"]["worst"][0]["explanation"]["incomplete"] = json!([]);
        let spike = Spike {
            due_ns: 100,
            latency_ns: 100,
            cause: Some("stall".into()),
            culprit: "x".into(),
            complete: true,
        };
        assert_eq!(shown(&report), [spike]);
    }

    #[test]
    fn a_nanosecond_too_many_is_seen() {
        let shares = json!([{"ns": 70}, {"ns": 30, "or": ["stall"]}]);
        let spans = json!([
            {"from_ns": 100, "to_ns": 130, "share": 0},
            {"from_ns": 130, "to_ns": 160, "share": 1},
            {"from_ns": 160, "to_ns": 200, "share": 0},
        ]);
        let expected = Expected {
            plant: "x".into(),
            causes: Vec::new(),
            culprit: Vec::new(),
            acted: crate::blame::Stretches::of(vec![(100, 180)]),
            least_ns: 0,
        };
        let of =
            |shares: &Value, spans: &Value| sums(&report(shares.clone(), spans.clone()), &expected);
        let exact = |shares: &Value, spans: &Value| of(shares, spans).exact;
        let good = of(&shares, &spans);
        assert_eq!((good.shown, good.exact, good.sum_ns, good.certain_ns), (1, 1, 100, 90));
        assert_eq!((good.planted_ns, good.planted_certain_ns), (100, 70));
        assert_eq!(exact(&json!([{"ns": 71}, {"ns": 30}]), &spans), 0);
        assert_eq!(exact(&json!([{"ns": 71}, {"ns": 29}]), &spans), 0);
        for (place, key, value) in [(0, "from_ns", 101), (1, "to_ns", 159), (2, "to_ns", 199)] {
            let mut spans = spans.clone();
            spans[place][key] = value.into();
            assert_eq!(exact(&shares, &spans), 0, "{place} {key}");
        }
        assert_eq!(sums(&json!({}), &expected), Sums::default());
    }
}
