//! A kernel of the distribution: installed by the package manager, removed again with exactly what
//! came with it. What the manager would do is asked first; what could not be undone is refused.

use crate::change::{AddedPackage, Change, PackageManager, package};
use crate::tune::apt::{ABSENT, INSTALLED, SETTINGS};
use crate::tune::kind::{ChangeError, Kind, Machine, Nature, Pace, Part, Rank, Side, State, Three};
use crate::tune::state::PackageState;

/// One package with all that it adds.
pub(super) struct Package<'a> {
    pub(super) manager: PackageManager,
    pub(super) name: &'a str,
    pub(super) adds: &'a [AddedPackage],
}

impl Package<'_> {
    /// Each package that is added, before, now, and whose it is now.
    fn sides<'t>(
        &'t self,
        three: Three<'t>,
    ) -> Option<impl Iterator<Item = (&'t AddedPackage, &'t PackageState, Side)>> {
        let (State::Packages { packages: before }, State::Packages { packages: now }) =
            (three.before, three.current)
        else {
            return None;
        };
        let is_complete = before.len() == self.adds.len() && now.len() == self.adds.len();
        let all = self.adds.iter().zip(before).zip(now);
        let of = move |((added, before), now): ((&'t _, &'t _), &'t _)| {
            (added, before, side(added, before, now, three.may_be_halfway()))
        };
        is_complete.then(|| all.map(of))
    }

    /// The version of the package itself.
    fn version(&self) -> &str {
        let own = self.adds.iter().find(|one| one.name == self.name);
        own.map_or("", |one| one.version.as_str())
    }
}

/// Whose state a package has.
fn side(added: &AddedPackage, before: &PackageState, now: &PackageState, halfway: bool) -> Side {
    let is_settings = |it: &PackageState| it.status == SETTINGS;
    match () {
        () if now == before || is_settings(before) && is_settings(now) => Side::Before,
        () if now.version == added.version => Side::Ours,
        // dpkg knows no version of what it has just begun to unpack.
        () => Side::ours_if(halfway && now.version.is_empty()),
    }
}

