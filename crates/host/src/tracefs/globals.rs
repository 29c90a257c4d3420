//! Settings of tracers that the whole machine shares: put back when their user ends, however it
//! ends.
//!
//! The old values are in a file under /run before the first is changed. Three put them back,
//! by whichever comes first: this process when it is done; the guard of the instance, for a process
//! that is killed; and the next one that comes here, should the guard have been killed too. A
//! reboot forgets both the settings and the file.

#![expect(clippy::disallowed_methods, reason = "files of tracefs and of /run, live machine only")]

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{fs::OpenOptionsExt, process::CommandExt},
    },
    process::{Child, Stdio},
    sync::OnceLock,
    time::Duration,
};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::find_mount;
use crate::child::{self, Reach};
use crate::{Reading, Root, trusted};

/// Where old values are kept.
pub(super) const STATE: &str = "/run";

/// End of the names of their files; they begin with the name of the instance.
const SUFFIX: &str = ".tracer";

/// Changed settings; dropping it puts them back.
#[derive(Debug)]
pub(super) struct Globals {
    state: String,
    old: Vec<(String, String)>,
}

impl Globals {
    /// Changes settings, paths and values, for the user of an instance, whose guard is there.
    pub(super) fn change(
        folder: &str,
        instance: &str,
        wanted: &[(String, String)],
    ) -> io::Result<Self> {
        let state = state(folder, instance);
        let mut old = Vec::new();
        for (path, wanted) in wanted {
            let value = fs::read_to_string(path).map_err(|error| at(path, &error))?;
            // Files of monitors end with a zero byte (kernel/trace/rv/rv.c).
            let value = value.trim_end_matches(|c: char| c == '\0' || c.is_whitespace());
            old.push((path.clone(), back(path, wanted, value)));
        }
        let globals = Self { state, old };
        globals.write_down()?;
        for (path, value) in wanted {
            set(path, value).map_err(|error| at(path, &error))?;
        }
        Ok(globals)
    }

    fn write_down(&self) -> io::Result<()> {
        let mut text = String::new();
        for (path, value) in self.in_order_of_undoing() {
            text += &format!("{path}\t{value}\n");
        }
        let mut new = OpenOptions::new();
        new.write(true).create_new(true).mode(0o600);
        let file = new.open(&self.state).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        file.map_err(|error| at(&self.state, &error))
    }

    fn in_order_of_undoing(&self) -> impl Iterator<Item = &(String, String)> {
        self.old.iter().rev()
    }
}

impl Globals {
    /// Puts them back, once; a sentence for each that could not be.
    pub(super) fn put_back(&mut self) -> Vec<String> {
        let old = std::mem::take(&mut self.old);
        if old.is_empty() {
            return Vec::new();
        }
        let lines = old.iter().rev().map(|(path, value)| (path.as_str(), value.as_str()));
        let left: Vec<String> = lines.filter_map(|(path, value)| failed(path, value)).collect();
        if left.is_empty() {
            // Were the file to stay, the guard would write the same values again.
            let _ = fs::remove_file(&self.state);
        }
        left
    }
}

impl Drop for Globals {
    fn drop(&mut self) {
        self.put_back();
    }
}

/// Sets a value; a sentence when that failed.
fn failed(path: &str, value: &str) -> Option<String> {
    let error = set(path, value).err()?;
    Some(format!("{path} could not be set back to \"{value}\": {error}; write it by hand"))
}

/// The file with the old values of the user of an instance.
pub(super) fn state(folder: &str, instance: &str) -> String {
    let name = instance.rsplit('/').next().unwrap_or_default();
    format!("{folder}/{name}{SUFFIX}")
}

/// Puts back what killed runs left behind; a sentence for each setting.
pub(super) fn restore_stale(root: &Root, folder: &str) -> Vec<String> {
    let names = root.list_dir(folder);
    let mut restored = Vec::new();
    for file in names.value().into_iter().flatten() {
        let name = file.strip_suffix(SUFFIX).and_then(InstanceName::parse);
        if !name.is_some_and(|name| name.is_stale(root)) {
            continue;
        }
        let state = format!("{folder}/{file}");
        let Ok(text) = fs::read_to_string(&state) else { continue };
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        for (path, value) in lines {
            restored.push(failed(path, value).unwrap_or_else(|| {
                format!("{path} was set back to \"{value}\": a killed run had left it changed")
            }));
        }
        // What could not be set now cannot be set later either.
        let _ = fs::remove_file(&state);
    }
    restored
}

