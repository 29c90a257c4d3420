//! A kernel of the distribution: installed by the package manager, removed again with exactly what
//! came with it. What the manager would do is asked first; what could not be undone is refused.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use super::unit::ToolAnswer;
use crate::change::{AddedPackage, Change, PackageManager};
use crate::tune::{PackageState, held};
use crate::{change, child, trusted};

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
        states: StateComparison<'t>,
    ) -> Option<impl Iterator<Item = (&'t AddedPackage, &'t PackageState, Owner)>> {
        let (State::Packages { packages: before }, State::Packages { packages: now }) =
            (states.before, states.current)
        else {
            return None;
        };
        let is_complete = before.len() == self.adds.len() && now.len() == self.adds.len();
        let all = self.adds.iter().zip(before).zip(now);
        let of = move |((added, before), now): ((&'t _, &'t _), &'t _)| {
            (added, before, side(added, before, now, states.may_be_halfway()))
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
fn side(added: &AddedPackage, before: &PackageState, now: &PackageState, halfway: bool) -> Owner {
    let is_settings = |it: &PackageState| it.status == SETTINGS;
    match () {
        () if now == before || is_settings(before) && is_settings(now) => Owner::Before,
        () if now.version == added.version => Owner::Ours,
        // dpkg knows no version of what it has just begun to unpack.
        () => Owner::ours_if(halfway && now.version.is_empty()),
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
        change::may_be_added(self.name, self.adds)
    }

    fn nature(&self) -> ChangeProperties {
        // After files: the initial RAM disk that is made with a kernel holds some of them.
        let (part, rank) = (MachinePart::Packages, Rank::BootLoader);
        ChangeProperties { part, rank, pace: Switching::Later, is_durable: true }
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

    /// A change that adds nothing is done.
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

    fn side(&self, _: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        let Some(sides) = self.sides(states) else { return Owner::Theirs };
        let sides: Vec<Owner> = sides.map(|(_, _, side)| side).collect();
        let first = [Owner::Theirs, Owner::Ours].into_iter().find(|side| sides.contains(side));
        first.unwrap_or(Owner::Before)
    }

    fn is_partly_ours(&self, states: StateComparison<'_>) -> bool {
        self.sides(states).is_some_and(|mut sides| sides.any(|(_, _, side)| side == Owner::Ours))
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
            if matches!(machine.state_at(&initrd)?, State::File { .. }) {
                let removed = machine.gate.remove(&initrd);
                removed.map_err(|error| machine.refusal(&initrd, error))?;
            }
            // If /lib is a link, the files are here.
            let modules = format!("/usr/lib/modules/{release}");
            if machine.state_at(&modules)? == State::Folder {
                machine.remove_if_empty(&modules)?;
            }
        }
        Ok(())
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        let Some(sides) = self.sides(states) else {
            return Err(ChangeError::not_expected(states.before, "the state of this change"));
        };
        let (mut purges, mut keeps) = (Vec::new(), Vec::new());
        for (added, before, side) in sides {
            match before.status.as_str() {
                _ if side != Owner::Ours => {}
                ABSENT => purges.push(added),
                SETTINGS => keeps.push(added),
                _ => return Err(ChangeError::not_expected(states.before, "packages that are new")),
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

// What a machine asks of apt and dpkg: what an installation would add, how packages are now, to
// install, and to remove exactly those that came with it.

/// Options: nothing else is removed or upgraded, and no lock is waited for.
const INSTALL: &[&str] = &[
    "-y",
    "-q",
    "--no-remove",
    "--no-upgrade",
    "--no-install-recommends",
    "-o",
    "DPkg::Lock::Timeout=0",
    "-o",
    "Dpkg::Options::=--force-confold",
];

const REMOVE: &[&str] = &["-y", "-q", "-o", "DPkg::Lock::Timeout=0"];

/// Folder of dpkg's pending operations.
const UPDATES: &str = "/var/lib/dpkg/updates";

/// Lines of a complaint that are shown.
const LINES_MAX: usize = 4;

/// Not there, nor its settings.
pub(crate) const ABSENT: &str = "not-installed";

/// Removed, its settings kept.
pub(crate) const SETTINGS: &str = "config-files";

pub(crate) const INSTALLED: &str = "installed";

/// One line of a simulation.
#[derive(Debug, PartialEq, Eq)]
enum Act<'a> {
    Adds(AddedPackage),
    Upgrades(&'a str),
    Removes(&'a str),
}

impl Machine<'_> {
    fn packages(&self, what: &str) -> Result<&dyn Packages, ChangeError> {
        self.packages.ok_or_else(|| {
            let why = "packages are installed and removed on the machine itself alone: in a \
                       folder the manager would run the folder's own programs as root";
            refused(what, why.into())
        })
    }

    /// Asks, and refuses what is not answered.
    fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, ChangeError> {
        let words = words(program, arguments);
        let answer = self.packages(&words)?.ask(program, arguments);
        let answer = answer.map_err(|error| unstarted(&words, &error))?;
        match answer.success {
            true => Ok(answer.text),
            false => Err(refused(&words, complaint(&answer))),
        }
    }

    /// The packages that an installation adds; nothing is fetched. One that also upgrades or
    /// removes packages is refused: it could not be undone exactly.
    fn would_add(&self, name: &str) -> Result<Vec<AddedPackage>, ChangeError> {
        let arguments = ["-s", "-q", "--no-install-recommends", "install", name];
        let text = self.ask("apt-get", &arguments)?;
        let (mut adds, mut others) = (Vec::new(), Vec::new());
        for act in acts(&text) {
            match act.map_err(|line| unexpected(&words("apt-get", &arguments), line))? {
                Act::Adds(package) => adds.push(package),
                Act::Upgrades(name) => others.push(format!("upgrade {name}")),
                Act::Removes(name) => others.push(format!("remove {name}")),
            }
        }
        if others.is_empty() {
            return Ok(adds);
        }
        let more = others.len().saturating_sub(LINES_MAX);
        let mut shown = others[..others.len() - more].join(", ");
        if more > 0 {
            shown += &format!(" and {more} more");
        }
        let why = format!(
            "apt would also {shown}, which cannot be undone exactly: bring the machine up to date \
             first (apt-get upgrade), or install it by hand"
        );
        Err(refused(&format!("package {name}"), why))
    }

    /// How packages are now.
    fn package_states(&self, adds: &[AddedPackage]) -> Result<Vec<PackageState>, ChangeError> {
        if adds.is_empty() {
            return Ok(Vec::new());
        }
        let format = "-f=${Package}\\t${Architecture}\\t${db:Status-Status}\\t${Version}\\n";
        let mut arguments = vec!["-W", format];
        arguments.extend(adds.iter().map(|one| one.name.as_str()));
        let words = words("dpkg-query", &["-W", "..."]);
        let answer = self.packages(&words)?.ask("dpkg-query", &arguments);
        let answer = answer.map_err(|error| unstarted(&words, &error))?;
        // It fails when one of them is unknown to it, but shows the others.
        let is_unknown = |line: &str| line.starts_with("dpkg-query: no packages found matching ");
        if !answer.success && !answer.complaint.lines().all(is_unknown) {
            return Err(refused(&words, complaint(&answer)));
        }
        let mut states: Vec<PackageState> = Vec::new();
        for one in adds {
            let found = answer.text.lines().find_map(|line| {
                let mut fields = line.split('\t');
                let is_it = fields.next() == Some(one.name.as_str())
                    && fields.next() == Some(one.architecture.as_str());
                is_it.then(|| (fields.next(), fields.next()))
            });
            let (status, version) = match found {
                None => (ABSENT, ""),
                Some((Some(status), Some(version))) if !status.is_empty() => (status, version),
                Some(_) => return Err(unexpected(&words, &answer.text)),
            };
            let version = if status == ABSENT { "" } else { version };
            let (name, status) = (one.name.clone(), status.to_owned());
            states.push(PackageState { name, status, version: version.into() });
        }
        Ok(states)
    }

    /// Fetches, then installs. Where that stops halfway it is an error, and
    /// [`Self::package_states`] shows what is installed of it.
    pub(super) fn install(&self, name: &str, version: &str) -> Result<(), ChangeError> {
        let audit = self.ask("dpkg", &["--audit"])?;
        if !audit.trim().is_empty() || self.is_interrupted() {
            let why = "dpkg has not come to its end with other packages: run dpkg --configure -a \
                       first";
            return Err(refused("dpkg --audit", why.into()));
        }
        let package = format!("{name}={version}");
        let fetch = [INSTALL, &["--download-only", "install", &package]].concat();
        self.work("apt-get", &fetch, Interruption::Ends)?;
        let install = [INSTALL, &["install", &package]].concat();
        self.work("apt-get", &install, Interruption::Waits)
    }

    /// Removes packages with their settings; of those of `keeps` the settings, which were there
    /// before, stay.
    pub(crate) fn remove(
        &self,
        purges: &[&AddedPackage],
        keeps: &[&AddedPackage],
    ) -> Result<(), ChangeError> {
        let all: Vec<&AddedPackage> = purges.iter().chain(keeps).copied().collect();
        let names = |of: &[&AddedPackage]| of.iter().map(|it| it.qualified()).collect::<Vec<_>>();
        let (all_names, purged) = (names(&all), names(purges));
        let verb = if keeps.is_empty() { "purge" } else { "remove" };
        self.removes_only(&all, &all_names, verb)?;
        let arguments = |front: &[&'static str], names: &[String]| -> Vec<String> {
            front.iter().map(ToString::to_string).chain(names.iter().cloned()).collect()
        };
        let run = |program: &str, arguments: &[String]| {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.work(program, &arguments, Interruption::Waits)
        };
        let first = run("apt-get", &arguments(&[REMOVE, &[verb]].concat(), &all_names));
        let first = match first {
            // apt does nothing while dpkg is half done; dpkg itself takes its own work up.
            Err(_) if self.is_interrupted() || !self.is_whole() => {
                let force = ["--force-remove-reinstreq", "--remove"];
                run("dpkg", &arguments(&force, &all_names))
                    .and_then(|()| run("dpkg", &arguments(&["--purge"], &purged)))
            }
            first => first,
        };
        first?;
        match keeps.is_empty() || purges.is_empty() {
            true => Ok(()),
            false => run("apt-get", &arguments(&[REMOVE, &["purge"]].concat(), &purged)),
        }
    }

    /// Looks whether the removal takes nothing else along.
    fn removes_only(
        &self,
        all: &[&AddedPackage],
        names: &[String],
        verb: &str,
    ) -> Result<(), ChangeError> {
        let mut arguments = vec!["-s", "-q", verb];
        arguments.extend(names.iter().map(String::as_str));
        let text = self.ask("apt-get", &arguments)?;
        let mut others: Vec<String> = Vec::new();
        for act in acts(&text) {
            let is_ours = |name: &str| {
                let name = name.split(':').next().unwrap_or_default();
                all.iter().any(|one| one.name == name)
            };
            match act.map_err(|line| unexpected(&words("apt-get", &arguments), line))? {
                Act::Removes(name) if is_ours(name) => {}
                Act::Removes(name) | Act::Upgrades(name) => others.push(name.into()),
                Act::Adds(package) => others.push(package.name),
            }
        }
        if others.is_empty() {
            return Ok(());
        }
        let why = format!(
            "packages depend on it by now: {}; nothing was removed: remove those first, or keep \
             it",
            others.join(", ")
        );
        Err(refused(&words("apt-get", &[verb, "..."]), why))
    }

    fn is_interrupted(&self) -> bool {
        let names = self.root.list_dir(UPDATES);
        names.value().is_some_and(|names| !names.is_empty())
    }

    fn is_whole(&self) -> bool {
        self.ask("dpkg", &["--audit"]).is_ok_and(|text| text.trim().is_empty())
    }

    fn work(
        &self,
        program: &str,
        arguments: &[&str],
        interruption: Interruption,
    ) -> Result<(), ChangeError> {
        let words = words(program, arguments);
        self.unit_step(&words)?;
        let show = |line: &str| self.show.iter().for_each(|show| show(line));
        let answer = self.packages(&words)?.work(program, arguments, interruption, &show);
        let answer = answer.map_err(|error| unstarted(&words, &error))?;
        match answer.success {
            true => Ok(()),
            false => Err(refused(&words, complaint(&answer))),
        }
    }
}

/// The lines of a simulation that say what is done; an error is a line that is not understood.
fn acts(text: &str) -> impl Iterator<Item = Result<Act<'_>, &str>> {
    text.lines().filter_map(|line| {
        let (verb, rest) = line.split_once(' ')?;
        let name = rest.split_whitespace().next();
        match (verb, name) {
            ("Inst", Some(name)) => Some(added(name, rest).ok_or(line)),
            ("Remv" | "Purg", Some(name)) => Some(Ok(Act::Removes(name))),
            ("Inst" | "Remv" | "Purg", None) => Some(Err(line)),
            _ => None,
        }
    })
}

/// `NAME [OLD] (VERSION ORIGIN [ARCHITECTURE])`; without an old version it is new.
fn added<'a>(name: &'a str, rest: &'a str) -> Option<Act<'a>> {
    let (before, inside) = rest.split_once('(')?;
    if before.contains('[') {
        return Some(Act::Upgrades(name));
    }
    let (inside, _) = inside.split_once(')')?;
    let version = inside.split_whitespace().next()?.to_owned();
    let architecture = inside.rsplit_once('[')?.1.strip_suffix(']')?.to_owned();
    let name = name.split(':').next().unwrap_or(name).to_owned();
    Some(Act::Adds(AddedPackage { name, architecture, version }))
}

fn words(program: &str, arguments: &[&str]) -> String {
    let is_plain = |word: &&&str| !word.starts_with('-') && !word.contains("::");
    let plain: Vec<&str> = arguments.iter().filter(is_plain).copied().collect();
    format!("{program} {}", plain.join(" "))
}

fn refused(what: &str, why: String) -> ChangeError {
    ChangeError::Refused { path: what.to_owned(), why }
}

fn unstarted(what: &str, error: &io::Error) -> ChangeError {
    refused(what, error.to_string())
}

fn unexpected(what: &str, found: &str) -> ChangeError {
    let found = found.chars().take(80).collect();
    ChangeError::Unexpected { path: what.into(), found, expected: "apt's own form".into() }
}

/// What apt or dpkg complained of, and the next step where that is known.
fn complaint(answer: &ToolAnswer) -> String {
    let is_error = |line: &&str| {
        ["E: ", "dpkg: error", "N: "].iter().any(|front| line.starts_with(front))
            || line.contains("No space left on device")
    };
    let lines = || answer.complaint.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut errors: Vec<&str> = lines().filter(is_error).collect();
    if errors.is_empty() {
        errors = lines().collect();
    }
    let errors = errors[errors.len().saturating_sub(LINES_MAX)..].join("; ");
    let next = match () {
        () if errors.contains("Could not get lock") || errors.contains("was locked by") => {
            "; another program works with packages: wait until it has ended, then try again"
        }
        () if errors.contains("No space left") || errors.contains("enough free space") => {
            "; make room, then try again"
        }
        () if errors.contains("dpkg was interrupted") => "; run dpkg --configure -a first",
        () if errors.contains("Unable to fetch") || errors.contains("Failed to fetch") => {
            "; see whether the network is there; lists that are too old: apt-get update"
        }
        () => "",
    };
    format!("{errors}{next}")
}

// The package manager's programs, or a test double: short questions whose time is bounded, and
// work whose output is shown as it comes.

/// Time that a question may take; a simulation of apt takes one to three seconds.
const QUESTION_MAX: Duration = Duration::from_secs(60);

/// Interval between reads of the output.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// For the maintainers' scripts and hooks of apt: no one can answer, and no service is
/// restarted (needrestart does on Ubuntu).
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("DEBIAN_PRIORITY", "critical"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("NEEDRESTART_MODE", "l"),
];

/// Whether what runs ends with a Ctrl-C on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// It does: a download.
    Ends,
    /// It comes to its end first: what dpkg has begun.
    Waits,
}

/// What runs the programs of a package manager, or a test double.
pub(crate) trait Packages {
    /// Asks. It changes nothing.
    ///
    /// # Errors
    /// It cannot be run, or takes too long.
    fn ask(&self, program: &str, arguments: &[&str]) -> io::Result<ToolAnswer>;

    /// Lets it work; each line of its output goes to `show`. [`ToolAnswer::complaint`] has all.
    fn work(
        &self,
        program: &str,
        arguments: &[&str],
        interruption: Interruption,
        show: &dyn Fn(&str),
    ) -> io::Result<ToolAnswer>;
}

/// The machine's own programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackageTools;

impl Packages for PackageTools {
    fn ask(&self, program: &str, arguments: &[&str]) -> io::Result<ToolAnswer> {
        let output = child::output_within(&mut command(program, arguments)?, QUESTION_MAX)?;
        Ok(answer(output.status, text(&output.stdout), &text(&output.stderr)))
    }

    fn work(
        &self,
        program: &str,
        arguments: &[&str],
        interruption: Interruption,
        show: &dyn Fn(&str),
    ) -> io::Result<ToolAnswer> {
        // Memory, not a pipe: if rtproof is killed, dpkg goes on writing, and comes to its end.
        let output = trusted::memory()?;
        let mut command = command(program, arguments)?;
        command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        if interruption == Interruption::Waits {
            command.process_group(0);
        }
        // Packages that are half installed are worse than changes that stay a while longer.
        let _busy = held::Busy::begin();
        let mut child = command.spawn()?;
        let (mut written, mut shown) = (String::new(), 0);
        loop {
            let ended = child.try_wait()?;
            written += &text(&trusted::written(&output, written.len() as u64)?);
            let end = match ended {
                Some(_) => written.len(),
                None => written.rfind('\n').map_or(0, |at| at + 1),
            };
            written[shown..end].lines().for_each(show);
            shown = end;
            match ended {
                Some(status) => return Ok(answer(status, String::new(), &written)),
                None => thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

fn command(program: &str, arguments: &[&str]) -> io::Result<Command> {
    let mut command = trusted::command(program)?;
    command.args(arguments).envs(ENVIRONMENT.iter().copied()).stdin(Stdio::null());
    Ok(command)
}

/// Text with one byte for each byte: what was shown is counted.
fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { '?' }).collect()
}

fn answer(status: ExitStatus, text: String, complaint: &str) -> ToolAnswer {
    let complaint = match (status.code(), complaint.trim()) {
        (None, written) => format!("{written}\nended by {status}"),
        (_, written) => written.to_owned(),
    };
    ToolAnswer { success: status.success(), text, complaint }
}

#[cfg(test)]
mod apt_tests {
    use super::*;

    #[test]
    fn a_simulation_is_read_to_the_line() {
        let text = "NOTE: This is only a simulation!\nReading package lists...\n\
            Inst linux-base (4.12.1~deb12u1 Debian:12.15/oldstable, Debian-Security:12 [all])\n\
            Inst libc6:i386 (2.36-9 Debian:12.15/oldstable [i386]) []\n\
            Inst udev [252.1] (252.39-1~deb12u2 Debian:12.15/oldstable [amd64]) [systemd:amd64 ]\n\
            Remv old [1.0]\nPurg settings [1]\nConf linux-base (4.12.1 x [all])\n";
        let added = |name: &str, version: &str, architecture: &str| {
            let (name, version) = (name.into(), version.into());
            Act::Adds(AddedPackage { name, architecture: architecture.into(), version })
        };
        let found: Vec<Act<'_>> = acts(text).collect::<Result<_, _>>().unwrap();
        let wanted = [
            added("linux-base", "4.12.1~deb12u1", "all"),
            added("libc6", "2.36-9", "i386"),
            Act::Upgrades("udev"),
            Act::Removes("old"),
            Act::Removes("settings"),
        ];
        assert_eq!(found, wanted);
        assert_eq!(acts("Inst x\n").collect::<Vec<_>>(), [Err("Inst x")]);
    }

    #[test]
    fn complaints_name_the_next_step() {
        let of =
            |text: &str| complaint(&ToolAnswer { complaint: text.into(), ..ToolAnswer::default() });
        let lock = "Reading...\nE: Could not get lock /var/lib/dpkg/lock-frontend. It is held by \
                    process 7 (apt)\nE: Unable to acquire the dpkg frontend lock";
        assert!(of(lock).starts_with("E: Could not get lock") && of(lock).ends_with("try again"));
        assert!(
            of("E: You don't have enough free space in /var")
                .ends_with("make room, then try again")
        );
        assert_eq!(of("a\n\nb"), "a; b");
    }
}

#[cfg(test)]
mod packages_tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn lines_are_shown_as_they_come_and_the_environment_is_set() {
        let lines = RefCell::new(Vec::new());
        let show = |line: &str| lines.borrow_mut().push(line.to_owned());
        let script = "echo one; echo $DEBIAN_FRONTEND >&2; sleep 0.2; printf 'last é'; exit 3";
        let answer = PackageTools.work("sh", &["-c", script], Interruption::Waits, &show).unwrap();
        assert_eq!(*lines.borrow(), ["one", "noninteractive", "last ??"]);
        assert!(!answer.success && answer.complaint.starts_with("one\n"), "{answer:?}");
        let killed = PackageTools.ask("sh", &["-c", "echo x; kill -9 $$"]).unwrap();
        assert!(killed.complaint.contains("signal: 9") && killed.text == "x\n", "{killed:?}");
        assert!(PackageTools.ask("no-such-program-here", &[]).is_err());
    }
}
