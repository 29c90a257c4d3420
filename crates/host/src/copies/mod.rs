//! What people have in place of a machine: a folder, a capture, a kernel's configuration, single
//! texts, a report of sos or must-gather. All but the first two become a machine in memory.
//!
//! The files are a stranger's: they are read and bounded, never unpacked to disk, and no path, link
//! or word in them is followed on this machine.

#![expect(clippy::disallowed_methods, reason = "the user names these files")]

mod archive;
mod texts;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use self::archive::{Member, MemberKind};
use crate::capture::form::{CAPTURE_BYTES_MAX, CaptureEntry, CaptureOrigin, clean};
use crate::facts::copied::CUT_MARK;
use crate::root::GIVEN;
use crate::{Capture, Root, RootError};

/// Longest file that is taken whole: /proc/interrupts of 1024 CPUs and 500 interrupts.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Longest list: of a longer one the first part is taken.
const LIST_BYTES_MAX: usize = 1 << 20;

/// Most that is kept of one machine.
const KEPT_BYTES_MAX: usize = 40 << 20;

/// What an entry costs beside its path and bytes.
const ENTRY_BYTES: usize = 160;

impl Root {
    /// A captured machine: a folder, a file of `rtproof capture`, a report, an archive, or a text;
    /// the content decides.
    ///
    /// # Errors
    /// As [`Root::dir`]; a file that is none of these or is damaged.
    pub fn open_path(path: impl AsRef<Path>) -> Result<Self, RootError> {
        Self::open_paths(&[path])
    }

    /// One machine of several texts and archives, or what [`Root::open_path`] takes.
    ///
    /// # Errors
    /// As there; two files that contradict each other, with both names.
    pub fn open_paths(paths: &[impl AsRef<Path>]) -> Result<Self, RootError> {
        let mut collected = Collected::default();
        for path in paths {
            let path = path.as_ref();
            let open = |source| RootError::Open { path: path.into(), source };
            if fs::metadata(path).map_err(open)?.is_dir() {
                match report_in(path) {
                    Some(folder) => collected.take_folder(&folder, path)?,
                    None if paths.len() == 1 => return Self::dir(path),
                    None => return Err(only_texts(path)),
                }
                continue;
            }
            let file = crate::door::read(path).map_err(open)?;
            if let Some(root) = collected.take_file(file, path, paths.len() == 1)? {
                return Ok(root);
            }
        }
        Ok(Self::captured(collected.machine()?))
    }
}

fn only_texts(path: &Path) -> RootError {
    let why = "a whole machine beside other files: give it alone with --root".to_owned();
    RootError::Text { path: path.into(), why }
}

/// The folder of an unpacked report: the one that holds `sos_commands`, or `nodes` of must-gather.
fn report_in(path: &Path) -> Option<PathBuf> {
    let is_report = |folder: &Path| folder.join("sos_commands").is_dir();
    let inner = || {
        let mut entries = fs::read_dir(path).ok()?.flatten().map(|entry| entry.path());
        let inner = entries.next().filter(|_| entries.next().is_none())?;
        (is_report(&inner) || inner.join("nodes").is_dir()).then_some(inner)
    };
    match is_report(path) || path.join("nodes").is_dir() {
        true => Some(path.into()),
        false => inner(),
    }
}

/// What is known of one machine from several files.
#[derive(Default)]
struct Collected {
    entries: BTreeMap<String, CaptureEntry>,
    /// Which file each entry is of, where the user named the file.
    sources: BTreeMap<String, String>,
    folders: BTreeMap<String, BTreeSet<String>>,
    /// Releases of kernels, with the file that says so.
    releases: Vec<(String, String)>,
    parts: BTreeSet<String>,
    notes: BTreeSet<String>,
    kept_bytes: usize,
    /// Whether it holds a tree with /proc and /sys, whose folders are listed.
    is_tree: bool,
    /// Node of a must-gather.
    node: Option<String>,
    conflict: Option<RootError>,
}

/// Where a text puts what it shows.
struct Put<'a> {
    into: &'a mut Collected,
    source: &'a str,
    /// Whether what is there already stays: a report has many words for one thing.
    yields: bool,
    is_cut: bool,
}

