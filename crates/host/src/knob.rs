//! What can be set and influences latency: where it is, how it is set, compared and undone.
//!
//! One type holds all of this knowledge. Facts read the places, checks judge the values, a remedy
//! names its knob, and the plan takes everything else from it: comparison, order, risk. Which value
//! a knob should have, and when, is up to the checks: a knob knows no profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arch::Family;

/// A setting of the machine: where it is, what it affects, how it is undone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Knob {
    /// Identifier: short, kebab-case, never changed. Settings are kept under it.
    pub id: &'static str,
    pub place: Place,
    /// What one value of it is about.
    pub scope: Scope,
    /// When a change takes effect.
    pub effect: EffectTime,
    /// How a change is undone. Only [`Undo::WriteBack`] lets a plan write the file of a knob.
    pub undo: Undo,
    /// The boot parameter with the same effect, with `{}` for the value.
    pub boot: Option<&'static str>,
    /// What moves with it: knobs or paths whose values have to be saved, too.
    pub couples: &'static [&'static str],
    /// First kernel that has it.
    pub since: Option<(u32, u32)>,
    /// Machines that can have it.
    pub arch: KnobArch,
    /// Whether the value changes by itself: a counter or a measured value, which is not set.
    pub is_counter: bool,
    /// Whether a typed fact holds its value: settings then leave it out.
    pub is_fact: bool,
    /// Which kind of change sets it.
    pub kind: KnobKind,
    /// How a value that is read back is compared; `None`: as numbers if the value is one.
    pub compare: Option<Compare>,
    /// When it is set, compared with other changes; `None`: the kind of change decides.
    pub rank: Option<Rank>,
    /// What can go wrong. A plan includes such a change only on request.
    pub risk: Option<&'static str>,
    /// How its value concerns the placement of work on CPUs.
    pub cpus: Option<CpuPlacement>,
    /// A purpose that several knobs serve, and the preference of this one: one of them is enough.
    pub purpose: Option<(&'static str, u8)>,
    /// Special rule for its value.
    pub rule: ValueRule,
}

/// Which kind of change sets a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// A value of a file.
    Value,
    /// The CPUs of an interrupt.
    Irq,
    /// A CPU that goes offline or comes online.
    Hotplug,
}

/// How a value that was read is compared with one that was written: the kernel shows many values
/// otherwise than they were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The same text but for white space at the ends.
    #[default]
    Text,
    /// The same number: `0x10` is `16`, `Y` is `1`, `N` is `0`.
    Number,
    /// The same set of CPUs: `0-2` is `0,1,2`.
    CpuList,
    /// The same mask of CPUs: `f` is `00000000,0000000f`.
    CpuMask,
    /// The choice in brackets: `always [never]` is `never`.
    Choice,
    /// The word is among those read: scheduler features, where writing `NO_X` shows `NO_X`.
    Word,
    /// Controllers of a group: writing `+cpuset` shows `cpuset`, writing `-cpuset` does not.
    Controller,
}

/// How the value of a knob concerns the placement of work on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPlacement {
    /// A boot parameter lists the CPUs that are set apart.
    Apart,
    /// A boot parameter lists the CPUs that are left for other work.
    Left,
    /// A file or property places work on CPUs.
    Placed,
}

/// Special rule for the value of a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRule {
    Plain,
    /// Only the first word is set. The file shows several, so the others are written as they are.
    FirstWord,
    /// An empty value is valid: it empties a list.
    MayBeEmpty,
    /// A parameter that may occur several times: its words add up.
    AddsUp,
    /// A parameter that acts before `rtproof.service` can: it is planned beside the runtime change.
    Early,
    /// A limit: of two, the wider one satisfies both.
    Limit,
}

/// When a change is made, compared with others, and why then. Undo goes backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Units stop: a daemon that still runs writes its values over ours.
    UnitsStop,
    /// CPUs come: what is set for a CPU that is offline is refused or lost.
    CpusCome,
    /// CPUs go: the kernel moves tasks and interrupts away, and drops the CPU from their masks.
    CpusGo,
    /// Frequency driver: another mode makes the policies anew, with default governor and limits.
    FrequencyDriver,
    /// Turbo: it moves the highest frequency that the limits may have.
    Turbo,
    /// Governor: a new governor takes the limits as they are, and fixes the energy preference.
    Governor,
    /// Frequency limits: the kernel refuses a minimum above the maximum (the plan decides which is
    /// first).
    FrequencyLimits,
    /// RT throttling: before the deadline servers: with a server at 0 the kernel refuses (EBUSY) a
    /// limit, which undo, going backwards, then writes after the server is back.
    RtThrottling,
    /// Deadline servers: after RT throttling, so that undo turns them on before it limits again.
    DeadlineServers,
    /// Huge pages: writing them computes vm.min_free_kbytes anew.
    HugePages,
    /// Both watchdogs: it switches both detectors at once, over what each was set to.
    Watchdogs,
    /// Control groups: folders: a group has to be there before its files.
    GroupFolders,
    /// Control groups, controllers: a group has the files of a controller once its parent passes it
    /// on.
    GroupControllers,
    /// Control groups: CPUs: a partition is made of the CPUs that its group has.
    GroupCpus,
    /// Control groups: partitions: its CPUs leave the other groups: affinities are set after that.
    GroupPartitions,
    /// Properties of units: the tasks of the unit are moved: those named one by one come after.
    UnitProperties,
    /// Default affinity of interrupts: an interrupt that is requested meanwhile gets it.
    IrqDefault,
    /// Interrupts: after the default; their threads follow them.
    Irqs,
    /// Workers of the kernel: before single threads: a mask moves the threads that it is about.
    Workers,
    /// Other values: they depend on nothing here.
    Values,
    /// Tasks: whatever moves them along has been done.
    Tasks,
    /// Files: they act at the next login, service or boot: nothing of now waits for them.
    Files,
    /// Boot loader and firmware: the entry that they name has to be there.
    BootLoader,
    /// Units start: their files have to be there.
    UnitsStart,
}

