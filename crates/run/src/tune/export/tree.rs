//! The files of a machine that keeps a plan without rtproof: sysctl.d, tmpfiles.d, drop-ins, one
//! unit with one script, GRUB's drop-in. systemd's own export, and what Ansible, Yocto and
//! Buildroot put into place.

use rtproof_host::tune::UnitState;

use super::{
    boot::Words,
    format::{Missed, OutFile, Source},
    glob,
    layout::{Action, Layout, Value, sysctl_key},
    script,
    text::{self, one_line},
};

/// Where the script is.
pub(super) const SCRIPT: &str = "usr/local/sbin/rtproof-tuning";
/// The unit that runs it.
pub(super) const UNIT: &str = "rtproof-tuning.service";
/// The unit that holds /dev/cpu_dma_latency.
pub(super) const LATENCY_UNIT: &str = "rtproof-cpu-dma-latency.service";
/// Values of /proc/sys; last, so that no other file of the folder overrides them.
pub(super) const SYSCTL: &str = "etc/sysctl.d/99-zz-rtproof-values.conf";
/// Values of /sys.
pub(super) const TMPFILES: &str = "etc/tmpfiles.d/90-rtproof.conf";
/// Words of the command line.
pub(super) const GRUB: &str = "etc/default/grub.d/90-rtproof.cfg";

/// The files, relative to the root of a machine, and what systemd has to do with them.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub files: Vec<OutFile>,
    /// Units of ours to enable.
    pub enabled: Vec<&'static str>,
    /// What is not in them.
    pub missed: Vec<Missed>,
}

impl Tree {
    /// The files for a layout; with GRUB's drop-in where there are words and `grub`.
    pub(super) fn of(source: &Source<'_>, layout: &Layout<'_>, format: &str, grub: bool) -> Self {
        let mut tree = Self { missed: layout.missed.clone(), ..Self::default() };
        tree.push(SYSCTL, sysctl(source, format, &layout.sysctls));
        tree.push(TMPFILES, tmpfiles(source, format, &layout.plain));
        if let Some(script) = script::write(source, format, &layout.actions) {
            tree.files.push(OutFile::program(SCRIPT, script));
            tree.unit(UNIT, tuning_unit(source, format, layout));
        }
        if let Some((limit_us, step)) = layout.dma_latency {
            let unit = text::head(source, format) + &because(&step.reason) + &latency(limit_us);
            tree.unit(LATENCY_UNIT, unit);
        }
        for property in &layout.properties {
            let Some(section) = section(property.unit) else {
                let why = "units of this kind take no resources in a drop-in";
                let what = super::layout::named(property.step);
                tree.missed.push(Missed { what, why: why.into() });
                continue;
            };
            let path = format!(
                "etc/systemd/system/{}.d/90-rtproof-{}.conf",
                property.unit, property.property
            );
            let line = format!("[{section}]\n{}={}\n", property.property, property.value);
            tree.push(&path, text::head(source, format) + &because(&property.step.reason) + &line);
        }
        for file in &layout.files {
            let path = file.path.trim_start_matches('/');
            if tree.files.iter().any(|ours| ours.path == path) {
                let what = super::layout::named(file.step);
                let why = "a file of this export has that name: put its lines there by hand";
                tree.missed.push(Missed { what, why: why.into() });
                continue;
            }
            let (content, mode) = (file.content.to_owned(), file.mode);
            tree.files.push(OutFile { path: path.into(), content, mode });
        }
        if grub {
            let words = Words::of(source);
            tree.push(GRUB, words.grub(source, format).unwrap_or_default());
            tree.missed.extend(words.missed);
        }
        tree
    }

    /// A file, if there is anything in it.
    fn push(&mut self, path: &str, content: String) {
        if !content.is_empty() {
            self.files.push(OutFile::new(path, content));
        }
    }

    fn unit(&mut self, name: &'static str, content: String) {
        self.files.push(OutFile::new(format!("etc/systemd/system/{name}"), content));
        self.enabled.push(name);
    }
}

