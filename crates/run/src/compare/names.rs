//! Names of runs from the names of their files: what they share is left out.

use std::path::Path;

/// Names for files: their stems without the words that all of them begin or end with, which are
/// separated by `-`, `_` or `.`. Where nothing would be left of one, all keep their stems; those
/// that are alike after all have a number.
pub fn short(paths: &[&Path]) -> Vec<String> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let words: Vec<Vec<&str>> =
        stems.iter().map(|stem| stem.split(['-', '_', '.']).collect()).collect();
    let least = words.iter().map(Vec::len).min().unwrap_or(0);
    let same = |at: &dyn Fn(&Vec<&str>) -> String| {
        words.windows(2).all(|pair| at(&pair[0]) == at(&pair[1]))
    };
    let from = (0..least).take_while(|&i| same(&|words| words[i].into())).count();
    let to = (0..least).take_while(|&i| same(&|words| words[words.len() - 1 - i].into())).count();
    let trimmed: Vec<String> = stems
        .iter()
        .zip(&words)
        .map(|(stem, words)| {
            let begin: usize = words.iter().take(from).map(|word| word.len() + 1).sum();
            let end: usize = words.iter().rev().take(to).map(|word| word.len() + 1).sum();
            stem.get(begin..stem.len().saturating_sub(end)).unwrap_or_default().to_owned()
        })
        .collect();
    let usable =
        paths.len() > 1 && from + to < least && trimmed.iter().all(|name| !name.is_empty());
    numbered(if usable { trimmed } else { stems })
}

/// What the names of a group's files have in common at their beginning; `None`: nothing to speak
/// of.
pub fn common(paths: &[&Path]) -> Option<String> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let first = stems.first()?;
    let shared =
        |stem: &String| first.chars().zip(stem.chars()).take_while(|(a, b)| a == b).count();
    let length = stems.iter().map(shared).min()?;
    let name: String = first.chars().take(length).collect();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_.".contains(c));
    (!name.is_empty()).then(|| name.to_owned())
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned())
}

fn numbered(names: Vec<String>) -> Vec<String> {
    let again = |at: usize| names[..at].iter().filter(|name| **name == names[at]).count();
    let name = |at: usize| match again(at) {
        0 => names[at].clone(),
        n => format!("{} ({})", names[at], n + 1),
    };
    (0..names.len()).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short_of(names: &[&str]) -> Vec<String> {
        short(&names.iter().map(Path::new).collect::<Vec<_>>())
    }

    #[test]
    fn what_all_share_is_left_out() {
        assert_eq!(
            short_of(&["d/stress-cyclictest.log", "rt-stress-no-multipathd-cyclictest.log"]),
            ["stress", "rt-stress-no-multipathd"]
        );
        assert_eq!(short_of(&["prove-pi-1.rtproof", "prove-pi-2.rtproof"]), ["1", "2"]);
        assert_eq!(short_of(&["a.log"]), ["a"]);
        assert_eq!(short_of(&["x/run.log", "y/run.log"]), ["run", "run (2)"]);
        assert_eq!(short_of(&["rt.log", "rt-stress.log"]), ["rt", "rt-stress"]);
        assert_eq!(short_of(&["µ-größe.log", "µ-kleine.log"]), ["größe", "kleine"]);
        assert!(short_of(&[]).is_empty());
    }

    #[test]
    fn a_group_has_the_name_of_its_files() {
        let of = |names: &[&str]| common(&names.iter().map(Path::new).collect::<Vec<_>>());
        assert_eq!(of(&["tuned-1.rtproof", "tuned-2.rtproof"]).as_deref(), Some("tuned"));
        assert_eq!(of(&["a1.log", "b1.log"]), None);
        assert_eq!(of(&["1.log", "12.log"]), None);
    }
}
