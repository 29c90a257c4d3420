//! The preemption model in force.
//!
//! Sources, best first: the build string and /sys/kernel/realtime for PREEMPT_RT; debugfs for what
//! CONFIG_PREEMPT_DYNAMIC is switched to now; else what it was booted with (command line, build
//! default), which holds unless debugfs was written since: the path then names the files that
//! were used. Nothing is guessed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use super::cmdline::CommandLine;
use crate::{Reading, Root, text::between};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// CONFIG_PREEMPT_RT: fully preemptible.
    Rt,
    /// Preemptible kernel (`preempt=full` or CONFIG_PREEMPT).
    Full,
    /// Lazy preemption (6.13 and later).
    Lazy,
    /// Voluntary preemption points only.
    Voluntary,
    /// No preemption in the kernel.
    None,
    /// CONFIG_PREEMPT_DYNAMIC and the mode in force cannot be read.
    DynamicUnknown,
}

const SWITCH: &str = "/sys/kernel/debug/sched/preempt";
const REALTIME: &str = "/sys/kernel/realtime";

type Config = Reading<BTreeMap<String, String>>;

pub(super) fn read(
    root: &Root,
    version: &Reading<(u32, u32)>,
    build: &Reading<String>,
    config: &Config,
    cmdline: &Reading<CommandLine>,
) -> Reading<Preemption> {
    let words = build.value().map_or(Built::Silent, |build| Built::from(build));
    if words == Built::Model(Preemption::Rt) {
        return Reading::known(&build.path, Preemption::Rt);
    }
    // The file went with the merge of PREEMPT_RT; its absence says nothing.
    if root.trimmed(REALTIME).value().is_some_and(|text| text == "1") {
        return Reading::known(REALTIME, Preemption::Rt);
    }
    let set = |name: &str| is_set(config, name);
    if set("PREEMPT_RT") || set("PREEMPT_RT_FULL") {
        return Reading::known(&config.path, Preemption::Rt);
    }
    if words == Built::Dynamic || set("PREEMPT_DYNAMIC") {
        return dynamic(root, version, config, cmdline);
    }
    if let Some(model) = configured(config) {
        return Reading::known(&config.path, model);
    }
    let paths = format!("{}, {REALTIME}, {}", build.path, config.path);
    match words {
        Built::Model(model) => Reading::known(&build.path, model),
        // From 6.13 a build that only says PREEMPT may be lazy or full.
        Built::Preempt if version.value().is_some_and(|&v| v < (6, 13)) => {
            Reading::known(&build.path, Preemption::Full)
        }
        // No word at all: voluntary or none, which only the configuration distinguishes.
        _ => Reading::absent(paths),
    }
}

/// What the build string says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Built {
    /// It names the model.
    Model(Preemption),
    Dynamic,
    /// PREEMPT and no more.
    Preempt,
    /// Nothing of preemption.
    Silent,
}

impl Built {
    /// Forms seen: `PREEMPT RT` (4.x), `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`, and as in kernel
    /// logs since 6.14 (kernel/sched/core.c, `preempt_model_str`) `PREEMPT(full)`,
    /// `PREEMPT_{RT,(lazy)}`, `PREEMPT_LAZY`.
    fn from(build: &str) -> Self {
        let words: Vec<&str> = build.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| word.starts_with("PREEMPT")) else {
            return Self::Silent;
        };
        let word = words[at];
        let rt = word.starts_with("PREEMPT_RT") || word.starts_with("PREEMPT_{RT");
        if rt || (word == "PREEMPT" && words.get(at + 1) == Some(&"RT")) {
            return Self::Model(Preemption::Rt);
        }
        if let Some(mode) = between(word, '(', ')') {
            // A list of modes is a choice that is not made here.
            return mode_named(mode).map_or(Self::Dynamic, Self::Model);
        }
        match word {
            "PREEMPT_DYNAMIC" => Self::Dynamic,
            "PREEMPT_LAZY" => Self::Model(Preemption::Lazy),
            _ => Self::Preempt,
        }
    }
}

