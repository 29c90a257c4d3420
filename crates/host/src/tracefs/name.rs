//! Names of our instances: whose they are, so that what a killed run left behind can be
//! distinguished from what another run is using now.

use crate::Root;

const PREFIX: &str = "rtproof-";

/// `rtproof-PID-START` and, for further ones of the same process, `-N`. The start time of the
/// process (field 22 of /proc/PID/stat) distinguishes a process from a later one with the same
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) pid: u32,
    pub(super) start_ticks: u64,
    pub(super) number: u32,
}

impl Name {
    /// The first name of this process.
    pub(super) fn own(root: &Root) -> Self {
        let pid = std::process::id();
        Self { pid, start_ticks: start_ticks(root, pid).unwrap_or(0), number: 0 }
    }

    pub(super) fn text(self) -> String {
        let Self { pid, start_ticks, number } = self;
        let first = format!("{PREFIX}{pid}-{start_ticks}");
        if number == 0 { first } else { format!("{first}-{number}") }
    }

    /// `None` for names of other tools.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(PREFIX)?.split('-');
        let pid = parts.next()?.parse().ok()?;
        let start_ticks = parts.next()?.parse().ok()?;
        let number = parts.next().map_or(Some(0), |part| part.parse().ok())?;
        let name = Self { pid, start_ticks, number };
        // `+1` and `01` parse as well and are no names of ours.
        (name.text() == text).then_some(name)
    }

    /// Whether its process is gone. Where /proc does not say, it is not.
    pub(super) fn is_stale(self, root: &Root) -> bool {
        match root.read_text(&format!("/proc/{}/stat", self.pid)) {
            stat if stat.is_absent() => true,
            stat => stat
                .value()
                .and_then(|line| crate::facts::tasks::Stat::parse(line))
                .is_some_and(|stat| stat.start_ticks != self.start_ticks),
        }
    }
}

fn start_ticks(root: &Root, pid: u32) -> Option<u64> {
    let stat = root.read_text(&format!("/proc/{pid}/stat"));
    Some(crate::facts::tasks::Stat::parse(stat.value()?)?.start_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_form_is_ours() {
        let name = Name { pid: 12, start_ticks: 345, number: 0 };
        assert_eq!(Name::parse("rtproof-12-345"), Some(name));
        assert_eq!(Name::parse("rtproof-12-345-2"), Some(Name { number: 2, ..name }));
        for other in [
            "rtproof-12",
            "rtproof-12-",
            "rtproof-012-345",
            "rtproof-12-345-0",
            "rtproof-12-345-1-1",
            "rtproof-x-1",
            "trace-cmd",
            "rtproof-+12-345",
            "my-rtproof-12-345",
            "",
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let root = Root::live();
        let own = Name::own(&root);
        assert!(own.start_ticks > 0 && !own.is_stale(&root));
        assert!(
            Name { start_ticks: own.start_ticks + 1, ..own }.is_stale(&root),
            "another process"
        );
        assert!(Name { pid: u32::MAX, ..own }.is_stale(&root), "no such process");
    }
}
