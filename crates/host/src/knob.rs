//! What can be set and influences latency: where it is, how it is set and undone.
//!
//! One type for all of them, so that the knowledge exists once: facts read the places, checks judge
//! what was read, `tune` writes the same places. What is wanted of a knob, and for whom, is the
//! judge's (`rtproof_judge::checks`): a knob knows no profile.

/// One knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Identifier: short, kebab-case, for ever. Settings are kept under it.
    pub id: &'static str,
    /// Where it is.
    pub place: Place,
    /// What one value of it is about.
    pub scope: Scope,
    /// When a change takes effect.
    pub effect: Effect,
    /// How a change is taken back.
    pub undo: Undo,
    /// The boot parameter with the same effect, with `{}` for the value.
    pub boot: Option<&'static str>,
    /// What moves with it: knobs or paths whose values have to be saved, too.
    pub couples: &'static [&'static str],
    /// First kernel that has it.
    pub since: Option<(u32, u32)>,
    /// Machines that can have it.
    pub arch: Arch,
    /// Whether the value changes by itself: a counter or a measured value, which nobody sets.
    pub is_counter: bool,
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
    /// The machine.
    Machine,
    /// One CPU: only real-time CPUs are judged.
    Cpu,
    /// One interrupt.
    Irq,
    /// One task.
    Task,
    /// One device, queue, file system or link.
    Device,
    /// One unit.
    Unit,
}

/// When a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// At once.
    Runtime,
    /// At the next login or start of the application.
    Login,
    /// At the next boot.
    Boot,
    /// With another kernel.
    Build,
    /// In the firmware's set-up or the hypervisor.
    Firmware,
}

/// How a change is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Write the saved bytes back.
    WriteBack,
    /// Take out exactly the words that were added to the boot entry, and boot.
    BootEntry,
    /// Close the file: the value lasts as long as somebody holds it open.
    Close,
    /// Give the unit the state it had: enabled, active, masked.
    UnitState,
    /// Remove our file.
    RemoveFile,
    /// Boot the former kernel.
    FormerKernel,
    /// Set it back by hand.
    ByHand,
    /// Give the task the policy and affinity it had, if it is still the same task.
    TaskState,
}

impl Undo {
    /// In words.
    #[must_use]
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
pub enum Arch {
    /// All.
    Any,
    /// x86 only.
    X86,
    /// 64-bit Arm only.
    Arm64,
}

impl Arch {
    /// Whether a machine with this name (`uname -m`) can have it.
    #[must_use]
    pub fn has(self, machine: &str) -> bool {
        match self {
            Self::Any => true,
            Self::X86 => {
                machine == "x86_64" || (machine.starts_with('i') && machine.ends_with("86"))
            }
            Self::Arm64 => machine == "aarch64",
        }
    }
}

impl Knob {
    /// A file of the machine, changed at once, undone by writing back.
    #[must_use]
    pub const fn file(id: &'static str, pattern: &'static str) -> Self {
        Self::new(id, Place::File(pattern))
    }

    /// A file with a choice in brackets.
    #[must_use]
    pub const fn choice(id: &'static str, pattern: &'static str) -> Self {
        Self::new(id, Place::Choice(pattern))
    }

    /// A boot parameter.
    #[must_use]
    pub const fn parameter(id: &'static str, name: &'static str) -> Self {
        let knob = Self::new(id, Place::Parameter(name));
        Self { effect: Effect::Boot, undo: Undo::BootEntry, ..knob }
    }

    /// An option of the kernel's build.
    #[must_use]
    pub const fn build(id: &'static str, option: &'static str) -> Self {
        let knob = Self::new(id, Place::BuildOption(option));
        Self { effect: Effect::Build, undo: Undo::FormerKernel, ..knob }
    }

    /// systemd units.
    #[must_use]
    pub const fn units(id: &'static str, units: &'static [&'static str]) -> Self {
        let knob = Self::new(id, Place::Units(units));
        Self { scope: Scope::Unit, undo: Undo::UnitState, ..knob }
    }

    /// Something else, in words.
    #[must_use]
    pub const fn other(id: &'static str, what: &'static str) -> Self {
        Self { undo: Undo::ByHand, ..Self::new(id, Place::Other(what)) }
    }

    const fn new(id: &'static str, place: Place) -> Self {
        Self {
            id,
            place,
            scope: Scope::Machine,
            effect: Effect::Runtime,
            undo: Undo::WriteBack,
            boot: None,
            couples: &[],
            since: None,
            arch: Arch::Any,
            is_counter: false,
        }
    }

    /// Another scope.
    #[must_use]
    pub const fn of(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// With a boot parameter of the same effect.
    #[must_use]
    pub const fn or_boot(self, parameter: &'static str) -> Self {
        Self { boot: Some(parameter), ..self }
    }

    /// With what moves with it.
    #[must_use]
    pub const fn couples(self, couples: &'static [&'static str]) -> Self {
        Self { couples, ..self }
    }

    /// First kernel that has it.
    #[must_use]
    pub const fn since(self, major: u32, minor: u32) -> Self {
        Self { since: Some((major, minor)), ..self }
    }

    /// Machines that can have it.
    #[must_use]
    pub const fn on(self, arch: Arch) -> Self {
        Self { arch, ..self }
    }

    /// A value that changes by itself.
    #[must_use]
    pub const fn counter(self) -> Self {
        Self { is_counter: true, ..self }
    }

    /// Another time of effect.
    #[must_use]
    pub const fn at(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Another way back.
    #[must_use]
    pub const fn undone(self, undo: Undo) -> Self {
        Self { undo, ..self }
    }

    /// Patterns of its files in the order in which they are tried; none of other places.
    pub fn patterns(&self) -> impl Iterator<Item = &'static str> + use<> {
        let text = match self.place {
            Place::File(text) | Place::Choice(text) => text,
            _ => "",
        };
        text.split(" | ").filter(|pattern| !pattern.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_by_name() {
        assert!(Arch::X86.has("x86_64") && Arch::X86.has("i686") && !Arch::X86.has("aarch64"));
        assert!(Arch::Arm64.has("aarch64") && Arch::Any.has("riscv64"));
    }

    #[test]
    fn alternatives() {
        const KNOB: Knob = Knob::file("x", "/sys/a | /sys/b");
        assert_eq!(KNOB.patterns().collect::<Vec<_>>(), ["/sys/a", "/sys/b"]);
        assert_eq!(Knob::units("x", &["a.service"]).patterns().count(), 0);
    }
}