/// What puts a setting back: its old value. A file of choices shows the present one in brackets. A
/// file of switches shows all and takes one at a time, and only one that is to change comes here:
/// its opposite. The size of a ring that was never used stands with the one that the kernel gives
/// it when it is used first, which cannot be undone: `7 (expanded: 1408)`.
fn back(path: &str, wanted: &str, value: &str) -> String {
    if path.ends_with("/options") {
        return wanted.strip_prefix("NO_").map_or_else(|| format!("NO_{wanted}"), str::to_owned);
    }
    if let Some((_, expanded)) = value.split_once(" (expanded: ") {
        return expanded.trim_end_matches(')').to_owned();
    }
    let chosen =
        value.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or(value).to_owned()
}

fn set(path: &str, value: &str) -> io::Result<()> {
    // An empty list of CPUs is written as an empty line: a write of nothing is no write.
    let text = if value.is_empty() { "\n" } else { value };
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

fn at(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

// A shell beside the process: when the process ends, however it ends, what it switched on goes.

/// What it runs: waits until its input is closed, which the kernel does for a process that is
/// killed; then ends recording and removes the instance, which takes a while where another still
/// reads, and puts back settings that the whole machine shares. In order there is nothing left of
/// either by then. Lines of the file hold a path, a tab, a value.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT USR1 USR2
put() { [ -e "$2" ] && printf '%s' "$1" > "$2"; }
read -r _
tries=0
while [ -d "$1" ] && [ $tries -lt 300 ]; do
    put nop "$1/current_tracer"
    put 0 "$1/tracing_on"
    put 0 "$1/events/enable"
    rmdir "$1" || sleep 0.1
    tries=$((tries + 1))
done 2> /dev/null
[ -f "$2" ] || exit 0
while IFS='	' read -r file value; do
    printf '%s\n' "$value" > "$file"
done < "$2" 2> /dev/null
rm -f "$2"
"#;

/// Time for the shell to remove an instance that another still reads; one that is stopped goes on.
const GUARD_MAX: Duration = Duration::from_secs(2);

/// The shell; dropping it waits for its end, for a while.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    /// Starts it for an instance and the file of settings of its user.
    pub(super) fn start(instance: &str, settings: &str) -> io::Result<Self> {
        let mut shell = trusted::command("sh")?;
        let (stdout, instance) =
            TracefsMount::given(instance).unwrap_or_else(|| (Stdio::null(), instance.to_owned()));
        shell.args(["-c", SCRIPT, "rtproof-guard", &instance, settings]);
        shell.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::null());
        // Ctrl-C is for us alone.
        Ok(Self(shell.process_group(0).spawn()?))
    }

    /// As when it is killed itself.
    #[cfg(test)]
    fn kill(&mut self) {
        self.0.kill().unwrap();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        child::end(&mut self.0, Reach::Child, None, GUARD_MAX);
    }
}

// The kernel's own monitors of real-time applications
// (Documentation/trace/rv/monitor_rtapp.rst, Linux 6.16): switched on while a program is
// observed, and off again however that ends. One that was on already stays on.

/// Those that are used, as `available_monitors` names them.
const NAMES: &[&str] = &["rtapp:pagefault", "rtapp:sleep"];

/// Number in the name of the file with the old values: above those of instances.
const NUMBER: u32 = 64;

/// Monitors of the kernel; dropping it switches off what it switched on.
#[derive(Debug)]
pub struct Monitors {
    root: Root,
    top: &'static str,
    names: Vec<&'static str>,
    // Put back before the guard goes, which would do it otherwise.
    globals: Option<Globals>,
    _guard: Option<Guard>,
}

impl Monitors {
    /// Switches them on where they are off. They follow a thread from its birth: ask before the
    /// program's first process is made.
    ///
    /// # Errors
    /// They are not on, and nothing was changed: why.
    pub fn switch_on(root: &Root) -> Result<Self, String> {
        let top = find_mount(root).map_err(|error| error.to_string())?;
        restore_stale(root, STATE);
        Self::of(root, top, STATE)
    }

