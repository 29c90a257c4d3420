//! What names a machine, its people and its network is left out of a capture, or given another
//! name: the same one for the same thing, so that what belongs together still does.
//!
//! Findings must not change by it: names of CPUs, devices, parameters and tasks stay, and of the
//! boot parameters only values change. Deterministic, and nothing left to do the second time.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv6Addr,
};

use crate::capture::form::{Capture, CaptureEntry};
use crate::facts::app::is_unit_setting;
use crate::facts::memory::OPTIONS;
use crate::facts::platform::is_sysctl_setting;
use crate::text::quoted_words;

/// Files that hold what names this machine alone. What is read from them is a hash at most, and a
/// hash of another text would be a machine that there is not.
const IDENTITIES: &[&str] = &[
    "/etc/machine-id",
    "/proc/device-tree/serial-number",
    "/proc/sys/kernel/random/boot_id",
    "/sys/class/dmi/id/board_serial",
    "/sys/class/dmi/id/chassis_serial",
    "/sys/class/dmi/id/product_serial",
    "/sys/class/dmi/id/product_uuid",
];

/// Files that hold a host name and nothing else.
const HOST_NAMES: &[&str] =
    &["/etc/hostname", "/proc/sys/kernel/domainname", "/proc/sys/kernel/hostname"];

/// Host names that identify no machine.
const COMMON_HOST_NAMES: &[&str] = &["", "(none)", "localhost", "localhost.localdomain"];

/// Shortest host name that is replaced elsewhere: a shorter one is part of too many words.
const HOST_CHARS_MIN: usize = 4;

/// Words that checks look for: a machine of that name keeps it where it is not alone in a file.
const WORDS: &[&str] = &[
    "auto",
    "cgroup",
    "containerd",
    "cpus",
    "cpuset",
    "docker",
    "domain",
    "effective",
    "full",
    "init",
    "irqbalance",
    "isolated",
    "kubepods",
    "lazy",
    "libpod",
    "machine",
    "managed_irq",
    "nohz",
    "none",
    "partition",
    "poll",
    "scope",
    "service",
    "slice",
    "system",
    "systemd",
    "voluntary",
];

/// Folders whose paths and texts are the kernel's: a host name in them is a word of the kernel.
const OF_THE_KERNEL: &[&str] = &["/boot/", "/lib/", "/proc/sys/", "/sys/", "/usr/lib/"];

/// Where the kernel lists control groups, which people name.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Swap files that identify no machine.
const COMMON_SWAPS: &[&str] = &["/swap", "/swap.img", "/swapfile"];

/// Parts of parameters' names whose value is a secret.
const SECRETS: &[&str] =
    &["apikey", "api_key", "credential", "passphrase", "passw", "psk", "secret", "token"];

/// Boot parameters that name a disk: kept where that is a device of the kernel.
const DISKS: &[&str] = &["resume", "root", "swap"];

/// Boot parameters whose value names people, places or networks; a trailing `*` is any ending.
const PARAMETERS: &[&str] = &[
    "BOOTIF",
    "bond",
    "bridge",
    "coreos.*",
    "cryptdevice",
    "cryptkey",
    "hostname",
    "ifname",
    "ignition.*",
    "init",
    "inst.*",
    "ip",
    "iscsi*",
    "ks",
    "ks*",
    "luks*",
    "nameserver",
    "netconsole",
    "netroot",
    "nfsaddrs",
    "nfsroot",
    "ostree",
    "proxy",
    "rd.iscsi*",
    "rd.luks*",
    "rd.lvm*",
    "rd.md*",
    "rd.nvmf*",
    "rd.route",
    "rdinit",
    "systemd.hostname",
    "systemd.machine_id",
    "systemd.setenv",
    "team",
    "url",
    "vlan",
];

/// Mount points that identify no one.
const COMMON_POINTS: &[&str] = &[
    "/",
    "/boot",
    "/boot/efi",
    "/data",
    "/efi",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/run",
    "/srv",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];

/// Folders of the kernel, whose mount points it names.
const COMMON_TREES: &[&str] = &["/dev", "/proc", "/sys"];

