//! What the cases of `tune` share: functions of their scripts, and whether all is as it was.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::expect::Expect;
use crate::seen::Evidence;

/// Functions of the scripts.
const FUNCTIONS: &str = include_str!("../../../guest/tune.sh");

/// A script with the functions before it.
pub(crate) fn script(text: &str) -> String {
    format!("{FUNCTIONS}\n{text}")
}

/// What `track` wrote: lines of each file or task.
pub(crate) fn tracked(seen: &Evidence, name: &str) -> Result<BTreeMap<String, Vec<String>>> {
    Ok(lines(&seen.text(name)?))
}

fn lines(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for line in text.lines() {
        let (path, value) = line.split_once('\t').unwrap_or((line, ""));
        found.entry(path.to_owned()).or_default().push(value.to_owned());
    }
    found
}

/// What is not as it was, of files of the last guest.
pub(crate) fn differing(seen: &Evidence, names: [&str; 3]) -> Result<Vec<String>> {
    let [first, second, last] = names.map(|name| seen.text(name));
    Ok(differing_in([&first?, &second?, &last?]))
}

/// What is not as it was: but for what changes by itself (between the first two), and tasks that
/// have ended or begun.
pub(crate) fn differing_in(texts: [&str; 3]) -> Vec<String> {
    let [first, second, last] = texts.map(lines);
    let is_task = |path: &str| path.starts_with("task ");
    let own: BTreeSet<&String> = first
        .iter()
        .filter(|(path, value)| second.get(*path) != Some(value))
        .map(|p| p.0)
        .collect();
    let mut differ = Vec::new();
    for (path, was) in second.iter().filter(|(path, _)| !own.contains(path)) {
        match last.get(path) {
            None if is_task(path) => {}
            Some(is) if is == was => {}
            is => differ.push(format!("{path}: was {was:?}, is {is:?}")),
        }
    }
    for (path, is) in last.iter().filter(|(path, _)| !second.contains_key(*path)) {
        if !is_task(path) && !first.contains_key(path) {
            differ.push(format!("{path}: was not, is {is:?}"));
        }
    }
    differ
}

/// Expects that what was tracked is as it was, and that enough of it was compared.
pub(crate) fn as_before(seen: &Evidence, expect: &mut Expect, names: [&str; 3]) -> Result<()> {
    let compared = tracked(seen, names[1])?.len();
    expect.that("values compared", "500 or more", compared >= 500, compared);
    expect.equal("values that differ", differing(seen, names)?, Vec::new());
    Ok(())
}