fn dynamic(
    root: &Root,
    version: &Reading<(u32, u32)>,
    config: &Config,
    cmdline: &Reading<CommandLine>,
) -> Reading<Preemption> {
    let now = root.bracketed(SWITCH, '(', ')');
    if let Some(mode) = now.value() {
        return match mode_named(mode) {
            Some(model) => Reading::known(SWITCH, model),
            None => Reading::malformed(SWITCH, mode, "none, voluntary, full or lazy"),
        };
    }
    let booted = format!("{}, {}", cmdline.path, config.path);
    let all = format!("{SWITCH}, {booted}");
    // A line that cannot be read may hold preempt=.
    let Some(line) = cmdline.value() else {
        return Reading::known(all, Preemption::DynamicUnknown);
    };
    // Every preempt= is taken in turn, and one that is not accepted changes nothing.
    let requested = line.all("preempt").flatten().filter_map(mode_named);
    match requested.filter(|&mode| accepted(mode, version, config)).last() {
        Some(model) => Reading::known(&cmdline.path, model),
        None => match configured(config) {
            Some(model) => Reading::known(booted, model),
            None => Reading::known(all, Preemption::DynamicUnknown),
        },
    }
}

/// Whether the kernel takes a mode. Lazy came with 6.13; none and voluntary went with 7.0 where the
/// architecture has lazy (kernel/sched/core.c, `sched_dynamic_mode`).
fn accepted(mode: Preemption, version: &Reading<(u32, u32)>, config: &Config) -> bool {
    let Some(&version) = version.value() else {
        return true;
    };
    match mode {
        Preemption::Lazy => version >= (6, 13),
        Preemption::None | Preemption::Voluntary => {
            version < (7, 0)
                || (config.value().is_some() && !is_set(config, "ARCH_HAS_PREEMPT_LAZY"))
        }
        _ => true,
    }
}

fn is_set(config: &Config, name: &str) -> bool {
    config.value().is_some_and(|options| options.get(name).is_some_and(|value| value == "y"))
}