/// Where a knob is read and set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file that holds the value. `{cpu}` stands for the number of each CPU of the folder, `*`
    /// for any part of one name; each match is a value of its own. Alternatives, the first that
    /// is there, are separated by ` | `.
    File(&'static str),
    /// The same for a file that shows the choice among others in brackets:
    /// `always [madvise] never`, `none (full)`.
    Choice(&'static str),
    /// A parameter of the kernel's command line, by its name.
    Parameter(&'static str),
    /// A key of a configuration file or a property of a unit, by its name.
    Key(&'static str),
    /// An option of the kernel's build, without `CONFIG_`.
    BuildOption(&'static str),
    /// systemd units that do it, any of them.
    Units(&'static [&'static str]),
    /// Something that is neither a file nor a word: scheduling of a task, a register, firmware.
    Other(&'static str),
}

/// What one value is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Machine,
    /// One CPU: only real-time CPUs are judged.
    Cpu,
    Irq,
    Task,
    /// One device, queue, file system or link.
    Device,
    Unit,
}

/// When a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectTime {
    Runtime,
    /// At the next login or start of the application.
    Login,
    /// At the next boot.
    Boot,
    /// With a kernel that is built otherwise.
    Build,
    /// In the firmware's set-up or the hypervisor.
    Firmware,
}

/// How a change is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Write the saved bytes back.
    WriteBack,
    /// Take out exactly the words that were added to the boot entry, and boot.
    BootEntry,
    /// Close the file: the value lasts as long as a process holds it open.
    Close,
    /// Restore the state of the unit: enabled, active, masked.
    UnitState,
    RemoveFile,
    /// Boot the former kernel.
    FormerKernel,
    /// Set it back by hand.
    ByHand,
    /// Restore policy and affinity of the task, if it is still the same task.
    TaskState,
}

impl Undo {
    pub const fn text(self) -> &'static str {
        match self {
            Self::WriteBack => "write the saved value back",
            Self::BootEntry => "take the added words out of the boot entry, and boot",
            Self::Close => "close the file: the value lasts while it is held open",
            Self::UnitState => "give the unit back its state (enabled, active, masked)",
            Self::RemoveFile => "remove the added file, and log in or reload again",
            Self::FormerKernel => "boot the former kernel",
            Self::ByHand => "set it back by hand",
            Self::TaskState => "give the task back its policy, priority and affinity",
        }
    }
}

/// Machines that can have a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobArch {
    Any,
    /// x86 only.
    X86,
    /// 64-bit Arm only.
    Arm64,
}

impl KnobArch {
    /// Whether a machine with this name (`uname -m`) can have it.
    pub fn has(self, machine: &str) -> bool {
        match self {
            Self::Any => true,
            Self::X86 => Family::of(machine) == Family::X86,
            Self::Arm64 => Family::of(machine) == Family::Arm64,
        }
    }
}

impl Knob {
    /// A file of the machine, changed at once, undone by writing back.
    pub const fn file(id: &'static str, pattern: &'static str) -> Self {
        Self::new(id, Place::File(pattern))
    }

    /// A file with a choice in brackets.
    pub const fn choice(id: &'static str, pattern: &'static str) -> Self {
        Self::new(id, Place::Choice(pattern))
    }

    pub const fn parameter(id: &'static str, name: &'static str) -> Self {
        let knob = Self::new(id, Place::Parameter(name));
        Self { effect: EffectTime::Boot, undo: Undo::BootEntry, ..knob }
    }

    /// An option of the kernel's build.
    pub const fn build(id: &'static str, option: &'static str) -> Self {
        let knob = Self::new(id, Place::BuildOption(option));
        Self { effect: EffectTime::Build, undo: Undo::FormerKernel, ..knob }
    }

