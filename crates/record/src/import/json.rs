//! JSON of rt-tests and jitterdebugger: with keys that end in a colon and command lines that are
//! not escaped, as the tools write them.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor},
};

use super::{BINS_MAX, Hints, ImportError};
use crate::error::Contradiction;

/// An object as pairs in its own order; nothing is dropped when a key comes twice.
#[derive(Debug)]
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Of<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Of<T> {
            type Value = Pairs<T>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs<T>, M::Error> {
                let mut pairs: Vec<(String, T)> = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    if pairs.len() >= BINS_MAX {
                        return Err(serde::de::Error::custom(format!(
                            "more than {BINS_MAX} entries"
                        )));
                    }
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        from.deserialize_map(Of(PhantomData))
    }
}

impl<T> Pairs<T> {
    /// The pairs by the number of their key, ascending.
    pub(super) fn by_number(self) -> Result<Vec<(u64, T)>, Contradiction> {
        let mut all = Vec::with_capacity(self.0.len());
        for (key, value) in self.0 {
            let number =
                key.parse::<u64>().map_err(|_| format!("key {key:?}, expected a number"))?;
            all.push((number, value));
        }
        all.sort_by_key(|(number, _)| *number);
        match all.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(format!("key \"{}\" comes twice", pair[0].0).into()),
            None => Ok(all),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SysInfo {
    pub(super) nodename: String,
    pub(super) release: String,
    pub(super) version: String,
    pub(super) machine: String,
    pub(super) resolution_in_ns: Option<u64>,
}

impl SysInfo {
    /// Host and kernel in one line.
    pub(super) fn text(&self) -> Option<String> {
        let words = [&self.nodename, &self.release, &self.version, &self.machine];
        let words: Vec<&str> =
            words.iter().map(|word| word.as_str()).filter(|word| !word.is_empty()).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

/// Reads a document; `true`: its command line had to be repaired first.
pub(super) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    hints: &Hints,
) -> Result<(T, bool), ImportError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| hints.at_byte(error.valid_up_to(), "no text (UTF-8), expected JSON"))?;
    let first = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, false)),
        Err(error) => error,
    };
    if let Cow::Owned(repaired) = repair(text)
        && let Ok(value) = serde_json::from_str(&repaired)
    {
        return Ok((value, true));
    }
    Err(ImportError::Line {
        name: hints.name.clone(),
        line: first.line() as u64,
        what: format!("{first}; expected the JSON of the tool, whole"),
    })
}

/// Quotes and backslashes in the values of the command line and of `sysinfo` are escaped, as the
/// tools do not. A value ends with the last quote of its line.
fn repair(text: &str) -> Cow<'_, str> {
    const RAW: [&str; 6] = [
        "\"cmdline:\"",
        "\"cmdline\"",
        "\"nodename\"",
        "\"release\"",
        "\"version\"",
        "\"sysname\"",
    ];
    let mut out = String::with_capacity(text.len() + 64);
    let mut any = false;
    for line in text.split_inclusive('\n') {
        let value = RAW.iter().find_map(|key| {
            let after = line.trim_start().strip_prefix(key)?.trim_start().strip_prefix(':')?;
            let after = after.trim_start().strip_prefix('"')?;
            let end = after.rfind('"')?;
            Some(&after[..end])
        });
        let Some(value) = value.filter(|value| value.contains(['"', '\\', '\t'])) else {
            out.push_str(line);
            continue;
        };
        let start = value.as_ptr() as usize - line.as_ptr() as usize;
        out.push_str(&line[..start]);
        for c in value.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\t' => out.push_str("\\t"),
                c => out.push(c),
            }
        }
        out.push_str(&line[start + value.len()..]);
        any = true;
    }
    if any { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Whether a file begins as a JSON object.
pub(super) fn is_object(bytes: &[u8]) -> bool {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}

/// A time as in mail headers, seconds since 1970.
pub(super) fn mail_time_s(text: &str) -> Option<i64> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_a_command_line_are_escaped() {
        let broken = "{\n  \"cmdline:\": \"cyclictest -t1 --x=\"a b\" c:\\d\",\n  \"a\": 1\n}\n";
        let fixed = repair(broken);
        let value: serde_json::Value = serde_json::from_str(&fixed).expect("JSON now");
        assert_eq!(value["cmdline:"], "cyclictest -t1 --x=\"a b\" c:\\d");
        assert!(matches!(repair("{\"cmdline\": \"x\"}"), Cow::Borrowed(_)));
    }

    #[test]
    fn no_key_is_dropped() {
        let twice: Pairs<u64> =
            serde_json::from_str("{\"3\": 1, \"2\": 5, \"3\": 2}").expect("pairs");
        assert!(twice.by_number().expect_err("twice").to_string().contains("\"3\""));
        let word: Pairs<u64> = serde_json::from_str("{\"x\": 1}").expect("pairs");
        word.by_number().expect_err("no number");
        assert_eq!(mail_time_s("Mon, 07 Sep 2026 14:29:23 -0500"), Some(1_788_809_363));
    }
}