    fn of(root: &Root, top: &'static str, folder: &str) -> Result<Self, String> {
        let available = root.read_text(&format!("{top}/rv/available_monitors"));
        let Some(text) = available.value() else {
            let path = shown_path(&available.path);
            return Err(format!("{path}: {}", why_not(&available)));
        };
        let has = |name: &&&str| text.lines().any(|line| line.trim() == **name);
        let names: Vec<&str> = NAMES.iter().filter(has).copied().collect();
        if names.is_empty() {
            return Err("this kernel was built without CONFIG_RV_MON_RTAPP".into());
        }
        let mut monitors = Self { root: root.clone(), top, names, globals: None, _guard: None };
        if !monitors.file_is("monitoring_on", "1") {
            return Err(format!("{top}/rv/monitoring_on is off, and was left so"));
        }
        let off = |name: &&str| !monitors.file_is(&file(name, "enable"), "1");
        let off: Vec<&str> = monitors.names.iter().copied().filter(|name| off(name)).collect();
        if let Some(name) = off.iter().find(|name| monitors.has_reactor(name)) {
            return Err(format!(
                "a report of {name} would print or stop the machine: {top}/rv/{} chooses another \
                 reactor than nop",
                file(name, "reactors")
            ));
        }
        if off.is_empty() {
            return Ok(monitors);
        }
        let own = InstanceName { number: NUMBER, ..InstanceName::own(root) };
        let user = format!("{top}/instances/{}", own.text());
        let guard = Guard::start(&user, &state(folder, &user));
        monitors._guard =
            Some(guard.map_err(|error| format!("switching them off takes a shell: {error}"))?);
        let wanted = |name: &&str| (format!("{top}/rv/{}", file(name, "enable")), "1".to_owned());
        let wanted: Vec<_> = off.iter().map(wanted).collect();
        let changed = Globals::change(folder, &user, &wanted);
        monitors.globals = Some(changed.map_err(|error| error.to_string())?);
        Ok(monitors)
    }

    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Whether they are all on, and were not switched off meanwhile.
    pub fn are_on(&self) -> bool {
        self.file_is("monitoring_on", "1")
            && self.names.iter().all(|name| self.file_is(&file(name, "enable"), "1"))
    }

    /// Switches off what was switched on; a sentence for each that could not be.
    #[must_use]
    pub fn end(mut self) -> Vec<String> {
        self.globals.take().map(|mut globals| globals.put_back()).unwrap_or_default()
    }

    fn file_is(&self, file: &str, value: &str) -> bool {
        let text = self.root.trimmed(&format!("{}/rv/{file}", self.top));
        text.value().is_some_and(|text| text == value)
    }

    /// Whether the kernel would print or panic; one without reactors does neither.
    fn has_reactor(&self, name: &str) -> bool {
        let path = format!("{}/rv/{}", self.top, file(name, "reactors"));
        match self.root.read_text(&path) {
            text if text.is_absent() => false,
            text => !text.value().is_some_and(|text| text.contains("[nop]")),
        }
    }
}

/// A file of a monitor.
fn file(name: &str, file: &str) -> String {
    format!("monitors/{}/{file}", name.replace(':', "/"))
}

fn why_not(reading: &Reading<String>) -> String {
    match reading.is_absent() {
        true => "is not there: it needs Linux 6.16 with CONFIG_RV_MON_RTAPP".into(),
        false => super::why(&super::refused(reading)),
    }
}

// tracefs where it is not mounted: a private mount of this process, which no path leads to and
// which is gone with the last program that holds it (fsmount(2), Linux 5.2).

/// Where tracefs is mounted for all.
pub(super) const TRACEFS: &str = "/sys/kernel/tracing";

/// The standard output of a program that is given the mount, see [`TracefsMount::given`].
const GIVEN: &str = "/proc/self/fd/1";

#[derive(Debug)]
pub(super) struct TracefsMount {
    fd: OwnedFd,
    path: String,
}