/// The model chosen at build time: for PREEMPT_DYNAMIC the one it boots with.
fn configured(config: &Config) -> Option<Preemption> {
    [
        ("PREEMPT_LAZY", Preemption::Lazy),
        ("PREEMPT", Preemption::Full),
        ("PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("PREEMPT_NONE", Preemption::None),
    ]
    .into_iter()
    .find_map(|(name, model)| is_set(config, name).then_some(model))
}

fn mode_named(mode: &str) -> Option<Preemption> {
    match mode {
        "full" => Some(Preemption::Full),
        "lazy" => Some(Preemption::Lazy),
        "voluntary" => Some(Preemption::Voluntary),
        "none" => Some(Preemption::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn reading(files: &[(&str, &str)]) -> Reading<Preemption> {
        super::super::Kernel::read(&Tree::new(files).root()).preemption
    }

    fn model(files: &[(&str, &str)]) -> Option<Preemption> {
        reading(files).value().copied()
    }

    const BUILD: &str = "proc/sys/kernel/version";
    const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.18.1\n");
    const DYNAMIC: (&str, &str) = (BUILD, "#1 SMP PREEMPT_DYNAMIC Mon\n");
    const CONFIG: &str = "boot/config-6.18.1";
    const CMDLINE: &str = "proc/cmdline";

    #[test]
    fn build_strings() {
        let built = |text: &str| model(&[(BUILD, text), ("proc/sys/kernel/osrelease", "5.10.1")]);
        assert_eq!(built("#1 SMP PREEMPT_RT Debian 6.1 (2025)"), Some(Preemption::Rt));
        assert_eq!(built("#1 SMP PREEMPT RT Tue"), Some(Preemption::Rt));
        assert_eq!(built("#1 SMP PREEMPT_{RT,(lazy)} Tue"), Some(Preemption::Rt));
        assert_eq!(built("#1 SMP PREEMPT(full) Tue"), Some(Preemption::Full));
        assert_eq!(built("#1 SMP PREEMPT Tue"), Some(Preemption::Full));
        assert_eq!(built("#1 SMP PREEMPT_LAZY Tue"), Some(Preemption::Lazy));
        assert_eq!(built("#1 SMP Tue"), None);
        assert_eq!(built("#1 SMP PREEMPT(none,lazy) x"), Some(Preemption::DynamicUnknown));
        assert_eq!(model(&[RELEASE, (BUILD, "#1 SMP PREEMPT Tue")]), None);
    }

    #[test]
    fn debian_kernels_as_they_booted_in_the_lab() {
        // That of 5.10 is written after the others: only its version and flavour were noted.
        // Release, `uname -v`, whether /sys/kernel/realtime was there.
        for (release, build, has_file, found) in [
            ("5.10.0-43-rt-amd64", "#1 SMP PREEMPT_RT Debian 5.10.251-1", true, Preemption::Rt),
            (
                "6.1.0-50-rt-amd64",
                "#1 SMP PREEMPT_RT Debian 6.1.176-1 (2026-07-02)",
                true,
                Preemption::Rt,
            ),
            (
                "6.12.95+deb12-rt-amd64",
                "#1 SMP PREEMPT_RT Debian 6.12.95-1~bpo12+1 (2026-07-05)",
                true,
                Preemption::Rt,
            ),
            (
                "7.2.12+deb13-rt-amd64",
                "#1 SMP PREEMPT_RT Debian 7.2.12-1~bpo13+1 (2026-11-04)",
                false,
                Preemption::Rt,
            ),
            (
                "6.1.0-50-amd64",
                "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)",
                false,
                Preemption::DynamicUnknown,
            ),
        ] {
            let mut files = vec![("proc/sys/kernel/osrelease", release), (BUILD, build)];
            if has_file {
                files.push(("sys/kernel/realtime", "1\n"));
            }
            let preemption = reading(&files);
            assert_eq!(preemption.value(), Some(&found), "{release}");
            let is_rt = found == Preemption::Rt;
            assert_eq!(preemption.path == "/proc/sys/kernel/version", is_rt, "{preemption:?}");
        }
    }

    #[test]
    fn rt_from_realtime_or_config() {
        assert_eq!(model(&[("sys/kernel/realtime", "1\n")]), Some(Preemption::Rt));
        assert!(reading(&[("sys/kernel/realtime", "0\n")]).is_absent());
        assert_eq!(model(&[RELEASE, (CONFIG, "CONFIG_PREEMPT_RT=y\n")]), Some(Preemption::Rt));
    }

    #[test]
    fn static_models_from_config() {
        let configured = |line: &str| model(&[RELEASE, (BUILD, "#1 SMP Tue"), (CONFIG, line)]);
        assert_eq!(configured("CONFIG_PREEMPT_VOLUNTARY=y"), Some(Preemption::Voluntary));
        assert_eq!(configured("CONFIG_PREEMPT_NONE=y"), Some(Preemption::None));
        assert_eq!(configured("CONFIG_PREEMPT=y"), Some(Preemption::Full));
        assert_eq!(configured("CONFIG_PREEMPT_LAZY=y"), Some(Preemption::Lazy));
        assert_eq!(configured("CONFIG_HZ=100"), None);
    }

    #[test]
    fn dynamic_now_then_boot_then_default_then_unknown() {
        let switch = ("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
        let config = (CONFIG, "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
        let lazy = (CMDLINE, "quiet preempt=full preempt=lazy preempt=odd");
        assert_eq!(model(&[RELEASE, DYNAMIC, switch, lazy, config]), Some(Preemption::Full));
        let booted = reading(&[RELEASE, DYNAMIC, lazy, config]);
        assert_eq!(booted, Reading::known("/proc/cmdline", Preemption::Lazy));
        let default = reading(&[RELEASE, DYNAMIC, (CMDLINE, "quiet"), config]);
        assert_eq!(default.value(), Some(&Preemption::None));
        assert_eq!(default.path, format!("/proc/cmdline, /{CONFIG}"));
        let unknown = Some(Preemption::DynamicUnknown);
        assert_eq!(model(&[RELEASE, DYNAMIC, (CMDLINE, "quiet")]), unknown);
        // The command line was not captured: it may hold preempt=.
        assert_eq!(model(&[RELEASE, DYNAMIC, config]), unknown);
        let odd = ("sys/kernel/debug/sched/preempt", "none (rapid)\n");
        assert!(reading(&[RELEASE, DYNAMIC, odd]).why_unknown().unwrap().contains("rapid"));
    }

    #[test]
    fn modes_that_the_kernel_does_not_take_change_nothing() {
        let at = |release: &str, line: &str, config: &str| {
            let path = format!("boot/config-{release}");
            let files = [
                ("proc/sys/kernel/osrelease", release),
                DYNAMIC,
                (CMDLINE, line),
                (path.as_str(), config),
            ];
            model(&files)
        };
        let lazy = "CONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_PREEMPT_LAZY=y\n";
        assert_eq!(at("7.0.1", "preempt=none", lazy), Some(Preemption::Lazy));
        assert_eq!(at("6.18.1", "preempt=none", lazy), Some(Preemption::None));
        let full = "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        assert_eq!(at("6.6.1", "preempt=lazy", full), Some(Preemption::Full));
    }
}