/// Accounts that every machine of a kind has: they identify no one.
const COMMON_ACCOUNTS: &[&str] = &[
    "adm", "audio", "jackuser", "pipewire", "realtime", "root", "rt", "rtkit", "sudo", "users",
    "video", "wheel", "xenomai",
];

/// New names for old ones.
#[derive(Debug, Default)]
struct Names {
    new: BTreeMap<(&'static str, String), usize>,
    /// Names given of each kind.
    counts: BTreeMap<&'static str, usize>,
    /// The machine's own, where it is worth looking for.
    hosts: BTreeSet<String>,
}

impl Capture {
    /// Leaves out or renames what names the machine, its users and its network. Returns how many
    /// things that were.
    pub fn redact(&mut self) -> usize {
        let mut names = Names::default();
        for path in HOST_NAMES {
            if let Some(CaptureEntry::File(bytes)) = self.entries.get(*path) {
                let host = String::from_utf8_lossy(bytes).trim().to_owned();
                let first = host.split('.').next().unwrap_or_default().to_owned();
                names.hosts.extend([host, first].into_iter().filter(|host| is_telling(host)));
            }
        }
        let mut left_out = 0;
        let entries = std::mem::take(&mut self.entries);
        for (path, entry) in entries {
            let entry = match entry {
                CaptureEntry::File(_) if IDENTITIES.contains(&path.as_str()) => {
                    left_out += 1;
                    CaptureEntry::Redacted
                }
                entry => names.entry(&path, entry),
            };
            self.entries.insert(names.path(&path), entry);
        }
        left_out + names.new.len()
    }
}

impl Names {
    fn name(&mut self, kind: &'static str, old: &str) -> String {
        if is_new_name(old) {
            return old.to_owned();
        }
        let count = self.counts.entry(kind).or_default();
        let number = *self.new.entry((kind, old.to_lowercase())).or_insert_with(|| {
            *count += 1;
            *count
        });
        format!("{kind}-{number}")
    }

    fn entry(&mut self, path: &str, entry: CaptureEntry) -> CaptureEntry {
        match entry {
            CaptureEntry::File(bytes) => match String::from_utf8(bytes) {
                Ok(text) => CaptureEntry::File(self.file(path, &text).into_bytes()),
                Err(error) => CaptureEntry::File(self.bytes(path, error.as_bytes())),
            },
            CaptureEntry::Lines(text) => CaptureEntry::Lines(self.file(path, &text)),
            CaptureEntry::Gzip(text) => CaptureEntry::Gzip(self.known(&text)),
            CaptureEntry::Folder(names) => {
                let is_free = !path.starts_with("/proc") && !of_the_kernel(path);
                let new = |name: &String| self.replaced(name, is_free);
                let names: BTreeSet<String> = names.iter().map(new).collect();
                CaptureEntry::Folder(names.into_iter().collect())
            }
            CaptureEntry::Link(target) => CaptureEntry::Link(self.free(&target)),
            CaptureEntry::Call(answer) if path == "kernel log" => {
                CaptureEntry::Call(self.known(&answer))
            }
            // Releases, numbers and lists of CPUs identify no one.
            CaptureEntry::Call(answer) => CaptureEntry::Call(answer),
            entry => entry,
        }
    }

    /// Paths are those that checks ask for: only below /etc and /run people choose names.
    fn path(&mut self, path: &str) -> String {
        match path {
            _ if ["/boot/", "/lib/", "/usr/lib/"].iter().any(|top| path.starts_with(top)) => {
                path.to_owned()
            }
            _ => self.replaced(path, !path.starts_with("/proc") && !of_the_kernel(path)),
        }
    }

    /// What is no text in whole. Tables of the firmware stay: their bytes mean something else.
    fn bytes(&mut self, path: &str, bytes: &[u8]) -> Vec<u8> {
        if path.starts_with("/sys/") {
            return bytes.to_owned();
        }
        if path.ends_with("/environ") {
            return self.file(path, &String::from_utf8_lossy(bytes)).into_bytes();
        }
        let mut new = Vec::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            new.extend(self.file(path, chunk.valid()).into_bytes());
            new.extend(chunk.invalid());
        }
        new
    }