impl TracefsMount {
    /// The one of this process; `None`: the kernel or the rights forbid it.
    pub(super) fn own() -> Option<&'static Self> {
        static OWN: OnceLock<Option<TracefsMount>> = OnceLock::new();
        OWN.get_or_init(|| Self::new().ok()).as_ref()
    }

    fn new() -> io::Result<Self> {
        let made = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&made)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let fd = fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        Ok(Self { fd, path })
    }

    /// Its folder, for this process.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// For a program that is to work below `path` too: what its standard output has to be, and how
    /// it calls that path. `None`: the path is not in the mount.
    fn given(path: &str) -> Option<(Stdio, String)> {
        let own = Self::own()?;
        let rest = path.strip_prefix(&own.path)?.strip_prefix('/')?;
        Some((own.fd.try_clone().ok()?.into(), format!("{GIVEN}/{rest}")))
    }
}

/// A path of an instance for people: where the file would be, were tracefs mounted for all.
pub fn shown_path(path: &str) -> String {
    let rest = path.strip_prefix("/proc/self/fd/").and_then(|rest| rest.split_once('/'));
    match rest {
        Some((_, rest)) => format!("{TRACEFS}/{rest}"),
        None => path.to_owned(),
    }
}

// Names of our instances: whose they are, so that what a killed run left behind can be
// distinguished from what another run is using now.

const PREFIX: &str = "rtproof-";

/// `rtproof-PID-START` and, for further ones of the same process, `-N`. The start time of the
/// process (field 22 of /proc/PID/stat) distinguishes a process from a later one with the same
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InstanceName {
    pub(super) pid: u32,
    pub(super) start_ticks: u64,
    pub(super) number: u32,
}

impl InstanceName {
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

    /// A folder with two settings.
    struct Rig {
        dir: tempfile::TempDir,
    }

    impl Rig {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let rig = Self { dir };
            fs::write(rig.path("cpus"), "0-7\n").unwrap();
            fs::write(rig.path("period_us"), "1777\n").unwrap();
            rig
        }

        fn path(&self, name: &str) -> String {
            self.dir.path().join(name).display().to_string()
        }

        /// Both, as they are now. A file keeps what a shorter text does not overwrite.
        fn now(&self) -> [String; 2] {
            ["cpus", "period_us"].map(|name| fs::read_to_string(self.path(name)).unwrap())
        }

