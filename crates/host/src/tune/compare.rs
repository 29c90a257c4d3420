//! Values as the kernel shows them, compared by what they mean.

use crate::CpuList;
use crate::change::Compare;

/// What of a text a change is about, in one form for all ways to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Text(Vec<String>),
    Number(i128),
    Cpus(CpuList),
    /// Whether the word is there, and whether its opposite.
    Word(bool, bool),
}

/// What a text that was read means to a change that wrote `value`.
pub(super) fn meaning(compare: Compare, value: &str, read: &str) -> Meaning {
    let text = || Meaning::Text(read.split_whitespace().map(str::to_owned).collect());
    let list = |parsed: Result<CpuList, _>| parsed.map_or_else(|_| text(), Meaning::Cpus);
    let has = |wanted: &str| read.split_whitespace().any(|word| word == wanted);
    match compare {
        Compare::Text => text(),
        Compare::Number => number(read).map_or_else(text, Meaning::Number),
        Compare::CpuList => list(CpuList::parse(read, None)),
        Compare::CpuMask => list(CpuList::parse_mask(read)),
        Compare::Choice => match crate::text::between(read, '[', ']') {
            Some(choice) => Meaning::Text(vec![choice.to_owned()]),
            None => text(),
        },
        Compare::Word => Meaning::Word(has(value.trim()), has(&opposite(value))),
        Compare::Controller => {
            Meaning::Word(has(value.trim().trim_start_matches(['+', '-'])), false)
        }
    }
}

/// Whether what was read is what was wanted.
pub(super) fn is_done(compare: Compare, value: &str, read: &str) -> bool {
    match compare {
        Compare::Word => meaning(compare, value, read) == Meaning::Word(true, false),
        Compare::Controller => {
            let wanted = !value.trim().starts_with('-');
            meaning(compare, value, read) == Meaning::Word(wanted, false)
        }
        _ => meaning(compare, value, value) == meaning(compare, value, read),
    }
}

/// What to write so that the kernel reads what it read before.
pub(super) fn written_back(path: &str, compare: Compare, value: &str, before: &str) -> String {
    match (compare, meaning(compare, value, before)) {
        (Compare::Choice, Meaning::Text(words)) => words.join(" "),
        (Compare::Word, Meaning::Word(true, _)) => value.trim().to_owned(),
        (Compare::Word, _) => opposite(value),
        (Compare::Controller, Meaning::Word(was, _)) => {
            let name = value.trim().trim_start_matches(['+', '-']);
            format!("{}{name}", if was { '+' } else { '-' })
        }
        _ if is_partition(path) => kind(before).to_owned(),
        _ if crate::text::between(before, '[', ']').is_some() => {
            crate::text::between(before, '[', ']').unwrap_or_default().to_owned()
        }
        _ => before.to_owned(),
    }
}

/// Whether a file holds the kind of a partition of CPUs.
pub(super) fn is_partition(path: &str) -> bool {
    path.ends_with("/cpuset.cpus.partition")
}

/// The kind that was written: `isolated invalid (why)` is what became of `isolated`.
pub(super) fn kind(read: &str) -> &str {
    read.split_whitespace().next().unwrap_or_default()
}

/// `NO_X` for `X`, `X` for `NO_X`.
fn opposite(value: &str) -> String {
    let value = value.trim();
    value.strip_prefix("NO_").map_or_else(|| format!("NO_{value}"), str::to_owned)
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim();
    match text {
        "Y" | "y" => return Some(1),
        "N" | "n" => return Some(0),
        _ => {}
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_what_they_mean() {
        let done = [
            (Compare::Text, "performance", "performance\n"),
            (Compare::Text, "4 4 1 7", "4\t4\t1\t7\n"),
            (Compare::Number, "16", "0x10\n"),
            (Compare::Number, "1", "Y\n"),
            (Compare::Number, "N", "0\n"),
            (Compare::Number, "-1", "-1\n"),
            (Compare::CpuList, "0-2", "0,1,2\n"),
            (Compare::CpuList, "", "\n"),
            (Compare::CpuMask, "f", "00000000,0000000f\n"),
            (Compare::Choice, "never", "always madvise [never]\n"),
            (Compare::Word, "NO_HRTICK", "TTWU_QUEUE NO_HRTICK\n"),
            (Compare::Word, "HRTICK", "TTWU_QUEUE HRTICK\n"),
            (Compare::Controller, "+cpuset", "cpuset cpu\n"),
            (Compare::Controller, "-cpuset", "cpu io\n"),
        ];
        for (compare, value, read) in done {
            assert!(is_done(compare, value, read), "{compare:?} {value} {read}");
        }
        let not = [
            (Compare::Text, "performance", "powersave\n"),
            (Compare::Text, "isolated", "isolated invalid (Cpu list empty)\n"),
            (Compare::Number, "1", "10\n"),
            (Compare::Number, "1", "many\n"),
            (Compare::CpuList, "0-2", "0-3\n"),
            (Compare::CpuList, "0", "(null)\n"),
            (Compare::CpuMask, "f", "1f\n"),
            (Compare::Choice, "never", "[always] madvise never\n"),
            (Compare::Word, "HRTICK", "NO_HRTICK\n"),
            (Compare::Word, "HRTICK", "OTHER\n"),
            (Compare::Controller, "+cpuset", "cpuset2\n"),
            (Compare::Controller, "-cpuset", "cpuset\n"),
        ];
        for (compare, value, read) in not {
            assert!(!is_done(compare, value, read), "{compare:?} {value} {read}");
        }
    }

    #[test]
    fn what_is_written_back_is_what_the_kernel_takes() {
        let back =
            |compare, value: &str, before: &str| written_back("/sys/x", compare, value, before);
        assert_eq!(back(Compare::Choice, "never", "always [madvise] never\n"), "madvise");
        assert_eq!(back(Compare::Text, "never", "always [madvise] never\n"), "madvise");
        assert_eq!(back(Compare::Word, "NO_HRTICK", "HRTICK X\n"), "HRTICK");
        assert_eq!(back(Compare::Word, "HRTICK", "NO_HRTICK X\n"), "NO_HRTICK");
        assert_eq!(back(Compare::Controller, "+cpuset", "cpu\n"), "-cpuset");
        assert_eq!(back(Compare::Controller, "-cpuset", "cpuset\n"), "+cpuset");
        assert_eq!(back(Compare::Number, "1", " 0x3 \n"), " 0x3 \n");
        let partition = "/sys/fs/cgroup/rt/cpuset.cpus.partition";
        let before = "isolated invalid (x)\n";
        assert_eq!(written_back(partition, Compare::Text, "root", before), "isolated");
    }
}
