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
    os::unix::fs::OpenOptionsExt,
};

use super::name::Name;
use crate::Root;

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
        let name = file.strip_suffix(SUFFIX).and_then(Name::parse);
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

#[cfg(test)]
mod tests {
    use super::{super::guard::Guard, *};

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
    fn what_cannot_be_put_back_is_said_and_stays_written_down() {
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
    fn the_guard_puts_them_back_where_nobody_else_does() {
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
        let live = rig.change(&format!("/i/{}", Name::own(&Root::live()).text())).unwrap();
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
