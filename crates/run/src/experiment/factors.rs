//! From words of the command line to knobs: checks of `tune`, values of the kernel, options of
//! measuring, and what does nothing.

use rtproof_host::tune::Pace;
use rtproof_host::{
    Root,
    tune::{Change, Compare},
};
use rtproof_judge::{
    Impact,
    plan::{Plan, Reason, Step},
};

use super::{
    knobs::{self, Candidate},
    setting::Setting,
};
use crate::{
    parse,
    usage::{Invalid, usage},
};

/// Longest name of a placebo.
const NAME_MAX: usize = 40;
const PLACEBO: &str = "placebo";

/// What a word asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factor {
    /// A check, or a section of them.
    Check(String),
    /// Values that are written together: path and value.
    Values(String, Vec<(String, String)>),
    /// An option of measuring.
    Setting(Setting),
    /// Nothing at all: what it is found to do is error.
    Placebo(String),
}

/// Reads a word: `ID`, `PATH=VALUE` (more of them after a blank), `OPTION=VALUE`, `placebo`.
///
/// # Errors
/// Usage: it is none of these.
pub fn factor(word: &str) -> anyhow::Result<Factor> {
    let refuse = |why: &str| Err(usage(format!("{word}: {why}")));
    if word.starts_with('/') {
        return values(word);
    }
    if let Some(name) = word.strip_prefix(PLACEBO) {
        let is_name = name.is_empty() || (name.starts_with(':') && word.len() <= NAME_MAX);
        return match is_name && !word.contains(char::is_whitespace) {
            true => Ok(Factor::Placebo(word.into())),
            false => refuse("write placebo or placebo:NAME"),
        };
    }
    let Some((option, value)) = word.split_once('=') else {
        return Ok(Factor::Check(word.into()));
    };
    let wrong = |why: Invalid| usage(format!("{word}: {why}"));
    Ok(Factor::Setting(match option.trim_start_matches("--") {
        "dma-latency" => match value.parse() {
            Ok(us) => Setting::DmaLatency(us),
            Err(_) => return refuse("expected microseconds, e.g. dma-latency=0"),
        },
        "priority" => Setting::Priority(parse::priority(value).map_err(wrong)?),
        "policy" => match value {
            "other" | "fifo" | "rr" => Setting::Policy(value.into()),
            _ => return refuse("expected other, fifo or rr"),
        },
        "load" => {
            let load = value.parse::<rtproof_measure::loads::LoadSet>();
            Setting::Load(load.map_err(|error| wrong(error.to_string().into()))?)
        }
        "period" | "cpus" | "for" | "start" => {
            return refuse("slices that differ in it hold different numbers of wake-ups");
        }
        _ => return refuse("options that can be tried: dma-latency, priority, policy, load"),
    }))
}

fn values(word: &str) -> anyhow::Result<Factor> {
    let mut values: Vec<(String, String)> = Vec::new();
    let mut rest = word;
    while !rest.is_empty() {
        // The next one begins at a path after a blank.
        let end = rest.find(" /").unwrap_or(rest.len());
        let (one, others) = rest.split_at(end);
        let Some((path, value)) = one.trim().split_once('=') else {
            return Err(usage(format!("{one}: expected PATH=VALUE")));
        };
        let is_value = ["/proc/", "/sys/"].iter().any(|top| path.starts_with(top));
        if !is_value || path.split('/').any(|part| part == "..") {
            return Err(usage(format!(
                "{path}: only values below /proc and /sys can be switched on and off"
            )));
        }
        values.push((path.into(), value.into()));
        rest = others.trim_start();
    }
    Ok(Factor::Values(word.into(), values))
}

/// Steps of values, as a plan has them.
///
/// # Errors
/// A file that cannot be read.
pub fn steps(root: &Root, name: &str, values: &[(String, String)]) -> anyhow::Result<Vec<Step>> {
    let step = |(path, value): &(String, String)| {
        let now = root.read_text(path);
        let Some(now) = now.value() else {
            let why = now.why_unknown().unwrap_or_else(|| "cannot be read".into());
            anyhow::bail!("{path}: {why}");
        };
        let is_number = |text: &str| text.trim().parse::<i64>().is_ok();
        let compare = match () {
            () if now.contains('[') && now.contains(']') => Compare::Choice,
            () if is_number(now) && is_number(value) => Compare::Number,
            () => Compare::Text,
        };
        let (path, value) = (path.clone(), value.clone());
        let change = Change::Value { path, value, compare, couples: Vec::new() };
        let reason = Reason {
            checks: vec![name.to_owned()],
            why: "named on the command line of rtproof experiment".into(),
            impact: Impact::default(),
            trade_off: None,
            risk: None,
        };
        Ok(Step { change, reason })
    };
    values.iter().map(step).collect()
}

