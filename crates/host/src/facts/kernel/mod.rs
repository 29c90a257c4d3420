//! The kernel: version, preemption model, build configuration, command line.

mod cmdline;
mod config;
mod preemption;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    cmdline::{CommandLine, Parameter},
    preemption::Preemption,
};
use crate::{Reading, Root};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Release, as `uname -r`.
    pub release: Reading<String>,
    /// (major, minor) of the release: what "since kernel 6.12" is compared with.
    pub version: Reading<(u32, u32)>,
    /// Build, as `uname -v`; names PREEMPT_RT where the kernel has it.
    pub build: Reading<String>,
    /// Machine, as `uname -m`.
    pub arch: Reading<String>,
    /// Preemption model now in force.
    pub preemption: Reading<Preemption>,
    /// Build configuration: `CONFIG_` names without the prefix. Options that are not set are
    /// absent.
    pub config: Reading<BTreeMap<String, String>>,
    /// Boot command line, in order.
    pub cmdline: Reading<CommandLine>,
    /// Lockdown mode: none, integrity or confidentiality.
    pub lockdown: Reading<String>,
    /// Taint mask (/proc/sys/kernel/tainted).
    pub tainted: Reading<u64>,
}

impl Kernel {
    /// Reads the kernel's facts. The release and build come from files, so that a captured machine
    /// has its own; only for the live machine, where /proc is missing, uname(2) is used.
    pub fn read(root: &Root) -> Self {
        let proc_version = root.trimmed("/proc/version");
        let release = root
            .trimmed("/proc/sys/kernel/osrelease")
            .or_else(|| proc_version.clone().parsed("Linux version ...", release_of));
        let build = root
            .trimmed("/proc/sys/kernel/version")
            .or_else(|| proc_version.parsed("... #1 SMP ...", build_of));
        let uname = rustix::system::uname();
        let release = or_called(root, release, "uname -r", &uname.release().to_string_lossy());
        let build = or_called(root, build, "uname -v", &uname.version().to_string_lossy());
        let version = release.clone().parsed("a release like 6.12.1", version_of);
        let config = config::read(root, &release);
        let cmdline = root.trimmed("/proc/cmdline").map(|text| CommandLine::parse(&text));
        let preemption = preemption::read(root, &version, &build, &config, &cmdline);
        Self {
            release,
            version,
            build,
            arch: arch(root),
            preemption,
            config,
            cmdline,
            lockdown: root.bracketed("/sys/kernel/security/lockdown", '[', ']'),
            tainted: root.number("/proc/sys/kernel/tainted", "a number"),
        }
    }
}

/// /proc/sys/kernel/arch came with 6.1; before, only uname(2) has it, and only for the live
/// machine.
fn arch(root: &Root) -> Reading<String> {
    let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
    or_called(root, root.trimmed("/proc/sys/kernel/arch"), "uname -m", &machine)
}

/// What the running kernel answers to a call, where no file of the live machine has it.
fn or_called(root: &Root, read: Reading<String>, call: &str, answer: &str) -> Reading<String> {
    if read.value().is_some() {
        return read;
    }
    match root.call(call, || Ok(answer.to_owned())) {
        Some(called) => read.or_else(|| called),
        None => read,
    }
}

/// `6.18.44` of `Linux version 6.18.44 (user@host) (gcc ...) #1 SMP ...`.
fn release_of(version: &str) -> Option<String> {
    version.strip_prefix("Linux version ")?.split(' ').next().map(str::to_owned)
}

/// `#1 SMP ...` of the same.
fn build_of(version: &str) -> Option<String> {
    version.rfind(" #").map(|at| version[at + 1..].to_owned())
}

/// (6, 12) of `6.12.0-rc1`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn release_and_build_come_from_proc_version_where_sys_is_not_captured() {
        let tree = Tree::new(&[(
            "proc/version",
            "Linux version 5.4.140-rt64 (u@h) (gcc (Debian #2) 8.3.0) #1 SMP PREEMPT_RT Tue Aug 17\n",
        )]);
        let kernel = Kernel::read(&tree.root());
        assert_eq!(kernel.release, Reading::known("/proc/version", "5.4.140-rt64".into()));
        assert_eq!(kernel.version.value(), Some(&(5, 4)));
        assert_eq!(kernel.build.value().unwrap(), "#1 SMP PREEMPT_RT Tue Aug 17");
        assert_eq!(kernel.preemption.value(), Some(&Preemption::Rt));
        assert!(kernel.arch.is_absent() && kernel.cmdline.is_absent() && kernel.config.is_absent());
        assert!(kernel.lockdown.is_absent() && kernel.tainted.is_absent());
    }

    #[test]
    fn the_call_tells_of_the_live_machine_alone() {
        let called = or_called(&Root::live(), Reading::absent("p"), "uname -r", "6.1");
        assert_eq!(called, Reading::known("uname -r", "6.1".into()));
        let captured = or_called(&Tree::new(&[]).root(), Reading::absent("p"), "uname -r", "6.1");
        assert_eq!(captured, Reading::absent("p"));
    }

    #[test]
    fn odd_contents_are_malformed() {
        let tree = Tree::new(&[
            ("proc/version", "BSD"),
            ("sys/kernel/security/lockdown", "none"),
            ("proc/sys/kernel/tainted", "x"),
        ]);
        let kernel = Kernel::read(&tree.root());
        for why in [
            kernel.release.why_unknown(),
            kernel.version.why_unknown(),
            kernel.build.why_unknown(),
            kernel.lockdown.why_unknown(),
            kernel.tainted.why_unknown(),
        ] {
            assert!(why.unwrap().starts_with("holds"));
        }
        assert_eq!(version_of("7.0.0-rc1+"), Some((7, 0)));
        assert_eq!(version_of("7"), None);
    }
}