    fn file(&mut self, path: &str, text: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or_default();
        match path {
            _ if HOST_NAMES.contains(&path) => match text.trim() {
                host if COMMON_HOST_NAMES.contains(&host) => text.to_owned(),
                host => text.replace(host, &self.name("host", host)),
            },
            // A release may look like an address: 5.15.133.1.
            "/proc/sys/kernel/osrelease" | "/proc/sys/kernel/version" => text.to_owned(),
            "/proc/cmdline" => self.parameters(text),
            "/proc/version" => self.builder(text),
            "/etc/group" => self.groups(text),
            crate::facts::platform::TICKS => self.ticks(text),
            _ if path.starts_with("/etc/security/limits.") => self.limits(text),
            _ if ["/etc/pam.d/", "/usr/lib/pam.d/"].iter().any(|top| path.starts_with(top)) => {
                of_limits_alone(text)
            }
            _ if path == "/etc/sysctl.conf" || path.contains("/sysctl.d/") => {
                self.free(&lines_kept(text, is_sysctl_setting))
            }
            _ if is_of_systemd(path) => self.unit(text),
            "/etc/default/irqbalance" | "/etc/sysconfig/irqbalance" => {
                self.free(&lines_kept(text, |line| line.contains("IRQBALANCE_BANNED_CPU")))
            }
            "/proc/swaps" => self.swaps(text),
            _ if path.ends_with("/cmdline.txt") => self.parameters(text),
            _ if is_boot_loader(path) => self.boot_loader(text),
            "/proc/cpuinfo" => serial_left_out(&self.known(text)),
            "/proc/self/mounts" => self.mounts(text),
            "/proc/stat" | "/proc/interrupts" | "/proc/meminfo" => self.known(text),
            _ if name == "environ" => container_alone(text),
            _ if name == "stat" => addresses_left_out(text),
            _ if of_the_kernel(path) => self.known(text),
            // Comments name people, and no reader needs them.
            _ if path.starts_with("/etc/") => {
                self.free(&lines_kept(text, |line| !line.trim_start().starts_with(['#', ';'])))
            }
            _ => self.free(text),
        }
    }