        fn change(&self, instance: &str) -> io::Result<Globals> {
            let wanted =
                [(self.path("cpus"), "1-1".into()), (self.path("period_us"), "2000".into())];
            Globals::change(&self.path(""), instance, &wanted)
        }
    }

    fn files(rig: &Rig) -> usize {
        fs::read_dir(rig.dir.path()).unwrap().count()
    }

    #[test]
    fn settings_are_put_back_at_the_end() {
        let rig = Rig::new();
        let globals = rig.change("/i/rtproof-1-2").unwrap();
        assert_eq!(rig.now(), ["1-1\n", "2000\n"]);
        assert_eq!(files(&rig), 3, "the old values are on disk");
        drop(globals);
        assert_eq!(rig.now(), ["0-7\n", "1777\n"]);
        assert_eq!(files(&rig), 2);
    }

    #[test]
    fn failed_restores_are_reported_and_stay_recorded() {
        let rig = Rig::new();
        let mut globals = rig.change("/i/rtproof-1-2").unwrap();
        fs::remove_file(rig.path("cpus")).unwrap();
        fs::create_dir(rig.path("cpus")).unwrap();
        let left = globals.put_back();
        assert_eq!(left.len(), 1, "{left:?}");
        assert!(left[0].contains("cpus could not be set back to \"0-7\""), "{left:?}");
        drop(globals);
        assert_eq!(files(&rig), 3, "for the guard");
    }

    #[test]
    fn a_switch_is_put_back_by_its_opposite() {
        let rig = Rig::new();
        let options = rig.path("options");
        fs::write(&options, "NO_DEFAULTS NO_OSNOISE_WORKLOAD\n").unwrap();
        let wanted = [(options.clone(), "OSNOISE_WORKLOAD".to_owned())];
        let globals = Globals::change(&rig.path(""), "/i/rtproof-1-2", &wanted).unwrap();
        drop(globals);
        assert!(fs::read_to_string(&options).unwrap().starts_with("NO_OSNOISE_WORKLOAD"));
        assert_eq!(back("/t/options", "NO_X", "X"), "X");
        assert_eq!(back("/t/mode", "none", "none [round-robin] per-cpu"), "round-robin");
        assert_eq!(back("/t/buffer_size_kb", "8192", "7 (expanded: 1408)"), "1408");
        assert_eq!(back("/t/cpus", "1", ""), "");
    }

    #[test]
    fn the_guard_restores_them_if_nothing_else_does() {
        let rig = Rig::new();
        let instance = rig.path("rtproof-1-2");
        fs::create_dir(&instance).unwrap();
        let guard = Guard::start(&instance, &state(&rig.path(""), &instance)).unwrap();
        std::mem::forget(rig.change(&instance).unwrap());
        // As the kernel does when the process is killed: its end of the pipe is closed.
        drop(guard);
        assert_eq!(rig.now(), ["0-7\n", "1777\n"]);
        assert_eq!(files(&rig), 2, "the instance is gone, too");
    }

    #[test]
    fn the_next_one_puts_back_what_dead_ones_left() {
        let rig = Rig::new();
        // No process has this number.
        let instance = "/i/rtproof-4294967294-1";
        let mut guard = Guard::start(instance, &state(&rig.path(""), instance)).unwrap();
        std::mem::forget(rig.change(instance).unwrap());
        guard.kill();
        drop(guard);
        assert_eq!(rig.now(), ["1-1\n", "2000\n"]);
        let live = rig.change(&format!("/i/{}", InstanceName::own(&Root::live()).text())).unwrap();
        let restored = restore_stale(&Root::live(), &rig.path(""));
        let expected = [("period_us", "1777"), ("cpus", "0-7")].map(|(name, value)| {
            let path = rig.path(name);
            format!("{path} was set back to \"{value}\": a killed run had left it changed")
        });
        assert_eq!(restored, expected, "in reverse");
        assert_eq!(rig.now(), ["0-7\n", "1777\n"]);
        drop(live);
        assert_eq!(files(&rig), 2);
    }

    #[test]
    fn what_cannot_be_set_is_named_and_nothing_stays() {
        let rig = Rig::new();
        let wanted =
            [(rig.path("cpus"), "1-1".to_owned()), (rig.path("no_such_setting"), "1".to_owned())];
        let error = Globals::change(&rig.path(""), "/i/rtproof-1-2", &wanted).unwrap_err();
        assert!(error.to_string().contains("no_such_setting: No such file"), "{error}");
        assert_eq!((rig.now(), files(&rig)), (["0-7\n".into(), "1777\n".into()], 2));
    }
}

#[cfg(test)]
mod monitors_tests {
    use std::fs;

    use super::*;

    /// A tree as the kernel has it, and a folder for the old values.
    struct Rig {
        _dir: tempfile::TempDir,
        top: &'static str,
        state: String,
    }

    impl Rig {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().display().to_string();
            let rig = Self { _dir: dir, top: format!("{path}/tracing").leak(), state: path };
            for name in ["pagefault", "sleep"] {
                let folder = format!("{}/rv/monitors/rtapp/{name}", rig.top);
                fs::create_dir_all(&folder).unwrap();
                // As the kernel says it.
                rig.set(name, "enable", "0\n\0");
                rig.set(name, "reactors", "[nop]\nprintk\npanic\n");
            }
            let rv = |name: &str, text: &str| {
                fs::write(format!("{}/rv/{name}", rig.top), text).unwrap();
            };
            rv("available_monitors", "wwnr\nrtapp\nrtapp:sleep\nrtapp:pagefault\n");
            rv("monitoring_on", "1\n\0");
            rig
        }

        fn path(&self, name: &str, file: &str) -> String {
            format!("{}/rv/monitors/rtapp/{name}/{file}", self.top)
        }

        fn set(&self, name: &str, file: &str, text: &str) {
            fs::write(self.path(name, file), text).unwrap();
        }

        fn on(&self) -> Result<Monitors, String> {
            Monitors::of(&Root::live(), self.top, &self.state)
        }