/// The knobs of a plan and of the other factors, and names of those that cannot be switched on and
/// off, with the reason.
pub fn knobs_of(plan: &Plan, factors: &[Factor]) -> (Vec<Candidate>, Vec<(String, &'static str)>) {
    let (mut knobs, others): (Vec<Candidate>, Vec<Candidate>) =
        knobs::of(plan).into_iter().partition(|knob| knob.kind == Pace::Toggled);
    for factor in factors {
        let settings = match factor {
            Factor::Check(_) | Factor::Values(..) => continue,
            Factor::Setting(setting) => vec![setting.clone()],
            Factor::Placebo(_) => Vec::new(),
        };
        let name = match factor {
            Factor::Placebo(name) => name.clone(),
            _ => settings.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        };
        let (now, later) = (Vec::new(), Vec::new());
        let impact = Impact::default();
        knobs.push(Candidate { name, impact, kind: Pace::Toggled, now, later, settings });
    }
    let why = |knob: &Candidate| match knob.kind {
        Pace::Once => {
            "slow to take back, and leaves traces: rtproof tune apply --prove tries it once"
        }
        Pace::Later | Pace::Toggled => {
            "does nothing before the next boot: rtproof experiment boots tries boot parameters"
        }
    };
    let others = others.iter().map(|knob| (knob.name.clone(), why(knob))).collect();
    (knobs, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let of = |word: &str| factor(word).expect(word);
        assert_eq!(of("cpufreq-governor"), Factor::Check("cpufreq-governor".into()));
        assert_eq!(of("placebo:2"), Factor::Placebo("placebo:2".into()));
        assert_eq!(of("dma-latency=0"), Factor::Setting(Setting::DmaLatency(0)));
        assert_eq!(of("--priority=98"), Factor::Setting(Setting::Priority(98)));
        assert_eq!(of("policy=rr"), Factor::Setting(Setting::Policy("rr".into())));
        assert!(matches!(of("load=cpu+net"), Factor::Setting(Setting::Load(_))));
        let word = "/sys/a=1 2 /proc/sys/b=x=y";
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        let values = vec![pair("/sys/a", "1 2"), pair("/proc/sys/b", "x=y")];
        assert_eq!(of(word), Factor::Values(word.into(), values));
    }

    #[test]
    fn what_cannot_be_tried_is_told() {
        for (word, why) in [
            ("/etc/fstab=x", "below /proc and /sys"),
            ("/sys/../etc/fstab=x", "below /proc and /sys"),
            ("/sys/a", "expected PATH=VALUE"),
            ("priority=100", "priority=100"),
            ("policy=idle", "expected other, fifo or rr"),
            ("dma-latency=slow", "expected microseconds"),
            ("period=1ms", "different numbers of wake-ups"),
            ("colour=red", "options that can be tried"),
            ("load=nonsense", "load=nonsense"),
            ("placebo two", "placebo:NAME"),
        ] {
            let error = factor(word).expect_err(word);
            assert!(error.to_string().contains(why), "{word}: {error}");
            assert!(error.is::<crate::usage::Usage>());
        }
    }

    #[test]
    fn values_are_compared_as_they_are_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        #[expect(clippy::disallowed_methods, reason = "the test's own files")]
        let write = |path: &str, text: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            std::fs::write(file, text).expect("a file");
        };
        write("sys/choice", "always [madvise] never\n");
        write("sys/number", "10\n");
        write("sys/text", "ondemand\n");
        let root = Root::dir(folder.path()).expect("a root");
        let word = "/sys/choice=never /sys/number=0 /sys/text=performance";
        let Factor::Values(name, values) = factor(word).expect("values") else { panic!("{word}") };
        let steps = steps(&root, &name, &values).expect("steps");
        let compares: Vec<Compare> = steps
            .iter()
            .map(|step| match &step.change {
                Change::Value { compare, .. } => *compare,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(compares, [Compare::Choice, Compare::Number, Compare::Text]);
        let plan = Plan { steps, ..Plan::default() };
        let factors = [Factor::Placebo("placebo".into()), Factor::Setting(Setting::DmaLatency(0))];
        let (knobs, others) = knobs_of(&plan, &factors);
        let found: Vec<_> = knobs.iter().map(|k| (k.name.as_str(), k.now.len())).collect();
        assert_eq!(found, [(word, 3), ("placebo", 0), ("--dma-latency 0", 0)]);
        assert!(others.is_empty() && knobs[2].settings == [Setting::DmaLatency(0)]);
        let none = [("/sys/none".to_owned(), "1".to_owned())];
        assert!(
            super::steps(&root, "x", &none).expect_err("none").to_string().contains("/sys/none")
        );
    }
}
