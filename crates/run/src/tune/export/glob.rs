//! Many paths as few patterns, for formats with wildcards: `cpu[2-3]`, `cpu1[0-5]`.
//!
//! A pattern here is a class of digits for each digit, so it matches the paths it was made from and
//! no other path that a machine may have: a `*` would take CPUs that come later.

use std::collections::{BTreeMap, BTreeSet};

/// Patterns that match these paths and no others. What is special to a pattern in a path is quoted.
pub(super) fn cover(paths: &[&str]) -> Vec<String> {
    let mut patterns: Vec<Vec<Part>> = Vec::new();
    for path in paths {
        let parts: Vec<Part> = path.split('/').map(Part::of).collect();
        if !patterns.contains(&parts) {
            patterns.push(parts);
        }
    }
    let deepest = patterns.iter().map(Vec::len).max().unwrap_or(0);
    for at in (0..deepest).rev() {
        patterns = merge(patterns, at);
    }
    let text = |parts: &Vec<Part>| {
        let parts: Vec<String> = parts.iter().map(Part::to_string).collect();
        parts.join("/")
    };
    patterns.iter().map(text).collect()
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A name with a number at its end.
    Numbered(String, u32),
    /// As it is in the pattern.
    Fixed(String),
}

impl Part {
    fn of(text: &str) -> Self {
        let name = text.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &text[name.len()..];
        match digits.parse::<u32>() {
            // 007 is not 7.
            Ok(number) if number.to_string() == digits => Self::Numbered(quote(name), number),
            _ => Self::Fixed(quote(text)),
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Numbered(name, number) => write!(f, "{name}{number}"),
            Self::Fixed(text) => f.write_str(text),
        }
    }
}

/// Characters that are special to a pattern, each in a class of its own.
fn quote(text: &str) -> String {
    let quoted = |c: char| match c {
        '*' | '?' | '[' => format!("[{c}]"),
        c => c.to_string(),
    };
    text.chars().map(quoted).collect()
}

/// Makes one pattern of those that differ in the number of one part; the first keeps its place.
fn merge(patterns: Vec<Vec<Part>>, at: usize) -> Vec<Vec<Part>> {
    let mut merged: Vec<(Vec<Part>, Option<String>, BTreeSet<u32>)> = Vec::new();
    for parts in patterns {
        let Some(Part::Numbered(name, number)) = parts.get(at).cloned() else {
            merged.push((parts, None, BTreeSet::new()));
            continue;
        };
        let is_same = |other: &[Part]| {
            let differs = |i: usize| i != at && other[i] != parts[i];
            other.len() == parts.len() && !(0..parts.len()).any(differs)
        };
        let of_it =
            merged.iter_mut().find(|(other, of, _)| of.as_ref() == Some(&name) && is_same(other));
        match of_it {
            Some((_, _, numbers)) => _ = numbers.insert(number),
            None => merged.push((parts, Some(name), BTreeSet::from([number]))),
        }
    }
    let spread = |(parts, name, numbers): (Vec<Part>, Option<String>, BTreeSet<u32>)| {
        let Some(name) = name.filter(|_| numbers.len() > 1) else { return vec![parts] };
        let with = |class: String| {
            let mut parts = parts.clone();
            parts[at] = Part::Fixed(format!("{name}{class}"));
            parts
        };
        classes(&numbers).into_iter().map(with).collect()
    };
    merged.into_iter().flat_map(spread).collect()
}