    pub const fn units(id: &'static str, units: &'static [&'static str]) -> Self {
        let knob = Self::new(id, Place::Units(units));
        Self { scope: Scope::Unit, undo: Undo::UnitState, ..knob }
    }

    /// Something else, in words.
    pub const fn other(id: &'static str, what: &'static str) -> Self {
        Self { undo: Undo::ByHand, ..Self::new(id, Place::Other(what)) }
    }

    /// A file of a control group: groups nest, so that no pattern names it.
    pub const fn group(id: &'static str, what: &'static str) -> Self {
        Self::new(id, Place::Other(what)).fact()
    }

    /// A key of a configuration file or a property of a unit.
    pub const fn key(name: &'static str) -> Self {
        Self { undo: Undo::RemoveFile, ..Self::new(name, Place::Key(name)) }
    }

    const fn new(id: &'static str, place: Place) -> Self {
        Self {
            id,
            place,
            scope: Scope::Machine,
            effect: EffectTime::Runtime,
            undo: Undo::WriteBack,
            boot: None,
            couples: &[],
            since: None,
            arch: KnobArch::Any,
            is_counter: false,
            is_fact: false,
            kind: KnobKind::Value,
            compare: None,
            rank: None,
            risk: None,
            cpus: None,
            purpose: None,
            rule: ValueRule::Plain,
        }
    }

    /// A mask of the kernel's workers.
    #[must_use]
    pub const fn workers(self) -> Self {
        self.compared(Compare::CpuMask).cpus(CpuPlacement::Placed).ranked(Rank::Workers)
    }

    /// Patterns of its files in the order in which they are tried; none of other places.
    pub fn patterns(&self) -> impl Iterator<Item = &'static str> + use<> {
        let text = match self.place {
            Place::File(text) | Place::Choice(text) => text,
            _ => "",
        };
        text.split(" | ").filter(|pattern| !pattern.is_empty())
    }

    /// What `mark` (`{cpu}`, `*`) stands for in one of its paths.
    pub fn part_of<'a>(&self, mark: &str, path: &'a str) -> Option<&'a str> {
        self.patterns().find_map(|pattern| {
            let is_alike = path.split('/').count() == pattern.split('/').count();
            let mut parts = pattern.split('/').zip(path.split('/')).filter(|_| is_alike);
            parts.find_map(|(part, name)| {
                let (before, after) = part.split_once(mark)?;
                name.strip_prefix(before)?.strip_suffix(after)
            })
        })
    }

    /// The CPU that one of its paths concerns.
    pub fn cpu_of(&self, path: &str) -> Option<u32> {
        self.part_of("{cpu}", path)?.parse().ok()
    }
}

/// Methods that set one field each.
macro_rules! builders {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) $field:ident: $value:expr;)*) => {
        impl Knob {
            $($(#[$doc])* #[must_use]
            pub const fn $name(self, $($arg: $type),*) -> Self {
                Self { $field: $value, ..self }
            })*
        }
    };
}

builders! {
    of(scope: Scope) scope: scope;
    /// With a boot parameter of the same effect.
    or_boot(parameter: &'static str) boot: Some(parameter);
    /// With what moves with it.
    couples(couples: &'static [&'static str]) couples: couples;
    /// First kernel that has it.
    since(major: u32, minor: u32) since: Some((major, minor));
    /// Machines that can have it.
    on(arch: KnobArch) arch: arch;
    /// A value that changes by itself.
    counter() is_counter: true;
    /// Another time of effect.
    at(effect: EffectTime) effect: effect;
    /// A value that a typed fact holds.
    fact() is_fact: true;
    /// Set by another kind of change.
    kind(kind: KnobKind) kind: kind;
    /// Compared in this form.
    compared(compare: Compare) compare: Some(compare);
    /// Set at this point of the order.
    ranked(rank: Rank) rank: Some(rank);
    risky(risk: &'static str) risk: Some(risk);
    /// Concerns the placement of work on CPUs.
    cpus(cpus: CpuPlacement) cpus: Some(cpus);
    /// One of several knobs for a purpose; the lowest preference is chosen.
    serves(purpose: &'static str, preference: u8) purpose: Some((purpose, preference));
    /// With a special rule.
    rule(rule: ValueRule) rule: rule;
    /// Another way to undo it.
    undone(undo: Undo) undo: undo;
}

/// Shows the id: a remedy that is printed names its knob, not a whole table.
impl std::fmt::Debug for Knob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_by_name() {
        assert!(
            KnobArch::X86.has("x86_64")
                && KnobArch::X86.has("i686")
                && !KnobArch::X86.has("aarch64")
        );
        assert!(KnobArch::Arm64.has("aarch64") && KnobArch::Any.has("riscv64"));
    }

    #[test]
    fn alternatives() {
        const KNOB: Knob = Knob::file("x", "/sys/a | /sys/b");
        assert_eq!(KNOB.patterns().collect::<Vec<_>>(), ["/sys/a", "/sys/b"]);
        assert_eq!(Knob::units("x", &["a.service"]).patterns().count(), 0);
    }

    #[test]
    fn the_cpu_of_a_path() {
        const KNOB: Knob = Knob::file("x", "/sys/cpu{cpu}/state*/disable");
        assert_eq!(KNOB.cpu_of("/sys/cpu12/state3/disable"), Some(12));
        assert_eq!(KNOB.cpu_of("/sys/cpufreq/state3/disable"), None);
        assert_eq!(KNOB.cpu_of("/sys/cpu12/online"), None);
    }
}
