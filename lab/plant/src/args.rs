//! The command line: `--name value` pairs and a few names without value. Written by hand because
//! the program is copied into every guest and has to stay small.

/// Options without a value.
const FLAGS: &[&str] = &["when-measuring", "help"];
/// Options with a value.
const VALUES: &[&str] = &[
    "after",
    "bytes",
    "busy",
    "by",
    "cgroup",
    "count",
    "cpu",
    "dir",
    "down",
    "each",
    "every",
    "for",
    "gap",
    "kind",
    "leave",
    "limit",
    "long",
    "memory-high",
    "memory-max",
    "of",
    "phase",
    "pid",
    "policy",
    "quota",
    "times",
    "truth",
];

#[derive(Debug, Default)]
pub(crate) struct Args {
    given: Vec<(String, String)>,
}

impl Args {
    /// Takes the words behind the name of the plant.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self::default();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").unwrap_or_default().to_owned();
            let value = if FLAGS.contains(&name.as_str()) {
                String::new()
            } else if VALUES.contains(&name.as_str()) {
                words.next().ok_or_else(|| format!("--{name} has no value"))?
            } else {
                return Err(format!("{word}: no such option"));
            };
            args.given.push((name, value));
        }
        Ok(args)
    }

    /// Whether an option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// Its value; the last one counts.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        debug_assert!(FLAGS.contains(&name) || VALUES.contains(&name), "{name} is in a list");
        self.given.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// A value that must be there.
    pub(crate) fn needed(&self, name: &str) -> Result<&str, String> {
        self.text(name).ok_or_else(|| format!("--{name} is needed"))
    }

    /// A duration in nanoseconds.
    pub(crate) fn duration_ns(&self, name: &str) -> Result<Option<u64>, String> {
        self.read(name, duration_ns, "a duration such as 250us, 3ms or 5s")
    }

    /// A duration that must be there and be more than nothing.
    pub(crate) fn needed_ns(&self, name: &str) -> Result<u64, String> {
        self.needed(name)?;
        let ns = self.duration_ns(name)?.unwrap_or(0);
        if ns == 0 { Err(format!("--{name} must be more than nothing")) } else { Ok(ns) }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        self.read(name, |text| text.parse().ok(), "a whole number")
    }

    /// A number of bytes.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<u64>, String> {
        self.read(name, bytes, "bytes such as 4096, 64k or 16m")
    }

    fn read<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| format!("--{name} {text}: expected {expected}"))
    }
}

/// Nanoseconds of `250us`, `3ms`, `5s`, `2m`.
pub(crate) fn duration_ns(text: &str) -> Option<u64> {
    scaled(text, &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)])
}

fn bytes(text: &str) -> Option<u64> {
    scaled(text, &[("", 1), ("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)])
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Result<Args, String> {
        Args::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn values_have_units_and_the_last_one_counts() {
        let args = args("--busy 5ms --bytes 2k --busy 250us --when-measuring --cpu 3").unwrap();
        assert_eq!(args.needed_ns("busy"), Ok(250_000));
        assert_eq!(args.bytes("bytes"), Ok(Some(2048)));
        assert_eq!(args.number("cpu"), Ok(Some(3)));
        assert!(args.has("when-measuring") && !args.has("after"));
        assert_eq!(args.duration_ns("after"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(args("--bsuy 5ms").unwrap_err(), "--bsuy: no such option");
        assert_eq!(args("5ms").unwrap_err(), "5ms: no such option");
        assert_eq!(args("--busy").unwrap_err(), "--busy has no value");
        for text in ["5", "5 ms", "ms", "-5ms", "99999999999999999999s", "9999999999999s"] {
            assert_eq!(duration_ns(text), None, "{text}");
        }
        let error = args("--busy 5").unwrap().needed_ns("busy").unwrap_err();
        assert_eq!(error, "--busy 5: expected a duration such as 250us, 3ms or 5s");
        assert!(args("--busy 0s").unwrap().needed_ns("busy").is_err());
    }
}