impl Put<'_> {
    fn file(&mut self, path: &str, text: &str) {
        let text = text.trim_end().to_owned() + "\n";
        let entry = CaptureEntry::File(text.into_bytes());
        let path = clean(path);
        match self.into.entries.get(&path) {
            Some(old) if *old != entry && !self.yields => {
                let other = self.into.sources.get(&path).cloned().unwrap_or_default();
                let (one, two) = (other, self.source.to_owned());
                self.into.conflict.get_or_insert(RootError::Contradiction { one, two, what: path });
            }
            Some(_) => {}
            None => {
                self.into.sources.insert(path.clone(), self.source.into());
                self.into.keep(path, entry);
            }
        }
    }

    /// For what another text may hold more of.
    fn file_unless_there(&mut self, path: &str, text: &str) {
        if !self.into.entries.contains_key(path) {
            self.file(path, text);
        }
    }

    /// A file of folders that are known to hold no more.
    fn listed(&mut self, path: &str, text: &str) {
        self.into.list(path);
        self.file(path, text);
    }

    fn release(&mut self, release: &str) {
        self.into.releases.push((self.source.into(), release.into()));
    }

    fn call(&mut self, call: &str, answer: &str) {
        self.into.keep(call.into(), CaptureEntry::Call(answer.into()));
    }

    fn note(&mut self, note: &str) {
        self.into.notes.insert(note.into());
    }

    fn log(&mut self, is_from_boot: bool, messages: &[&str]) {
        let from = if is_from_boot { "from boot" } else { "from later" };
        let to = if self.is_cut { "not to the end" } else { "to the end" };
        let text = [&[from, to], messages].concat().join("\n");
        self.into.keep("/dev/kmsg".into(), CaptureEntry::File(text.into_bytes()));
    }
}