impl Kind for Package<'_> {
    fn target(&self) -> String {
        format!("package {}", self.name)
    }

    fn wanted(&self) -> String {
        self.version().to_owned()
    }

    fn after(&self) -> String {
        let own = format!("{} {}", self.name, self.version());
        let others = self.adds.iter().filter(|one| one.name != self.name);
        let others: Vec<String> =
            others.map(|one| format!("{} {}", one.name, one.version)).collect();
        match others.is_empty() {
            true => own,
            false => format!("{own}, with {}", others.join(", ")),
        }
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.name]
    }

    fn may_be_made(&self) -> Result<(), String> {
        package::may_be_added(self.name, self.adds)
    }

    fn nature(&self) -> Nature {
        // After files: the initial RAM disk that is made with a kernel holds some of them.
        let (part, rank) = (Part::Packages, Rank::BootLoader);
        Nature { part, rank, pace: Pace::Later, is_durable: true }
    }

    /// A kernel's files are there. What keeps the default of the boot menu waits for its removal.
    fn file(&self) -> Option<&str> {
        Some("/boot")
    }

    fn needs_writable(&self) -> Option<&str> {
        Some("/boot/vmlinuz")
    }

    fn named(&self, machine: &Machine<'_>) -> Result<Option<Change>, ChangeError> {
        let found = machine.would_add(self.name)?;
        if !self.adds.is_empty() && !found.is_empty() && found != self.adds {
            let found: Vec<String> =
                found.iter().map(|one| format!("{} {}", one.name, one.version)).collect();
            let why = format!("apt would now add {}; make the plan anew", found.join(", "));
            return Err(ChangeError::Refused { path: self.target(), why });
        }
        let adds = if self.adds.is_empty() { found } else { self.adds.to_vec() };
        Ok(Some(Change::Package { manager: self.manager, name: self.name.into(), adds }))
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        Ok(State::Packages { packages: machine.package_states(self.adds)? })
    }

    /// What adds nothing is there.
    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        let State::Packages { packages } = state else { return false };
        let is_in = |(added, now): (&AddedPackage, &PackageState)| {
            now.status == INSTALLED && now.version == added.version
        };
        packages.len() == self.adds.len() && self.adds.iter().zip(packages).all(is_in)
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.install(self.name, self.version())
    }

    fn pending(&self, _: &Machine<'_>) -> Option<String> {
        let release = self.adds.iter().find_map(AddedPackage::release)?;
        Some(format!("in force once {release} was booted"))
    }

    fn side(&self, _: &Machine<'_>, three: Three<'_>) -> Side {
        let Some(sides) = self.sides(three) else { return Side::Theirs };
        let sides: Vec<Side> = sides.map(|(_, _, side)| side).collect();
        let first = [Side::Theirs, Side::Ours].into_iter().find(|side| sides.contains(side));
        first.unwrap_or(Side::Before)
    }

    fn is_partly_ours(&self, three: Three<'_>) -> bool {
        self.sides(three).is_some_and(|mut sides| sides.any(|(_, _, side)| side == Side::Ours))
    }

    /// What is left by scripts that were killed, or by a full disk. While a package is there its
    /// scripts may be at work.
    fn clean(&self, machine: &Machine<'_>) -> Result<(), ChangeError> {
        if machine.packages.is_none() {
            return Ok(());
        }
        let states = machine.package_states(self.adds)?;
        for (added, _) in self.adds.iter().zip(states).filter(|(_, now)| now.status == ABSENT) {
            let Some(release) = added.release() else { continue };
            let initrd = format!("/boot/initrd.img-{release}.new");
            if matches!(machine.look(&initrd)?, State::File { .. }) {
                let removed = machine.gate.remove(&initrd);
                removed.map_err(|error| machine.refusal(&initrd, error))?;
            }
            // Where /lib is a link it is this one.
            let modules = format!("/usr/lib/modules/{release}");
            if machine.look(&modules)? == State::Folder {
                machine.remove_if_empty(&modules)?;
            }
        }
        Ok(())
    }

    fn restore(&self, machine: &Machine<'_>, three: Three<'_>) -> Result<(), ChangeError> {
        let Some(sides) = self.sides(three) else {
            return Err(ChangeError::not_expected(three.before, "the state of this change"));
        };
        let (mut purges, mut keeps) = (Vec::new(), Vec::new());
        for (added, before, side) in sides {
            match before.status.as_str() {
                _ if side != Side::Ours => {}
                ABSENT => purges.push(added),
                SETTINGS => keeps.push(added),
                _ => return Err(ChangeError::not_expected(three.before, "packages that are new")),
            }
        }
        let mut releases = purges.iter().chain(&keeps).filter_map(|one| one.release());
        if let Some(why) = releases.find_map(|release| runs(machine, release)) {
            return Err(ChangeError::Refused { path: self.target(), why });
        }
        machine.remove(&purges, &keeps)?;
        self.clean(machine)
    }
}

/// Why a kernel must not be removed: it runs, or it is unknown which one does.
fn runs(machine: &Machine<'_>, release: &str) -> Option<String> {
    let running = machine.root.trimmed("/proc/sys/kernel/osrelease");
    match running.value().map(String::as_str) {
        None | Some("") => {
            Some(format!("{}: unknown, so {release} is not removed: it may run", running.path))
        }
        Some(running) => (running == release).then(|| {
            format!(
                "{release} is running: boot another kernel, then undo again; nothing was removed"
            )
        }),
    }
}

#[cfg(test)]
pub(super) fn example() -> Change {
    let added = |name: &str| AddedPackage {
        name: name.into(),
        architecture: "amd64".into(),
        version: "6.1.192-2".into(),
    };
    Change::Package {
        manager: PackageManager::Apt,
        name: "linux-image-rt-amd64".into(),
        adds: vec![added("linux-image-6.1.0-56-rt-amd64"), added("linux-image-rt-amd64")],
    }
}