    /// Configuration of systemd: the settings that are read. Commands, the environment and comments
    /// are left out.
    fn unit(&mut self, text: &str) -> String {
        let mut new = String::new();
        let mut goes_on = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if trimmed.starts_with(['#', ';']) {
                continue;
            }
            let key = trimmed.split_once('=').map(|(key, _)| key.trim());
            let is_kept = goes_on.unwrap_or_else(|| match key {
                Some(key) => is_unit_setting(key),
                None => trimmed.starts_with('['),
            });
            let is_first = goes_on.is_none();
            goes_on = trimmed.ends_with('\\').then_some(is_kept);
            if is_kept {
                new += &match trimmed.split_once('=') {
                    Some((key, user)) if is_first && key.trim() == "User" && !user.is_empty() => {
                        format!("User={}", self.account("user", user.trim()))
                    }
                    _ => self.free(line),
                };
                new.push('\n');
            }
        }
        new
    }

    /// Swap areas: partitions under the kernel's names stay.
    fn swaps(&mut self, text: &str) -> String {
        let mut line = |line: &str| {
            let length = line.find(char::is_whitespace).unwrap_or(line.len());
            let (area, rest) = line.split_at(length);
            match is_named_disk(area) && !COMMON_SWAPS.contains(&area) {
                true => self.name("value", area) + rest,
                false => line.to_owned(),
            }
        };
        text.split('\n').map(&mut line).collect::<Vec<_>>().join("\n")
    }

    /// Text that the kernel writes: what is recognised by its form.
    fn known(&mut self, text: &str) -> String {
        self.replaced(text, false)
    }

    /// Text that people write, which may hold the host name as well.
    fn free(&mut self, text: &str) -> String {
        self.replaced(text, true)
    }

    fn replaced(&mut self, text: &str, with_hosts: bool) -> String {
        let hosts = if with_hosts { self.hosts.clone() } else { BTreeSet::new() };
        let mut new = String::with_capacity(text.len());
        let mut rest = 0;
        let mut at = 0;
        while at < text.len() {
            match self::pattern_at(text, at, &hosts) {
                Some(Pattern { kind, from, to }) => {
                    new += &text[rest..from];
                    new += &self.name(kind, &text[from..to]);
                    (rest, at) = (to, to);
                }
                None => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        new + &text[rest..]
    }

    /// The boot line. What follows `--` are arguments of the first process.
    fn parameters(&mut self, line: &str) -> String {
        let mut new = Vec::new();
        for word in quoted_words(line.trim_end()) {
            if word == "--" {
                new.push("-- left-out".to_owned());
                break;
            }
            let sensitive = |key: &str| {
                let is_known = PARAMETERS.iter().any(|known| match known.strip_suffix('*') {
                    Some(start) => key.starts_with(start),
                    None => key == *known,
                });
                let key = key.to_lowercase();
                is_known || SECRETS.iter().any(|part| key.contains(part))
            };
            new.push(match word.split_once('=') {
                Some((key, value)) if sensitive(key) && !value.is_empty() => {
                    format!("{key}={}", self.name("value", value))
                }
                Some((key, value))
                    if value.contains("://") || (DISKS.contains(&key) && is_named_disk(value)) =>
                {
                    format!("{key}={}", self.name("value", value))
                }
                Some((key, value)) => format!("{key}={}", self.free(value)),
                None => self.known(word),
            });
        }
        new.join(" ") + &line[line.trim_end().len()..]
    }

    /// Mounts: what is mounted and where names disks, servers and people; kind and options stay.
    fn mounts(&mut self, text: &str) -> String {
        let mut new = String::with_capacity(text.len());
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [what, point, kind, options, rest @ ..] = &words[..] else {
                continue;
            };
            let what = if what == kind { (*what).to_owned() } else { "left-out".to_owned() };
            let kept: Vec<&str> =
                options.split(',').filter(|option| OPTIONS.contains(option)).collect();
            let words = [&what, &self.mount_point(point), *kind, &kept.join(",")];
            new += &words.join(" ");
            for word in rest {
                new.push(' ');
                new += word;
            }
            new.push('\n');
        }
        new
    }

    /// A folder that many machines have stays; below it, and elsewhere, people choose the names.
    fn mount_point(&mut self, point: &str) -> String {
        let is_common = COMMON_POINTS.contains(&point)
            || COMMON_TREES.iter().any(|top| {
                point.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
        if is_common {
            return self.free(point);
        }
        // What is left out of the facts by its folder stays in it.
        let parents =
            ["/run/", "/snap/", "/var/lib/containers/", "/var/lib/docker/", "/var/lib/kubelet/"];
        let parent = parents.into_iter().find(|parent| point.starts_with(parent)).unwrap_or("/");
        match point.strip_prefix(parent) {
            Some(name) => format!("{parent}{}", self.name("value", name)),
            None => self.free(point),
        }
    }

    fn account(&mut self, kind: &'static str, name: &str) -> String {
        match COMMON_ACCOUNTS.contains(&name) {
            true => name.to_owned(),
            false => self.name(kind, name),
        }
    }

    /// `name:password:number:member,member`.
    fn groups(&mut self, text: &str) -> String {
        let mut line = |line: &str| {
            let [name, _, number, members] = line.split(':').collect::<Vec<_>>()[..] else {
                return String::new();
            };
            let users = members.split(',').filter(|user| !user.is_empty());
            let users: Vec<String> = users.map(|user| self.account("user", user)).collect();
            format!("{}:x:{number}:{}", self.account("group", name), users.join(","))
        };
        text.split('\n').map(&mut line).collect::<Vec<_>>().join("\n")
    }

    /// Lines of limits.conf(5): comments are left out, users and groups get other names.
    fn limits(&mut self, text: &str) -> String {
        let mut line = |line: &str| {
            let words: Vec<&str> =
                line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let Some((domain, rest)) = words.split_first() else {
                return String::new();
            };
            let domain = match domain.split_at_checked(1) {
                _ if domain.contains(':') || ["*", "%"].contains(domain) => (*domain).to_owned(),
                Some((mark @ ("@" | "%"), group)) => {
                    format!("{mark}{}", self.account("group", group))
                }
                _ => self.account("user", domain),
            };
            [&[domain.as_str()], rest].concat().join(" ")
        };
        text.split('\n').map(&mut line).collect::<Vec<_>>().join("\n")
    }

    /// Ticks of the firmware's list: the user gets another name, remarks are left out.
    fn ticks(&mut self, text: &str) -> String {
        let lines = lines_kept(text, |line| !line.trim_start().starts_with('#'));
        let mut line = |line: &str| {
            let mut fields: Vec<&str> = line.split('|').map(str::trim).take(5).collect();
            let who = fields.get(3).map(|who| self.account("user", who));
            if let (Some(field), Some(who)) = (fields.get_mut(3), &who) {
                *field = who;
            }
            fields.join(" | ")
        };
        lines.split('\n').map(&mut line).collect::<Vec<_>>().join("\n")
    }

    /// Configuration of a boot loader: of each line that checks read, the parameters. Menus,
    /// scripts and passwords are left out.
    fn boot_loader(&mut self, text: &str) -> String {
        let words = ["linux", "linuxefi", "version", "options", "append", "label", "default"];
        let mut kept = String::new();
        for line in text.lines() {
            let line = line.trim();
            let variable = line.split_once('=').filter(|(name, _)| {
                name.starts_with("GRUB_CMDLINE_LINUX")
                    || ["tuned_params", "kernelopts"].contains(name)
            });
            if let Some((name, value)) = variable {
                let value = self.parameters(value.trim().trim_matches(['"', '\'']));
                kept += &format!("{name}=\"{value}\"\n");
            } else if let Some((word, rest)) = line.split_once(char::is_whitespace)
                && words.iter().any(|known| word.eq_ignore_ascii_case(known))
            {
                // A release may look like an address.
                let rest = match word.eq_ignore_ascii_case("version") {
                    true => rest.trim().to_owned(),
                    false => self.parameters(rest.trim()),
                };
                kept += &format!("{word} {rest}\n");
            }
        }
        kept
    }

    /// `Linux version 6.1.0 (user@host) (gcc ...) #1 ...`.
    fn builder(&mut self, text: &str) -> String {
        let parts = text.split_once(" (").and_then(|(before, rest)| {
            let (who, after) = rest.split_once(')')?;
            let (user, host) = who.split_once('@')?;
            Some((before, user, host, after))
        });
        match parts {
            Some((before, user, host, after)) => {
                let (user, host) = (self.name("user", user), self.name("host", host));
                format!("{before} ({user}@{host}){}", self.known(after))
            }
            None => self.known(text),
        }
    }
}

/// Whether a host name is worth looking for elsewhere.
fn is_telling(host: &str) -> bool {
    host.len() >= HOST_CHARS_MIN
        && !COMMON_HOST_NAMES.contains(&host)
        && !WORDS.contains(&host.to_lowercase().as_str())
        && !host.bytes().all(|byte| byte.is_ascii_digit())
}

/// Files that hold boot entries, or what they are made of.
fn is_boot_loader(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["grub.cfg", "grubenv", "extlinux.conf"].contains(&name)
        || path == "/etc/default/grub"
        || path.starts_with("/etc/default/grub.d/")
        || path.contains("/loader/entries/")
}

fn of_the_kernel(path: &str) -> bool {
    OF_THE_KERNEL.iter().any(|top| path.starts_with(top)) && !path.starts_with(CONTROL_GROUPS)
}

/// Units of systemd and its own configuration.
fn is_of_systemd(path: &str) -> bool {
    let tops = ["/etc/", "/run/", "/usr/lib/", "/usr/local/lib/", "/lib/"];
    tops.iter().any(|top| path.strip_prefix(top).is_some_and(|rest| rest.starts_with("systemd/")))
}

/// The lines that are read, each where it was.
fn lines_kept(text: &str, is_kept: impl Fn(&str) -> bool) -> String {
    let line = |line| if is_kept(line) { line } else { "" };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A disk under a name that people gave: a volume group, a share on a server.
fn is_named_disk(value: &str) -> bool {
    let is_of_the_kernel = |name: &str| !name.contains('/') && !name.starts_with("mapper");
    match value.strip_prefix("/dev/") {
        Some(name) => !is_of_the_kernel(name),
        None => value.contains([':', '/']),
    }
}

/// Whether this was given here, so that nothing changes the second time.
fn is_new_name(text: &str) -> bool {
    let kinds = ["group", "host", "id", "ip", "label", "mac", "user", "uuid", "value"];
    text.rsplit_once('-').is_some_and(|(kind, number)| {
        kinds.contains(&kind) && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The board's number of a Raspberry Pi and others: `Serial : 10000000abcd`.
fn serial_left_out(text: &str) -> String {
    let line = |line: &str| match line.split_once(':') {
        Some((key, _)) if key.trim() == "Serial" => format!("{key}: left-out"),
        _ => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Of an environment only the name of the container is read; the rest is private.
fn container_alone(text: &str) -> String {
    let kept = text.split('\0').filter(|variable| variable.starts_with("container="));
    kept.map(|variable| format!("{variable}\0")).collect()
}

/// Of the stacks of pam.d(5) only who includes whom and pam_limits are read.
fn of_limits_alone(text: &str) -> String {
    let line = |line: &str| {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let is_read = ["include", "substack", "pam_limits.so"].iter().any(|w| line.contains(w));
        if is_read { line.to_owned() } else { String::new() }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Addresses of memory in /proc/PID/stat (fields 26 to 30, 35 and 45 to 51 of proc(5)): they change
/// at every start and show an attacker where things are.
fn addresses_left_out(text: &str) -> String {
    let Some((head, tail)) = text.rsplit_once(')') else {
        return text.to_owned();
    };
    let field = |(at, field)| match at + 2 {
        26..=30 | 35 | 45..=51 if field != "\n" => {
            if str::ends_with(field, '\n') {
                "0\n"
            } else {
                "0"
            }
        }
        _ => field,
    };
    // The text between `)` and field 3 is empty, so that field N is the part N - 2.
    let fields: Vec<&str> = tail.split(' ').enumerate().map(field).collect();
    format!("{head}){}", fields.join(" "))
}

// Things that are recognised by their form: hardware and network addresses, UUIDs, digests, home
// folders, disk labels.

/// Something found, and what kind of name it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pattern {
    kind: &'static str,
    from: usize,
    to: usize,
}

/// Fewest hexadecimal digits of an id: a machine-id has 32, masks and addresses of the kernel 16.
const ID_DIGITS_MIN: usize = 32;

/// What comes before the name of a disk.
const MARKS: &[(&str, &str)] =
    &[("UUID=", "uuid"), ("PARTUUID=", "uuid"), ("LABEL=", "label"), ("PARTLABEL=", "label")];

/// What begins here; `at` is the start of a character.
fn pattern_at(text: &str, at: usize, hosts: &BTreeSet<String>) -> Option<Pattern> {
    let bytes = text.as_bytes();
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let found = |kind, from, length| Some(Pattern { kind, from, to: from + length });
    let rest = &bytes[at..];
    if let Some(name) = rest.strip_prefix(b"/home/") {
        let from = at + rest.len() - name.len();
        let length =
            length_of(name, |byte| !byte.is_ascii_whitespace() && !b"/\",;:".contains(&byte));
        return if length > 0 { found("user", from, length) } else { None };
    }
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    if before != Some(b'_') {
        let mark = MARKS.iter().find(|(mark, _)| rest.starts_with(mark.as_bytes()));
        if let Some((mark, kind)) = mark {
            let from = at + mark.len();
            let length = length_of(&bytes[from..], |byte| !b" \t\n\",;:".contains(&byte));
            return if length > 0 { found(kind, from, length) } else { None };
        }
    }
    // The longer of two that begin alike comes later.
    if let Some(host) = hosts.iter().rev().find(|host| is_word(bytes, at, host)) {
        return found("host", at, host.len());
    }
    // A network card named by its address (systemd.net-naming-scheme).
    if let Some(address) = rest.strip_prefix(b"enx")
        && length_of(address, |byte| byte.is_ascii_hexdigit()) == 12
        && ends(&address[12..])
    {
        return found("mac", at + 3, 12);
    }
    if !rest.first()?.is_ascii_hexdigit() && rest.first() != Some(&b':') {
        return None;
    }
    if let Some(length) = uuid(rest) {
        return found("uuid", at, length);
    }
    if let Some(length) = mac(rest) {
        return found("mac", at, length);
    }
    let digits = length_of(rest, |byte| byte.is_ascii_hexdigit());
    if digits >= ID_DIGITS_MIN && ends(&rest[digits..]) {
        return found("id", at, digits);
    }
    if let Some(length) = ipv6(text, at) {
        return found("ip", at, length);
    }
    if before.is_some_and(|byte| b".-_+~".contains(&byte)) {
        // Part of a version.
        return None;
    }
    ipv4(rest).and_then(|length| found("ip", at, length))
}

fn length_of(bytes: &[u8], belongs: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !belongs(byte)).unwrap_or(bytes.len())
}

fn ends(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| !byte.is_ascii_alphanumeric())
}

/// Whether a word is here on its own, or in a name like `rhel_robot7`.
fn is_word(bytes: &[u8], at: usize, word: &str) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric();
    let here = bytes.get(at..at + word.len());
    here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
        && !bytes.get(at + word.len()).is_some_and(joins)
        && !at.checked_sub(1).is_some_and(|before| joins(&bytes[before]) || bytes[before] == b'.')
}

/// 8-4-4-4-12.
fn uuid(rest: &[u8]) -> Option<usize> {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let (id, after) = rest.split_at_checked(36)?;
    (id.iter().enumerate().all(fits) && ends(after)).then_some(id.len())
}

/// Six pairs or more: Ethernet, with the type before it (BOOTIF), InfiniBand, WWN.
fn mac(rest: &[u8]) -> Option<usize> {
    let is_pair =
        |at: usize| rest.get(at..at + 2).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit));
    let between = *rest.get(2).filter(|byte| b":-".contains(byte))?;
    let (mut length, mut pairs) = (0, 0);
    while is_pair(length) {
        (length, pairs) = (length + 2, pairs + 1);
        if rest.get(length) != Some(&between) || !is_pair(length + 1) {
            break;
        }
        length += 1;
    }
    (pairs >= 6 && ends(&rest[length..])).then_some(length)
}

/// Two groups or more: `::` and `::1` name no one, and `0::` begins a line of a cgroup file.
fn ipv6(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    let run = length_of(rest.as_bytes(), |byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
    let run = rest[..run].trim_end_matches(['.']);
    let groups = run.split(':').filter(|group| !group.is_empty()).count();
    let is_address = groups >= 2 && run.parse::<Ipv6Addr>().is_ok();
    (is_address && ends(&rest.as_bytes()[run.len()..])).then_some(run.len())
}

/// Four numbers, and no more: versions have other forms, and `5.15.133.1-microsoft` is one.
fn ipv4(rest: &[u8]) -> Option<usize> {
    let mut length = 0;
    for part in 0..4 {
        if part > 0 {
            if rest.get(length) != Some(&b'.') {
                return None;
            }
            length += 1;
        }
        let digits = length_of(&rest[length..], |byte| byte.is_ascii_digit());
        let number = std::str::from_utf8(&rest[length..length + digits]).ok()?;
        number.parse::<u8>().ok()?;
        length += digits;
    }
    let after = &rest[length..];
    let goes_on = match after.first() {
        Some(b'.') => !ends(&after[1..]),
        Some(b'-') => after.get(1).is_some_and(u8::is_ascii_alphabetic),
        Some(b'+') => true,
        _ => false,
    };
    (ends(after) && !goes_on && after.first() != Some(&b'_')).then_some(length)
}