impl Collected {
    /// Takes a file that the user named; a root: it is a machine of its own.
    fn take_file(
        &mut self,
        file: fs::File,
        path: &Path,
        is_alone: bool,
    ) -> Result<Option<Root>, RootError> {
        let open = |source| RootError::Open { path: path.into(), source };
        let damaged = |source| RootError::Capture { path: path.into(), source };
        let name = shown(path);
        let unpacked = archive::unpacked(BufReader::with_capacity(1 << 16, file)).map_err(open)?;
        let mut unpacked = BufReader::with_capacity(1 << 16, unpacked);
        if archive::is_tar(unpacked.fill_buf().map_err(open)?) {
            let mut prefix = None;
            let mut take = |member: &Member, bytes: &mut dyn Read| {
                self.take_member(member, bytes, &mut prefix, &name)
            };
            archive::members(&mut unpacked, &mut take).map_err(open)?;
            return Ok(None);
        }
        let mut bytes = Vec::new();
        unpacked.take(CAPTURE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(open)?;
        if bytes.starts_with(b"rtproof capture ") {
            if !is_alone {
                return Err(only_texts(path));
            }
            return Ok(Some(Root::captured(Capture::parse(&bytes).map_err(damaged)?)));
        }
        if let Some(config) = texts::build_config(&bytes) {
            let packed = config.map_err(damaged)?;
            self.parts.insert("a kernel's configuration".into());
            const PATH: &str = "/proc/config.gz";
            let entry = CaptureEntry::File(packed);
            if self.entries.get(PATH).is_some_and(|other| *other != entry) {
                let one = self.sources.remove(PATH).unwrap_or_default();
                let what = "two configurations of a kernel".into();
                return Err(RootError::Contradiction { one, two: name, what });
            }
            self.sources.insert(PATH.into(), name);
            self.keep(PATH.into(), entry);
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes);
        if !self.take_text(&text, &name, false) {
            let why = format!(
                "not a machine or a part of one that is known: a file of `rtproof capture`, a \
                 report of sos or must-gather (.tar.xz, .tar.gz or its folder), a kernel \
                 configuration or a part of one, or one of {}",
                texts::names()
            );
            return Err(RootError::Text { path: path.into(), why });
        }
        Ok(None)
    }

    /// Takes a text if its kind is known.
    fn take_text(&mut self, text: &str, source: &str, yields: bool) -> bool {
        let text = text.trim_start_matches('\u{feff}').replace('\r', "");
        let Some(kind) = texts::recognised(&text) else { return false };
        let mut text = &text[..];
        let is_cut = kind.is_list && text.len() > LIST_BYTES_MAX;
        if is_cut {
            let whole = text.len();
            let end = text.as_bytes()[..LIST_BYTES_MAX].iter().rposition(|&byte| byte == b'\n');
            text = &text[..end.map_or(0, |end| end + 1)];
            let (kept, name) = (text.len(), kind.name);
            self.notes.insert(format!("{name} was cut: {kept} of {whole} bytes were read"));
        } else if text.len() as u64 > FILE_BYTES_MAX {
            self.notes.insert(format!("{} is longer than 8 MiB: it was not read", kind.name));
            return true;
        }
        self.parts.insert(kind.name.into());
        kind.take(text, &mut Put { into: self, source, yields, is_cut });
        true
    }

    fn take_member(
        &mut self,
        member: &Member,
        bytes: &mut dyn Read,
        prefix: &mut Option<String>,
        source: &str,
    ) -> io::Result<()> {
        let path = clean(&member.path);
        let top = path[1..].split('/').next().unwrap_or_default();
        // All of a report is below one folder; another archive may hold the machine's own.
        let prefix = prefix.get_or_insert_with(|| match TOPS.contains(&top) || top.is_empty() {
            true => String::new(),
            false => format!("/{top}"),
        });
        let Some(path) = path.strip_prefix(prefix.as_str()).filter(|path| path.starts_with('/'))
        else {
            return Ok(());
        };
        if is_command(path) {
            return self.take_command(path, member, bytes, source);
        }
        if member.kind == MemberKind::Folder || !is_read(path) {
            return Ok(());
        }
        self.is_tree = true;
        let entry = match &member.kind {
            MemberKind::Link(target) if target.is_empty() || target.len() > 4096 => return Ok(()),
            MemberKind::Link(target) => CaptureEntry::Link(target.clone()),
            _ if member.bytes > FILE_BYTES_MAX => {
                let name = crate::capture::form::escape(path.as_bytes());
                self.notes.insert(format!("{name} is longer than 8 MiB: it was not read"));
                CaptureEntry::There
            }
            _ => {
                let mut read = Vec::new();
                bytes.read_to_end(&mut read)?;
                CaptureEntry::File(read)
            }
        };
        self.list(path);
        self.sources.insert(path.into(), source.into());
        self.keep(path.into(), entry);
        Ok(())
    }

    /// A text among the answers to commands of a report. What is no text that is known is left.
    fn take_command(
        &mut self,
        path: &str,
        member: &Member,
        bytes: &mut dyn Read,
        source: &str,
    ) -> io::Result<()> {
        if member.kind != MemberKind::File {
            return Ok(());
        }
        if let Some((_, rest)) = path.split_once("/nodes/") {
            let node = rest.split('/').next().unwrap_or_default();
            match &self.node {
                Some(other) if other != node => {
                    let (one, two) = (format!("node {other}"), format!("node {node}"));
                    let what = "give the folder of one node".into();
                    self.conflict.get_or_insert(RootError::Contradiction { one, two, what });
                    return Ok(());
                }
                _ => self.node = Some(node.into()),
            }
        }
        let mut text = Vec::new();
        bytes.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
        let yields = self.node.is_none();
        self.take_text(&String::from_utf8_lossy(&text), source, yields);
        Ok(())
    }

    /// An unpacked report. Links in it are taken as texts, never followed.
    fn take_folder(&mut self, folder: &Path, given: &Path) -> Result<(), RootError> {
        let name = shown(given);
        let mut todo = vec![(folder.to_path_buf(), String::new())];
        while let Some((folder, inside)) = todo.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = format!("{inside}/{}", entry.file_name().to_string_lossy());
                let Ok(of) = entry.metadata() else { continue };
                let kind = match of.file_type() {
                    kind if kind.is_dir() => {
                        todo.push((entry.path(), path));
                        continue;
                    }
                    kind if kind.is_symlink() => match fs::read_link(entry.path()) {
                        Ok(target) => MemberKind::Link(target.to_string_lossy().into_owned()),
                        Err(_) => continue,
                    },
                    kind if kind.is_file() && (is_read(&path) || is_command(&path)) => {
                        MemberKind::File
                    }
                    _ => continue,
                };
                let mut bytes: Box<dyn Read> = match kind {
                    MemberKind::File => match crate::door::read(&entry.path()) {
                        Ok(file) => Box::new(file.take(FILE_BYTES_MAX + 1)),
                        Err(_) => continue,
                    },
                    _ => Box::new(io::empty()),
                };
                let member = Member { path, kind, bytes: of.len() };
                let open = |source| RootError::Open { path: given.into(), source };
                self.take_member(&member, &mut bytes, &mut Some(String::new()), &name)
                    .map_err(open)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, path: String, entry: CaptureEntry) {
        let bytes = match &entry {
            CaptureEntry::File(bytes) => bytes.len(),
            CaptureEntry::Link(text) | CaptureEntry::Call(text) => text.len(),
            _ => 0,
        };
        let cost = bytes + 2 * path.len() + ENTRY_BYTES;
        if self.kept_bytes + cost > KEPT_BYTES_MAX {
            self.notes.insert("more than 40 MiB of files: the others were not read".into());
            return;
        }
        self.kept_bytes += cost;
        self.entries.insert(path, entry);
    }

    /// Adds a path to the folders above it.
    fn list(&mut self, path: &str) {
        let mut path = path;
        while let Some((folder, name)) = path.rsplit_once('/') {
            let names = self.folders.entry(folder.into()).or_default();
            if self.kept_bytes > KEPT_BYTES_MAX || !names.insert(name.into()) {
                return;
            }
            self.kept_bytes += name.len() + ENTRY_BYTES / 2;
            path = folder;
        }
    }

    fn machine(mut self) -> Result<Capture, RootError> {
        let mut releases = self.releases.iter();
        if let Some((one, first)) = releases.next()
            && let Some((two, other)) = releases.find(|(_, release)| release != first)
        {
            let what = format!("the kernels {first} and {other}");
            return Err(RootError::Contradiction { one: one.clone(), two: two.clone(), what });
        }
        if let Some(conflict) = self.conflict {
            return Err(conflict);
        }
        let is_whole = self.kept_bytes < KEPT_BYTES_MAX;
        for (folder, names) in self.folders {
            let folder = if folder.is_empty() { "/".to_owned() } else { folder };
            let is_listed = is_whole && (folder != "/" || self.is_tree);
            if is_listed {
                let names = names.into_iter().collect();
                self.entries.entry(folder).or_insert(CaptureEntry::Folder(names));
            }
        }
        let is_config = self.entries.len() == 1 && self.entries.contains_key("/proc/config.gz");
        let mut given = vec![if is_config { "config" } else { "files" }.to_owned()];
        if !is_config {
            given.extend(self.is_tree.then(|| "an archive of its files".to_owned()));
            given.extend(self.parts);
        }
        given.extend(self.notes.iter().map(|note| format!("{CUT_MARK}{note}")));
        self.entries.insert(GIVEN.into(), CaptureEntry::Call(given.join("\n")));
        let about = Vec::new();
        Ok(Capture { origin: CaptureOrigin::Files, about, entries: self.entries })
    }
}

/// A name for an error, without characters that a terminal obeys.
fn shown(path: &Path) -> String {
    crate::capture::form::escape(path.to_string_lossy().as_bytes())
}

/// Tops of a machine's tree and of a report.
const TOPS: &[&str] = &[
    "proc",
    "sys",
    "etc",
    "boot",
    "lib",
    "usr",
    "run",
    "var",
    "dev",
    "root",
    "sos_commands",
    "nodes",
];

/// Folders of a report with what facts are read from, and files there that are large and are not.
const READ: &[&str] = &[
    "/proc/",
    "/sys/",
    "/boot/config-",
    "/boot/loader/",
    "/boot/grub",
    "/etc/default/",
    "/etc/security/",
    "/etc/pam.d/",
    "/etc/systemd/",
    "/etc/sysctl",
    "/etc/sysconfig/",
    "/etc/tuned/",
    "/etc/modprobe.d/",
    "/etc/machine-id",
    "/etc/os-release",
    "/etc/kernel/",
    "/run/systemd/",
    "/usr/lib/systemd/",
    "/lib/systemd/",
    "/usr/lib/sysctl.d/",
    "/usr/lib/tuned/",
    "/usr/lib/os-release",
];

const NOT_READ: &[&str] = &[
    "kallsyms",
    "kcore",
    "kmsg",
    "smaps",
    "maps",
    "pagetypeinfo",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
    "zoneinfo",
    "kpageflags",
    "kpagecount",
    "sched_debug",
];

fn is_read(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_config = path.starts_with("/lib/modules/") || path.starts_with("/usr/lib/modules/");
    (READ.iter().any(|start| path.starts_with(start)) || (is_config && name == "config"))
        && !NOT_READ.contains(&name)
}

/// Answers to commands that hold a text that is known, by their names in the two reports.
fn is_command(path: &str) -> bool {
    let names = ["uname_-a", "dmesg", "lscpu", "sysctl_-a", "ethtool_-", "ps_-eLo", "proc_cmdline"];
    let name = path.rsplit('/').next().unwrap_or_default();
    (path.starts_with("/sos_commands/") || path.contains("/nodes/"))
        && names.iter().any(|start| name.starts_with(start))
}
