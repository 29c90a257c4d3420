//! The kernel's own monitors of real-time applications
//! (Documentation/trace/rv/monitor_rtapp.rst, Linux 6.16): switched on while a program is
//! observed, and off again however that ends. One that was on already stays on.

use super::{
    find,
    globals::{Globals, STATE, restore_stale, state},
    guard::Guard,
    name::Name,
    shown,
};
use crate::{Reading, Root};

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
        let top = find(root).map_err(|error| error.to_string())?;
        restore_stale(root, STATE);
        Self::of(root, top, STATE)
    }

    fn of(root: &Root, top: &'static str, folder: &str) -> Result<Self, String> {
        let available = root.read_text(&format!("{top}/rv/available_monitors"));
        let Some(text) = available.value() else {
            let path = shown(&available.path);
            return Err(format!("{path}: {}", why_not(&available)));
        };
        let has = |name: &&&str| text.lines().any(|line| line.trim() == **name);
        let names: Vec<&str> = NAMES.iter().filter(has).copied().collect();
        if names.is_empty() {
            return Err("this kernel was built without CONFIG_RV_MON_RTAPP".into());
        }
        let mut monitors = Self { root: root.clone(), top, names, globals: None, _guard: None };
        if !monitors.is("monitoring_on", "1") {
            return Err(format!("{top}/rv/monitoring_on is off, and was left so"));
        }
        let off = |name: &&str| !monitors.is(&file(name, "enable"), "1");
        let off: Vec<&str> = monitors.names.iter().copied().filter(|name| off(name)).collect();
        if let Some(name) = off.iter().find(|name| monitors.reacts(name)) {
            return Err(format!(
                "a report of {name} would print or stop the machine: {top}/rv/{} chooses another \
                 reactor than nop",
                file(name, "reactors")
            ));
        }
        if off.is_empty() {
            return Ok(monitors);
        }
        let own = Name { number: NUMBER, ..Name::own(root) };
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
        self.is("monitoring_on", "1")
            && self.names.iter().all(|name| self.is(&file(name, "enable"), "1"))
    }

    /// Switches off what was switched on; a sentence for each that could not be.
    #[must_use]
    pub fn end(mut self) -> Vec<String> {
        self.globals.take().map(|mut globals| globals.put_back()).unwrap_or_default()
    }

    fn is(&self, file: &str, value: &str) -> bool {
        let text = self.root.trimmed(&format!("{}/rv/{file}", self.top));
        text.value().is_some_and(|text| text == value)
    }

    /// Whether the kernel would print or panic; one without reactors does neither.
    fn reacts(&self, name: &str) -> bool {
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

#[cfg(test)]
mod tests {
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
    fn the_guard_switches_them_off_where_nobody_else_does() {
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