/// Numbers as patterns of digits: `{8, 9, 10, 11, 20, 21}` is `[89]`, `[12][01]`.
fn classes(numbers: &BTreeSet<u32>) -> Vec<String> {
    let mut by_front: BTreeMap<Option<u32>, BTreeSet<u32>> = BTreeMap::new();
    for &number in numbers {
        let front = Some(number / 10).filter(|&front| front > 0);
        by_front.entry(front).or_default().insert(number % 10);
    }
    // Fronts with the same last digits are one pattern.
    let mut by_last: Vec<(BTreeSet<u32>, BTreeSet<u32>)> = Vec::new();
    let mut patterns = Vec::new();
    for (front, last) in by_front {
        match front {
            None => patterns.push(class(&last)),
            Some(front) => match by_last.iter_mut().find(|(digits, _)| *digits == last) {
                Some((_, fronts)) => _ = fronts.insert(front),
                None => by_last.push((last, BTreeSet::from([front]))),
            },
        }
    }
    for (last, fronts) in by_last {
        let last = class(&last);
        patterns.extend(classes(&fronts).into_iter().map(|front| format!("{front}{last}")));
    }
    patterns
}

/// Digits as a class: `3`, `[2-5]`, `[13]`.
fn class(digits: &BTreeSet<u32>) -> String {
    let all: Vec<u32> = digits.iter().copied().collect();
    match all[..] {
        [one] => one.to_string(),
        [first, .., last] if all.len() > 2 && (last - first) as usize + 1 == all.len() => {
            format!("[{first}-{last}]")
        }
        _ => {
            let digits: String = all.iter().map(u32::to_string).collect();
            format!("[{digits}]")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a pattern of ours matches, the way a shell does.
    fn expand(pattern: &str) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            let mut class = Vec::new();
            if c == '[' {
                let inner: Vec<char> = rest.by_ref().take_while(|&c| c != ']').collect();
                match inner[..] {
                    [first, '-', last] => class.extend(first..=last),
                    _ => class = inner,
                }
            } else {
                class.push(c);
            }
            let mut longer = Vec::new();
            for text in &texts {
                longer.extend(class.iter().map(|c| format!("{text}{c}")));
            }
            texts = longer;
        }
        texts
    }

    fn covered(paths: &[String]) -> Vec<String> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        cover(&paths)
    }

    #[test]
    fn patterns_are_short() {
        let governor = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        let of = |cpus: &[u32]| covered(&cpus.iter().map(|&cpu| governor(cpu)).collect::<Vec<_>>());
        assert_eq!(of(&[3]), [governor(3)]);
        let only = |class: &str| governor(0).replace("cpu0", &format!("cpu{class}"));
        assert_eq!(of(&[2, 3]), [only("[23]")]);
        assert_eq!(of(&[2, 3, 4, 5]), [only("[2-5]")]);
        let all: Vec<u32> = (2..64).collect();
        assert_eq!(of(&all), [only("[2-9]"), only("[1-5][0-9]"), only("6[0-3]")]);
        let states: Vec<String> = (2..4)
            .flat_map(|cpu| (1..4).map(move |n| format!("/c/cpu{cpu}/cpuidle/state{n}/disable")))
            .collect();
        assert_eq!(covered(&states), ["/c/cpu[23]/cpuidle/state[1-3]/disable"]);
        assert_eq!(covered(&["/a[1]/*".into()]), ["/a[[]1]/[*]"]);
    }

    #[test]
    fn patterns_match_these_paths_and_no_others() {
        // Every third CPU of some, two states of some of them: nothing even.
        for seed in 1..200_u32 {
            let is_in = |n: u32| n.wrapping_mul(2_654_435_761_u32.wrapping_mul(seed)) >> 30 > 0;
            let mut paths: Vec<String> = (0..130)
                .filter(|&cpu| is_in(cpu))
                .flat_map(|cpu| (0..3).map(move |state| (cpu, state)))
                .filter(|(cpu, state)| is_in(cpu * 7 + state))
                .map(|(cpu, state)| format!("/c/cpu{cpu}/state{state}"))
                .collect();
            let mut matched: Vec<String> =
                covered(&paths).iter().flat_map(|pattern| expand(pattern)).collect();
            matched.sort();
            paths.sort();
            assert_eq!(matched, paths, "seed {seed}");
        }
    }
}