/// Why, as a comment.
fn because(reason: &rtproof_judge::plan::Reason) -> String {
    format!("# {}\n", text::why(reason))
}

/// Lines for sysctl.d(5), in the plan's order.
pub(super) fn sysctl(source: &Source<'_>, format: &str, values: &[Value<'_>]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let line = |value: &Value<'_>| {
        format!("{}{} = {}\n", because(value.reason()), sysctl_key(value.path), value.value)
    };
    text::head(source, format) + &values.iter().map(line).collect::<String>()
}

/// Lines for tmpfiles.d(5): one value for a pattern of paths.
fn tmpfiles(source: &Source<'_>, format: &str, values: &[Value<'_>]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let mut file = text::head(source, format);
    for (value, paths) in gathered(values) {
        file += &because(value.reason());
        for path in glob::cover(&paths) {
            // A percent sign begins a specifier, a blank ends a field.
            let path = path.replace('%', "%%").replace(' ', "\\x20");
            let value = value.value.replace('%', "%%");
            file += &format!("w {path} - - - - {value}\n");
        }
    }
    file
}

/// Values whose order does not matter, those with one value and one reason together.
pub(super) fn gathered<'a, 'b>(values: &'b [Value<'a>]) -> Vec<(&'b Value<'a>, Vec<&'a str>)> {
    let mut all: Vec<(&Value<'a>, Vec<&'a str>)> = Vec::new();
    for value in values {
        let same = |other: &Value<'_>| {
            (other.value, other.compare, other.reason())
                == (value.value, value.compare, value.reason())
        };
        match all.iter_mut().find(|(other, _)| same(other)) {
            Some((_, paths)) => paths.push(value.path),
            None => all.push((value, vec![value.path])),
        }
    }
    all
}

/// Section of a unit's file that takes resources.
fn section(unit: &str) -> Option<&'static str> {
    match unit.rsplit_once('.')?.1 {
        "slice" => Some("Slice"),
        "service" => Some("Service"),
        "scope" => Some("Scope"),
        "socket" => Some("Socket"),
        "mount" => Some("Mount"),
        "swap" => Some("Swap"),
        _ => None,
    }
}

/// The unit that runs the script, after what it writes to is there.
fn tuning_unit(source: &Source<'_>, format: &str, layout: &Layout<'_>) -> String {
    let writes = |front: &str| {
        let is_there = |action: &Action<'_>| match action {
            Action::Write(value) => value.path.starts_with(front),
            _ => false,
        };
        layout.actions.iter().any(is_there)
    };
    let mounts: String = ["/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/resctrl"]
        .into_iter()
        .filter(|front| writes(front))
        .map(|front| format!("RequiresMountsFor={front}\n"))
        .collect();
    format!(
        "{}[Unit]\nDescription=Real-time tuning ({})\n\
         After=systemd-modules-load.service systemd-sysctl.service systemd-tmpfiles-setup.service\n\
         After=network.target irqbalance.service\n\
         {mounts}\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/{SCRIPT} start\n\
         ExecStop=/{SCRIPT} stop\n\n[Install]\nWantedBy=multi-user.target\n",
        text::head(source, format),
        // A percent sign is systemd's own.
        one_line(source.machine).replace('%', "%%"),
    )
}

/// The unit that holds /dev/cpu_dma_latency: the request lasts as long as the file is open.
fn latency(limit_us: u32) -> String {
    format!(
        "[Unit]\nDescription=No idle state that takes longer than {limit_us} us to leave\n\
         ConditionPathExists=/dev/cpu_dma_latency\n\n[Service]\n\
         ExecStart=/bin/sh -c 'exec 3>/dev/cpu_dma_latency; echo 0x{limit_us:08x} >&3; \
         exec sleep infinity'\nRestart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n"
    )
}

/// Words of systemctl that bring a unit where it is wanted.
pub(super) fn systemctl(want: UnitState) -> &'static str {
    match want {
        UnitState::Stopped => "stop",
        UnitState::Disabled => "disable --now",
        UnitState::Masked => "mask --now",
        UnitState::Started => "start",
        UnitState::Enabled => "enable --now",
    }
}
