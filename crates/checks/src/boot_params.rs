//! CPU lists on the command line, read as the kernel reads them.
//!
//! The kernel refuses a list silently (a line in dmesg at most), and each parameter in its own way:
//! `isolcpus=2-3n` isolates nothing, `rcu_nocbs=2-3n` offloads every CPU. `N` for the last CPU came
//! with 5.13 (lib/bitmap.c, 2c4885d24e64) and only as a capital letter.

use rtproof_host::{CpuList, Facts, facts::kernel::CommandLine};

use super::release::since;

/// A CPU list as given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// What the kernel takes it for.
    Cpus(CpuList),
    /// The kernel refuses it, and why.
    Refused(String),
    /// Unknown: `N` or `all`, and the number of CPUs is unknown.
    Unclear,
}

/// A parameter with a CPU list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuParameter {
    /// As written, e.g. `isolcpus=managed_irq,2-3`.
    pub written: String,
    /// Flags before the list; only `isolcpus` has them.
    pub flags: Vec<String>,
    pub list: List,
}

impl CpuParameter {
    /// The CPUs, where the kernel takes the list.
    pub(super) fn cpus(&self) -> Option<&CpuList> {
        match &self.list {
            List::Cpus(cpus) => Some(cpus),
            _ => None,
        }
    }

    /// Whether `isolcpus` takes its CPUs out of the scheduler's domains: the default without a
    /// flag that the kernel knows.
    pub(super) fn is_domain(&self) -> bool {
        let has = |name: &str| self.flags.iter().any(|flag| flag == name);
        has("domain") || !(has("nohz") || has("managed_irq"))
    }
}

/// What the command line says about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// Nothing, or the bare word.
    Not,
    /// One list, perhaps repeated.
    Once(CpuParameter),
    /// Different lists, as written.
    Conflicting(Vec<String>),
}

impl Given {
    /// What `key` is given as.
    pub(super) fn of(facts: &Facts, line: &CommandLine, key: &str) -> Self {
        let mut written: Vec<&str> = Vec::new();
        for value in line.all(key).flatten() {
            if !written.contains(&value) {
                written.push(value);
            }
        }
        match written.as_slice() {
            [] => Self::Not,
            [value] => Self::Once(take(facts, key, value)),
            values => Self::Conflicting(values.iter().map(|v| format!("{key}={v}")).collect()),
        }
    }

    /// The list, where there is one.
    pub(super) fn once(&self) -> Option<&CpuParameter> {
        match self {
            Self::Once(asked) => Some(asked),
            _ => None,
        }
    }

    /// Its CPUs, where the kernel takes them.
    pub(super) fn cpus(&self) -> Option<&CpuList> {
        self.once().and_then(CpuParameter::cpus)
    }
}

/// The CPUs that one parameter asks for, where the kernel takes the list.
pub(crate) fn asked(facts: &Facts, key: &str) -> Option<CpuList> {
    Given::of(facts, facts.kernel.cmdline.value()?, key).cpus().cloned()
}

fn take(facts: &Facts, key: &str, value: &str) -> CpuParameter {
    let mut rest = value;
    let mut flags = Vec::new();
    // kernel/sched/isolation.c: whatever begins with a letter is a flag, `N` too.
    while key == "isolcpus" && rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let (flag, after) = rest.split_once(',').unwrap_or((rest, ""));
        flags.push(flag.to_owned());
        rest = after;
    }
    let unknown = flags.iter().find(|flag| !is_word(flag));
    let list = match unknown {
        Some(flag) => List::Refused(format!("\"{flag}\" is no flag")),
        None if rest.is_empty() => List::Refused("no CPUs".into()),
        None => parse(facts, rest),
    };
    CpuParameter { written: format!("{key}={value}"), flags, list }
}

fn is_word(flag: &str) -> bool {
    flag.chars().all(|c| c.is_ascii_alphabetic() || c == '_')
}

fn parse(facts: &Facts, text: &str) -> List {
    if text.contains('n') {
        return List::Refused(match CpuList::parse(text, None) {
            Err(error) => error.to_string(),
            Ok(_) => format!("\"{text}\" is not a CPU list"),
        });
    }
    if text.contains('N') && since(facts, (5, 13)) == Some(false) {
        return List::Refused("N means the last CPU only from kernel 5.13".into());
    }
    let set = facts.cpus.possible.value().or_else(|| facts.cpus.online.value());
    let last = set.and_then(|cpus| cpus.as_slice().last().copied());
    match CpuList::parse(text, last) {
        Ok(cpus) => List::Cpus(cpus),
        Err(_)
            if last.is_none()
                && CpuList::parse(text, Some(rtproof_host::cpu_list::CPU_MAX)).is_ok() =>
        {
            List::Unclear
        }
        Err(error) => List::Refused(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cpus, good, set_cmdline};
    use rtproof_host::Reading;

    fn given(line: &str, key: &str) -> Given {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        Given::of(&facts, facts.kernel.cmdline.value().unwrap(), key)
    }

    fn list(text: &str) -> List {
        match given(text, "isolcpus") {
            Given::Once(asked) => asked.list,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lists_are_taken_as_the_kernel_takes_them() {
        assert_eq!(list("isolcpus=2-3"), List::Cpus(cpus(&[2, 3])));
        assert_eq!(list("isolcpus=managed_irq,domain,2-N"), List::Cpus(cpus(&[2, 3])));
        assert_eq!(list("isolcpus=1-3:1/2"), List::Cpus(cpus(&[1, 3])));
        for refused in ["2-3n", "2-n", "3-2", "N", "domain", "cpu2,3", "2..3"] {
            let list = list(&format!("isolcpus={refused}"));
            assert!(matches!(list, List::Refused(_)), "{refused}: {list:?}");
        }
    }

    #[test]
    fn flags_decide_whether_the_domain_is_left() {
        let domain = |line| given(line, "isolcpus").once().unwrap().is_domain();
        assert!(domain("isolcpus=2-3"));
        assert!(domain("isolcpus=nohz,domain,2-3"));
        assert!(domain("isolcpus=future_flag,2-3"));
        assert!(!domain("isolcpus=managed_irq,2-3"));
        assert!(!domain("isolcpus=nohz,2-3"));
    }

    #[test]
    fn n_is_refused_before_5_13_and_unclear_without_a_number_of_cpus() {
        let mut facts = good();
        facts.kernel.version = Reading::known("/proc/sys/kernel/osrelease", (5, 10));
        assert!(matches!(parse(&facts, "2-N"), List::Refused(_)));
        let mut facts = good();
        facts.cpus.possible = Reading::absent("/sys/devices/system/cpu/possible");
        facts.cpus.online = Reading::absent("/sys/devices/system/cpu/online");
        assert_eq!(parse(&facts, "2-N"), List::Unclear);
        assert_eq!(parse(&facts, "2-3"), List::Cpus(cpus(&[2, 3])));
    }

    #[test]
    fn a_key_given_twice_conflicts_only_with_another_value() {
        assert!(matches!(given("nohz_full=2 nohz_full=2", "nohz_full"), Given::Once(_)));
        let conflicting = given("nohz-full=2 nohz_full=3", "nohz_full");
        let written = vec!["nohz_full=2".into(), "nohz_full=3".into()];
        assert_eq!(conflicting, Given::Conflicting(written));
        assert_eq!(given("rcu_nocbs quiet", "rcu_nocbs"), Given::Not);
    }
}