        /// Whether `pagefault` and `sleep` are on, and how many files of old values there are.
        fn now(&self) -> (String, usize) {
            let value = |name| fs::read_to_string(self.path(name, "enable")).unwrap();
            let files = fs::read_dir(&self.state).unwrap().count() - 1;
            (["pagefault", "sleep"].map(value).concat().replace(['\n', '\0'], ""), files)
        }
    }

    #[test]
    fn what_was_off_is_on_and_off_again() {
        let rig = Rig::new();
        let monitors = rig.on().unwrap();
        assert_eq!(rig.now(), ("11".into(), 1));
        assert!(monitors.are_on() && monitors.names() == ["rtapp:pagefault", "rtapp:sleep"]);
        rig.set("sleep", "enable", "0\n");
        assert!(!monitors.are_on());
        assert!(monitors.end().is_empty());
        assert_eq!(rig.now(), ("00".into(), 0));
    }

    #[test]
    fn what_another_program_switched_on_stays_on() {
        let rig = Rig::new();
        rig.set("sleep", "enable", "1\n");
        drop(rig.on().unwrap());
        assert_eq!(rig.now(), ("01".into(), 0));
        rig.set("pagefault", "enable", "1\n\0");
        // Whatever they do then was chosen before.
        rig.set("sleep", "reactors", "nop\n[panic]\n");
        let monitors = rig.on().unwrap();
        assert!(monitors.globals.is_none());
        drop(monitors);
        assert_eq!(rig.now(), ("11".into(), 0));
    }

    #[test]
    fn the_guard_disables_them_if_nothing_else_does() {
        let rig = Rig::new();
        let mut monitors = rig.on().unwrap();
        std::mem::forget(monitors.globals.take());
        assert_eq!(rig.now(), ("11".into(), 1));
        // As the kernel does when the process is killed: its end of the pipe is closed.
        drop(monitors);
        assert_eq!(rig.now(), ("00".into(), 0));
    }

    #[test]
    fn nothing_is_changed_where_it_is_refused() {
        let rig = Rig::new();
        let refused = |part: &str| {
            let why = rig.on().unwrap_err();
            assert!(why.contains(part), "{why}");
            assert_eq!(fs::read_dir(&rig.state).unwrap().count(), 1, "no old values");
        };
        rig.set("sleep", "reactors", "nop\n[panic]\n");
        refused("rtapp/sleep/reactors chooses another reactor");
        assert_eq!(rig.now().0, "00");
        fs::write(format!("{}/rv/monitoring_on", rig.top), "0\n").unwrap();
        refused("monitoring_on is off");
        fs::write(format!("{}/rv/monitoring_on", rig.top), "1\n").unwrap();
        rig.set("sleep", "reactors", "[nop]\n");
        // The second fails: the first is switched off again.
        fs::remove_file(rig.path("sleep", "enable")).unwrap();
        fs::create_dir(rig.path("sleep", "enable")).unwrap();
        refused("sleep/enable");
        let first = fs::read_to_string(rig.path("pagefault", "enable")).unwrap();
        assert!(first.starts_with('0'), "{first:?}");
        fs::write(format!("{}/rv/available_monitors", rig.top), "wwnr\n").unwrap();
        refused("CONFIG_RV_MON_RTAPP");
        fs::remove_dir_all(format!("{}/rv", rig.top)).unwrap();
        refused("available_monitors: is not there");
    }
}

#[cfg(test)]
mod name_tests {
    use super::*;

    #[test]
    fn only_our_own_form_is_ours() {
        let name = InstanceName { pid: 12, start_ticks: 345, number: 0 };
        assert_eq!(InstanceName::parse("rtproof-12-345"), Some(name));
        assert_eq!(
            InstanceName::parse("rtproof-12-345-2"),
            Some(InstanceName { number: 2, ..name })
        );
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
            assert_eq!(InstanceName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let root = Root::live();
        let own = InstanceName::own(&root);
        assert!(own.start_ticks > 0 && !own.is_stale(&root));
        assert!(
            InstanceName { start_ticks: own.start_ticks + 1, ..own }.is_stale(&root),
            "another process"
        );
        assert!(InstanceName { pid: u32::MAX, ..own }.is_stale(&root), "no such process");
    }
}
