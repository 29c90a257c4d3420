//! The files of a machine that keeps a plan without rtproof: sysctl.d, tmpfiles.d, drop-ins, one
//! unit with one script, GRUB's drop-in. systemd's own export, and what Ansible, Yocto and
//! Buildroot put into place.

use rtproof_host::tune::UnitState;

use super::layout::{At, ExportLayout, RuntimeValue, ScriptAction, named, sysctl_key};
use super::{
    ExportFormat, ExportSource, ExportWords, Exported, NotExported, OutFile, layout, one_line,
    shell,
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
pub(super) struct FileTree {
    pub files: Vec<OutFile>,
    /// Units of ours to enable.
    pub enabled: Vec<&'static str>,
    /// What is not in them.
    pub missed: Vec<NotExported>,
}

impl FileTree {
    /// The files for a layout; with GRUB's drop-in where there are words and `grub`.
    pub(super) fn of(
        source: &ExportSource<'_>,
        layout: &ExportLayout<'_>,
        format: &str,
        grub: bool,
    ) -> Self {
        let mut tree = Self { missed: layout.missed.clone(), ..Self::default() };
        tree.push(SYSCTL, sysctl(source, format, &layout.sysctls));
        tree.push(TMPFILES, tmpfiles(source, format, &layout.plain));
        if let Some(script) = write_script(source, format, &layout.actions) {
            tree.files.push(OutFile::program(SCRIPT, script));
            tree.unit(UNIT, tuning_unit(source, format, layout));
        }
        if let Some((limit_us, step)) = layout.dma_latency {
            let unit = super::file_head(source, format)
                + &reason_comment(&step.reason)
                + &latency(limit_us);
            tree.unit(LATENCY_UNIT, unit);
        }
        for property in &layout.properties {
            let Some(section) = section(property.unit) else {
                let why = "units of this kind take no resources in a drop-in";
                let what = named(property.step);
                tree.missed.push(NotExported { what, why: why.into() });
                continue;
            };
            let path = format!(
                "etc/systemd/system/{}.d/90-rtproof-{}.conf",
                property.unit, property.property
            );
            let line = format!("[{section}]\n{}={}\n", property.property, property.value);
            tree.push(
                &path,
                super::file_head(source, format) + &reason_comment(&property.step.reason) + &line,
            );
        }
        for file in &layout.files {
            let path = file.path.trim_start_matches('/');
            if tree.files.iter().any(|ours| ours.path == path) {
                let what = named(file.step);
                let why = "a file of this export has that name: put its lines there by hand";
                tree.missed.push(NotExported { what, why: why.into() });
                continue;
            }
            let (content, mode) = (file.content.to_owned(), file.mode);
            tree.files.push(OutFile { path: path.into(), content, mode });
        }
        if grub {
            let words = ExportWords::of(source);
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
fn reason_comment(reason: &rtproof_judge::plan::Reason) -> String {
    format!("# {}\n", super::why(reason))
}

/// Lines for sysctl.d(5), in the plan's order.
fn sysctl(source: &ExportSource<'_>, format: &str, values: &[RuntimeValue<'_>]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let line = |value: &RuntimeValue<'_>| {
        format!("{}{} = {}\n", reason_comment(value.reason()), sysctl_key(value.path), value.value)
    };
    super::file_head(source, format) + &values.iter().map(line).collect::<String>()
}

/// Lines for tmpfiles.d(5): one value for a pattern of paths.
fn tmpfiles(source: &ExportSource<'_>, format: &str, values: &[RuntimeValue<'_>]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let mut file = super::file_head(source, format);
    for (value, paths) in gathered(values) {
        file += &reason_comment(value.reason());
        for path in layout::cover(&paths) {
            // A percent sign begins a specifier, a blank ends a field.
            let path = path.replace('%', "%%").replace(' ', "\\x20");
            let value = value.value.replace('%', "%%");
            file += &format!("w {path} - - - - {value}\n");
        }
    }
    file
}

/// Values whose order does not matter, those with one value and one reason together.
pub(super) fn gathered<'a, 'b>(
    values: &'b [RuntimeValue<'a>],
) -> Vec<(&'b RuntimeValue<'a>, Vec<&'a str>)> {
    let mut all: Vec<(&RuntimeValue<'a>, Vec<&'a str>)> = Vec::new();
    for value in values {
        let same = |other: &RuntimeValue<'_>| {
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
fn tuning_unit(source: &ExportSource<'_>, format: &str, layout: &ExportLayout<'_>) -> String {
    let writes = |front: &str| {
        let is_there = |action: &ScriptAction<'_>| match action {
            ScriptAction::Write(value) => value.path.starts_with(front),
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
        super::file_head(source, format),
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
fn systemctl(want: UnitState) -> &'static str {
    match want {
        UnitState::Stopped => "stop",
        UnitState::Disabled => "disable --now",
        UnitState::Masked => "mask --now",
        UnitState::Started => "start",
        UnitState::Enabled => "enable --now",
    }
}

// A small shell script for what no table of values can say: what has to keep its order, and
// interrupts and kernel threads, which are found by their names. It saves what it finds and puts
// it back. It needs a POSIX shell, and chrt and taskset for kernel threads; BusyBox will do.

/// The script, or nothing where there is nothing to do.
pub(super) fn write_script(
    source: &ExportSource<'_>,
    format: &str,
    actions: &[ScriptAction<'_>],
) -> Option<String> {
    if actions.is_empty() {
        return None;
    }
    let mut script =
        format!("#!/bin/sh\n{}{}", super::file_head(source, format), include_str!("script.sh"));
    let mut last_why = String::new();
    let mut because = |script: &mut String, why: String| {
        if why != last_why {
            *script += &format!("# {why}\n");
            last_why = why;
        }
    };
    let mut rest = actions;
    while let Some((first, _)) = rest.split_first() {
        let run = match first {
            ScriptAction::Write(value) => {
                rest.iter().take_while(|next| is_like(value, next)).count()
            }
            _ => 1,
        };
        let (these, others) = rest.split_at(run);
        because(&mut script, super::why(&step(first).reason));
        script += &line(these);
        rest = others;
    }
    script += "\nexit \"$failed\"\n";
    Some(script)
}

fn step<'a>(action: &ScriptAction<'a>) -> &'a rtproof_judge::plan::Step {
    match action {
        ScriptAction::Write(value) => value.step,
        ScriptAction::Folder(_, step)
        | ScriptAction::Irq(_, _, step)
        | ScriptAction::Thread { step, .. } => step,
        ScriptAction::Property(property) => property.step,
    }
}

/// Whether it is the same value for the same file of another folder: files of one folder keep their
/// order, which the shell's patterns would not.
fn is_like(value: &RuntimeValue<'_>, next: &ScriptAction<'_>) -> bool {
    let ScriptAction::Write(next) = next else { return false };
    let name = |value: &RuntimeValue<'_>| value.path.rsplit('/').next().map(str::to_owned);
    (next.value, next.compare, next.reason()) == (value.value, value.compare, value.reason())
        && name(next) == name(value)
}

/// The line of an action, or of several that write one value.
fn line(actions: &[ScriptAction<'_>]) -> String {
    let rooted = |path: &str| format!("\"$root\"{path}");
    match &actions[0] {
        ScriptAction::Write(value) => {
            let paths: Vec<&str> = actions
                .iter()
                .filter_map(|action| match action {
                    ScriptAction::Write(value) => Some(value.path),
                    _ => None,
                })
                .collect();
            let paths: Vec<String> =
                layout::cover(&paths).iter().map(|path| pattern(path)).collect();
            format!(
                "put {} {} {} {}\n",
                shell(value.value),
                shell(&value.expression()),
                shell(&super::reverse(value.value, value.compare)),
                paths.join(" \\\n    "),
            )
        }
        ScriptAction::Folder(path, _) => format!("folder {}\n", rooted(&shell(path))),
        ScriptAction::Irq(irq, cpus, _) => {
            let expression = format!("^{cpus}$");
            let words = [&*irq.actions, &irq.hwirq, &cpus.to_string(), &expression];
            format!("irq {}\n", words.map(shell).join(" "))
        }
        ScriptAction::Thread { pattern, set, .. } => {
            let priority = set.priority.unwrap_or(0).to_string();
            let cpus = set.cpus.as_ref().map(ToString::to_string);
            let policy = set.policy.as_deref().unwrap_or("-");
            let words = [pattern, policy, &priority, cpus.as_deref().unwrap_or("-")];
            format!("thread {}\n", words.map(shell).join(" "))
        }
        ScriptAction::Property(property) => {
            let words = [property.unit, property.property, property.value];
            format!("property {}\n", words.map(shell).join(" "))
        }
    }
}

/// A pattern for the shell: classes stay, what is special to the shell is quoted.
fn pattern(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+=@%[]*?".contains(c);
    let quoted = |c: char| if is_plain(c) { c.to_string() } else { format!("\\{c}") };
    format!("\"$root\"{}", path.chars().map(quoted).collect::<String>())
}

// Files for a machine without rtproof: sysctl.d, tmpfiles.d, drop-ins, a unit with a script,
// GRUB's drop-in; and two scripts that put them there and take them away.

pub(super) const SYSTEMD: ExportFormat = ExportFormat {
    id: "systemd",
    title: "files for a machine without rtproof: sysctl.d, tmpfiles.d, units, GRUB",
    usage: "As root: `./install.sh` puts `root/` into place, disables the units that are not \
         wanted and starts what is; `./remove.sh` takes it away again. `DESTDIR=/mnt ./install.sh` \
         fills the tree of another machine and starts nothing. `rtproof-tuning check` says what \
         is no longer as wanted, `rtproof-tuning stop` puts back what the script set. GRUB reads \
         `/etc/default/grub.d` on Debian and Ubuntu; `update-grub` takes the words over. With \
         another boot loader add them by hand, see below.\n\n\
         Values of sysctl.d and tmpfiles.d are the kernel's again after `./remove.sh` and a reboot; \
         `rtproof tune apply` puts them back at once.",
    write: write_systemd,
};

fn write_systemd(source: &ExportSource<'_>) -> Exported {
    let layout = ExportLayout::of(source, At::Boot);
    let tree = FileTree::of(source, &layout, SYSTEMD.id, true);
    let mut missed = tree.missed.clone();
    missed.extend(layout.away.iter().map(|(path, step)| NotExported {
        what: named(step),
        why: format!("files cannot take a file away: rm {path}"),
    }));
    let install = install(source, &layout, &tree);
    let remove = remove(source, &layout, &tree);
    let mut files: Vec<OutFile> =
        vec![OutFile::program("install.sh", install), OutFile::program("remove.sh", remove)];
    files.extend(tree.files.into_iter().map(|mut file| {
        file.path = format!("root/{}", file.path);
        file
    }));
    Exported { files, missed }
}

const TOP: &str = "set -eu\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\nto=${DESTDIR:-}\n\n";

/// Whether systemd is called: in a tree of another machine nothing is started.
const LIVE: &str = "[ -z \"$to\" ] || exit 0\n";

fn install(source: &ExportSource<'_>, layout: &ExportLayout<'_>, tree: &FileTree) -> String {
    let mut script = format!("#!/bin/sh\n{}{TOP}", super::file_head(source, "systemd"));
    for file in &tree.files {
        let path = shell(&file.path);
        let mode = file.mode;
        script += &format!("install -D -m {mode:04o} \"$here\"/root/{path} \"$to\"/{path}\n");
    }
    script += &format!("\n{LIVE}systemctl daemon-reload\n");
    for (unit, want, step) in &layout.units {
        let (unit, verb) = (shell(unit), systemctl(*want));
        // Units that are not installed do no harm.
        script += &format!(
            "# {}\nsystemctl {verb} {unit} || echo {unit}: not {} >&2\n",
            super::why(&step.reason),
            want.word()
        );
    }
    if !layout.sysctls.is_empty() {
        script += &format!("sysctl -q -p /{}\n", SYSCTL);
    }
    if !layout.plain.is_empty() {
        script += &format!("systemd-tmpfiles --create /{}\n", TMPFILES);
    }
    for unit in &tree.enabled {
        script += &format!("systemctl enable {unit}\nsystemctl restart {unit}\n");
    }
    if tree.files.iter().any(|file| file.path == GRUB) {
        script += "if command -v update-grub >/dev/null; then update-grub; else\n    \
                   echo 'add the words of NOTES.md to the kernel command line' >&2\nfi\n";
    }
    script
}

fn remove(source: &ExportSource<'_>, layout: &ExportLayout<'_>, tree: &FileTree) -> String {
    let mut script = format!("#!/bin/sh\n{}{TOP}", super::file_head(source, "systemd"));
    script += "if [ -z \"$to\" ]; then\n    :\n";
    for unit in &tree.enabled {
        script += &format!("    systemctl disable --now {unit} || true\n");
    }
    if tree.files.iter().any(|file| file.path == SCRIPT) {
        script += &format!("    if [ -x /{SCRIPT} ]; then /{SCRIPT} stop; fi\n");
    }
    script += "fi\n";
    for file in &tree.files {
        script += &format!("rm -f \"$to\"/{}\n", shell(&file.path));
    }
    script += &format!("\n{LIVE}systemctl daemon-reload\n");
    for (unit, want, _) in &layout.units {
        script += &format!(
            "echo {}\n",
            shell(&format!("{unit} stays {}; its state before is not known here", want.word()))
        );
    }
    if tree.files.iter().any(|file| file.path == GRUB) {
        script += "if command -v update-grub >/dev/null; then update-grub; fi\n";
    }
    script
}
