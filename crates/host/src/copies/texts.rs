//! Single texts that people paste, recognised by what they hold: each becomes the files of /proc
//! and /sys that it shows.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::Put;
use crate::capture::form::CaptureError;
use crate::facts::kernel::is_whole_config;
use crate::{CpuList, text::field};

/// One kind of text.
pub(super) struct Text {
    /// As an answer names it.
    pub(super) name: &'static str,
    is: fn(&str) -> bool,
    take: fn(&str, &mut Put<'_>),
    /// Whether a part of it says less, but nothing that is wrong.
    pub(super) is_list: bool,
}

/// Every kind that is taken, but for a kernel's configuration; the first that fits is it.
const TEXTS: &[Text] = &[
    Text { name: "uname -a", is: is_uname, take: take_uname, is_list: false },
    Text { name: "/proc/version", is: is_version, take: take_version, is_list: false },
    Text { name: "/proc/interrupts", is: is_interrupts, take: take_interrupts, is_list: false },
    Text { name: "/proc/cpuinfo", is: is_cpuinfo, take: take_cpuinfo, is_list: false },
    Text { name: "lscpu", is: is_lscpu, take: take_lscpu, is_list: false },
    Text { name: "dmesg", is: is_dmesg, take: take_dmesg, is_list: true },
    Text { name: "ps -eLo", is: is_ps, take: take_ps, is_list: false },
    Text { name: "ethtool", is: is_ethtool, take: take_ethtool, is_list: false },
    Text { name: "sysctl -a", is: is_sysctl, take: take_sysctl, is_list: true },
    Text { name: "/proc/cmdline", is: is_cmdline, take: take_cmdline, is_list: false },
];

/// What is taken, for the error about what is not.
pub(super) fn names() -> String {
    let names: Vec<&str> = TEXTS.iter().map(|text| text.name).collect();
    names.join(", ")
}

pub(super) fn recognised(text: &str) -> Option<&'static Text> {
    TEXTS.iter().find(|kind| (kind.is)(text))
}

impl Text {
    pub(super) fn take(&self, text: &str, put: &mut Put<'_>) {
        (self.take)(text, put);
    }
}

/// The one line of a text that has no more.
fn only_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next().filter(|_| lines.next().is_none()).map(str::trim)
}

// uname, /proc/version.

/// `Linux HOST RELEASE #1 SMP ... MACHINE [...] GNU/Linux`.
fn uname(text: &str) -> Option<[String; 4]> {
    let words: Vec<&str> = only_line(text)?.split_whitespace().collect();
    let ["Linux", host, release, build @ ..] = &words[..] else { return None };
    let is_machine = |word: &str| {
        let exact = ["x86_64", "aarch64", "s390x", "s390", "ppc", "ppc64", "ppc64le", "mips"];
        let starts = ["armv", "riscv", "mips64", "loongarch", "sparc", "parisc"];
        exact.contains(&word)
            || starts.iter().any(|start| word.starts_with(start))
            || (word.len() == 4 && word.starts_with('i') && word.ends_with("86"))
    };
    let at = build.iter().position(|word| is_machine(word))?;
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && release.contains('.');
    let is_build = build.first().is_some_and(|word| word.starts_with('#'));
    (is_release && is_build)
        .then(|| [*host, *release, &build[..at].join(" "), build[at]].map(str::to_owned))
}

fn is_uname(text: &str) -> bool {
    uname(text).is_some()
}

fn take_uname(text: &str, put: &mut Put<'_>) {
    let Some([host, release, build, machine]) = uname(text) else { return };
    put.file("/proc/sys/kernel/hostname", &host);
    put.release(&release);
    put.file("/proc/sys/kernel/osrelease", &release);
    put.file("/proc/sys/kernel/version", &build);
    put.file("/proc/sys/kernel/arch", &machine);
}

fn release_of_version(text: &str) -> Option<&str> {
    text.strip_prefix("Linux version ")?.split(' ').next()
}

fn is_version(text: &str) -> bool {
    only_line(text).is_some_and(|line| release_of_version(line).is_some())
}

fn take_version(text: &str, put: &mut Put<'_>) {
    if let Some(release) = release_of_version(text.trim()) {
        put.release(release);
    }
    put.file("/proc/version", text.trim());
}

// Files of /proc as they are.

fn is_interrupts(text: &str) -> bool {
    let Some(head) = text.lines().find(|line| !line.trim().is_empty()) else { return false };
    let is_cpu = |word: &str| word.strip_prefix("CPU").is_some_and(|n| n.parse::<u32>().is_ok());
    head.split_whitespace().all(is_cpu) && text.lines().any(|line| line.contains(": "))
}

fn take_interrupts(text: &str, put: &mut Put<'_>) {
    put.file("/proc/interrupts", text);
}

fn is_cpuinfo(text: &str) -> bool {
    let keys = ["processor", "hart", "vendor_id", "cpu"];
    let first = text.lines().next().and_then(|line| line.split_once(':'));
    first.is_some_and(|(key, _)| key.ends_with(['\t', ' ']) && keys.contains(&key.trim()))
}

fn take_cpuinfo(text: &str, put: &mut Put<'_>) {
    put.file("/proc/cpuinfo", text);
}

/// Parameters that nearly every line has one of.
const PARAMETERS: &[&str] = &[
    "BOOT_IMAGE",
    "root",
    "ro",
    "rw",
    "quiet",
    "console",
    "init",
    "rootwait",
    "isolcpus",
    "splash",
    "nohz_full",
    "rcu_nocbs",
    "initrd",
    "crashkernel",
    "rd.lvm.lv",
    "resume",
    "mitigations",
    "earlycon",
];

fn is_cmdline(text: &str) -> bool {
    let Some(line) = only_line(text) else { return false };
    let is_known = |word: &str| PARAMETERS.contains(&word.split('=').next().unwrap_or_default());
    let words = || line.split_whitespace();
    // Neither a command nor a sentence; what follows a bare `--` is for init.
    let is_parameter = |word: &str| {
        let start = word.trim_start_matches('"');
        start.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') && !word.ends_with(',')
    };
    words().any(is_known) && words().take_while(|word| *word != "--").all(is_parameter)
}

fn take_cmdline(text: &str, put: &mut Put<'_>) {
    put.file("/proc/cmdline", text.trim());
}

// lscpu: what it read of /sys, by its names.

fn is_lscpu(text: &str) -> bool {
    field(text, "Architecture").is_some() && field(text, "CPU(s)").is_some()
}

fn take_lscpu(text: &str, put: &mut Put<'_>) {
    const CPUS: &str = "/sys/devices/system/cpu";
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).filter(|value| !value.is_empty())
    };
    if let Some(machine) = of("Architecture") {
        put.file("/proc/sys/kernel/arch", machine);
    }
    let online = of("On-line CPU(s) list");
    if let Some(list) = online {
        put.file(&format!("{CPUS}/online"), list);
    }
    match of("Thread(s) per core") {
        Some("1") => put.file(&format!("{CPUS}/smt/active"), "0"),
        Some("2" | "4" | "8") => put.file(&format!("{CPUS}/smt/active"), "1"),
        _ => {}
    }
    let online = online.and_then(|list| CpuList::parse(list, None).ok()).unwrap_or_default();
    let cpuinfo: String = online
        .iter()
        .map(|cpu| {
            let fields =
                [("vendor_id", "Vendor ID"), ("model name", "Model name"), ("flags", "Flags")];
            let fields: String = fields
                .into_iter()
                .filter_map(|(key, name)| Some(format!("{key}\t: {}\n", of(name)?)))
                .collect();
            format!("processor\t: {cpu}\n{fields}\n")
        })
        .collect();
    if !cpuinfo.is_empty() {
        put.file("/proc/cpuinfo", &cpuinfo);
    }
    for line in text.lines().map(str::trim) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if let Some(name) = name.strip_prefix("Vulnerability ") {
            let file = name.trim().to_lowercase().replace([' ', '-'], "_");
            put.listed(&format!("{CPUS}/vulnerabilities/{file}"), value.trim());
        }
        let node = name.strip_prefix("NUMA node").and_then(|name| name.strip_suffix(" CPU(s)"));
        if let Some(node) = node.filter(|node| node.parse::<u32>().is_ok()) {
            put.listed(&format!("/sys/devices/system/node/node{node}/cpulist"), value.trim());
        }
    }
}

// sysctl -a.

/// The path below /proc/sys: dots and slashes change places.
fn sysctl(line: &str) -> Option<(String, &str)> {
    let (key, value) = line.split_once(" =")?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if !key.contains('.') || !key.chars().all(is_key) || key.contains("..") {
        return None;
    }
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        c => c,
    };
    Some((format!("/proc/sys/{}", key.chars().map(swap).collect::<String>()), value.trim()))
}

fn is_sysctl(text: &str) -> bool {
    let is_refusal = |line: &str| line.starts_with("sysctl: ");
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !is_refusal(line));
    let all = lines.clone().count();
    all > 0 && lines.all(|line| sysctl(line).is_some())
}

fn take_sysctl(text: &str, put: &mut Put<'_>) {
    // A value of several lines has its key before each.
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for (path, value) in text.lines().filter_map(sysctl) {
        if path == "/proc/sys/kernel/osrelease" {
            put.release(value);
        }
        values.entry(path).or_default().push_str(&format!("{value}\n"));
    }
    for (path, value) in values {
        put.file(&path, &value);
    }
}

// The kernel's log.

/// The message behind level and time; `None`: no line of a log.
fn message(line: &str) -> Option<&str> {
    let line = match line.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?.1,
        None => line,
    };
    let (time, message) = line.strip_prefix('[')?.split_once(']')?;
    let is_seconds = time.trim().split_once('.').is_some_and(|(whole, part)| {
        [whole, part].iter().all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    let is_date = time.split_whitespace().count() == 5 && time.contains(':');
    (is_seconds || is_date).then(|| message.strip_prefix(' ').unwrap_or(message))
}

/// The log cuts longer lines (kernel/printk/printk.c, `LOG_LINE_MAX`): the end of the command line
/// would be missing.
const LOGGED_BYTES_MAX: usize = 900;

fn is_dmesg(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.trim().is_empty()).take(100);
    let (all, logged) = (lines().count(), lines().filter(|line| message(line).is_some()).count());
    all > 0 && logged * 10 >= all * 8
}

fn take_dmesg(text: &str, put: &mut Put<'_>) {
    let messages: Vec<&str> = text.lines().filter_map(message).collect();
    for message in &messages {
        if let Some(release) = release_of_version(message) {
            put.release(release);
            put.file("/proc/version", message);
        }
        let line = message.strip_prefix("Kernel command line: ");
        let line = line.or_else(|| message.strip_prefix("Command line: "));
        if let Some(line) = line.filter(|line| line.len() < LOGGED_BYTES_MAX) {
            put.file_unless_there("/proc/cmdline", line);
        }
    }
    let is_from_boot = messages.first().is_some_and(|first| {
        first.starts_with("Linux version ") || first.starts_with("Booting Linux")
    });
    put.log(is_from_boot, &messages);
}

// Tasks of ps with a head that names its columns.

fn columns(text: &str) -> Option<Vec<&str>> {
    let head: Vec<&str> = text.lines().next()?.split_whitespace().collect();
    let has = |names: &[&str]| head.iter().any(|column| names.contains(column));
    (has(&["PID"]) && has(&["CMD", "COMMAND"])).then_some(head)
}

fn is_ps(text: &str) -> bool {
    columns(text).is_some()
}

/// Only a list with all that a judgement of tasks takes: id of process and thread, class, priority,
/// and what shows a kernel thread (its parent, or its name in brackets).
fn take_ps(text: &str, put: &mut Put<'_>) {
    const KTHREAD: u64 = 0x0020_0000;
    let Some(head) = columns(text) else { return };
    let at = |names: &[&str]| head.iter().position(|column| names.contains(column));
    let name_at = at(&["CMD", "COMMAND"]).unwrap_or_default();
    let (Some(pid), Some(tid), Some(class), Some(rtprio), Some(ppid)) = (
        at(&["PID"]),
        at(&["TID", "LWP", "SPID"]),
        at(&["CLS", "POL"]),
        at(&["RTPRIO"]),
        at(&["PPID"]),
    ) else {
        put.note(
            "ps: columns PID, PPID, TID (or LWP), CLS and RTPRIO are needed: its tasks are \
                  unknown; use ps -eLo pid,ppid,tid,cls,rtprio,ni,psr,comm",
        );
        return;
    };
    if name_at + 1 != head.len() {
        put.note("ps: the command has to be the last column: its tasks are unknown");
        return;
    }
    let mut tasks: Vec<(u32, u32, String, String)> = Vec::new();
    for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u32>().ok();
        let task = || {
            let (pid, tid, ppid) = (number(pid)?, number(tid)?, number(ppid)?);
            let policy = match *words.get(class)? {
                "TS" => 0,
                "FF" => 1,
                "RR" => 2,
                "B" => 3,
                "IDL" => 5,
                "DLN" => 6,
                _ => return None,
            };
            let priority = number(rtprio).unwrap_or(0);
            let nice = at(&["NI"]).and_then(|at| words.get(at)?.parse::<i32>().ok()).unwrap_or(0);
            let cpu = at(&["PSR", "CPUID", "P"]).and_then(number).unwrap_or(0);
            let name = words.get(name_at..)?.join(" ");
            let comm: String = name.trim_matches(['[', ']']).chars().take(63).collect();
            let flags = if pid == 2 || ppid == 2 { KTHREAD } else { 0 };
            let zeros = |count| "0 ".repeat(count);
            let head = format!("({comm}) S {ppid} {}{flags} {}20 {nice}", zeros(4), zeros(8));
            let tail = format!("{}{cpu} {priority} {policy} 0 0 0", zeros(18));
            Some((pid, tid, head, tail))
        };
        match task() {
            Some(task) => tasks.push(task),
            None => {
                put.note("ps: a line was not understood: its tasks are unknown");
                return;
            }
        }
    }
    if !tasks.iter().any(|(pid, ..)| *pid == 2) {
        put.note("ps: no kernel thread is in it, as in a container: its tasks are unknown");
        return;
    }
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    for (pid, ..) in &tasks {
        *threads.entry(*pid).or_default() += 1;
    }
    for (pid, tid, head, tail) in &tasks {
        let stat = format!("{tid} {head} {} {tail}", threads[pid]);
        if pid == tid {
            put.listed(&format!("/proc/{pid}/stat"), &stat);
        }
        put.listed(&format!("/proc/{pid}/task/{tid}/stat"), &stat);
    }
}

// ethtool of one interface, one question.

/// Values of an answer, and rtproof's names for them.
type Names = &'static [(&'static str, &'static str)];

/// Heads of its answers, the question as rtproof asks it, and names of the values.
const ETHTOOL: &[(&str, &str, Names)] = &[
    (
        "Coalesce parameters for ",
        "coalesce",
        &[("rx-usecs", "rx-usecs"), ("rx-frames", "rx-frames"), ("tx-usecs", "tx-usecs")],
    ),
    ("Pause parameters for ", "pause", &[("Autonegotiate", "autoneg"), ("RX", "rx"), ("TX", "tx")]),
    ("Features for ", "features", &[]),
    ("Channel parameters for ", "channels", &[]),
    ("Settings for ", "", &[]),
    ("EEE settings for ", "", &[]),
    ("Ring parameters for ", "", &[]),
];

fn is_ethtool(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    ETHTOOL.iter().any(|(head, ..)| first.starts_with(head) && first.trim_end().ends_with(':'))
}

fn take_ethtool(text: &str, put: &mut Put<'_>) {
    let text = text.trim_start();
    let first = text.lines().next().unwrap_or_default();
    let Some((head, word, names)) = ETHTOOL.iter().find(|(head, ..)| first.starts_with(head))
    else {
        return;
    };
    let name = first[head.len()..].trim().trim_end_matches(':');
    if name.is_empty() || name.len() > 15 || name.contains(['/', ' ']) {
        return;
    }
    put.listed(&format!("/sys/class/net/{name}/device/uevent"), "");
    let value = |key: &str| field(text, key).map(|value| value.trim().to_ascii_lowercase());
    let on = |value: &str| if value.starts_with("on") { "1" } else { "0" };
    let mut answer = Vec::new();
    for (key, name) in *names {
        if let Some(value) = value(key).filter(|value| value != "n/a") {
            let is_word = value.starts_with("on") || value.starts_with("off");
            answer.push(format!("{name} {}", if is_word { on(&value) } else { &value }));
        }
    }
    match *word {
        "coalesce" => {
            // Both directions share a line: `Adaptive RX: off  TX: n/a`.
            let line = value("Adaptive RX").unwrap_or_default();
            let mut sides = line.split_whitespace().filter(|word| !word.ends_with(':'));
            for name in ["adaptive-rx", "adaptive-tx"] {
                if let Some(side) = sides.next().filter(|side| *side != "n/a") {
                    answer.push(format!("{name} {}", on(side)));
                }
            }
        }
        "features" => {
            let features = [
                ("generic-receive-offload", "rx-gro"),
                ("large-receive-offload", "rx-lro"),
                ("rx-gro-hw", "rx-gro-hw"),
            ];
            let is_on = |key: &str| value(key).is_some_and(|value| value.starts_with("on"));
            answer.extend(features.iter().filter(|(key, _)| is_on(key)).map(|(_, n)| (*n).into()));
        }
        "channels" => {
            let (most, now) = text.split_once("Current hardware settings:").unwrap_or_default();
            let values = [
                (now, "RX", "rx"),
                (now, "TX", "tx"),
                (now, "Combined", "combined"),
                (most, "Combined", "combined-max"),
            ];
            answer.extend(values.iter().filter_map(|(part, key, name)| {
                let number: u32 = field(part, key)?.parse().ok()?;
                Some(format!("{name} {number}"))
            }));
        }
        _ => {}
    }
    if !word.is_empty() && (*word == "features" || !answer.is_empty()) {
        put.call(&format!("ethtool {name} {word}"), &answer.join(" "));
    }
}

// The build configuration of a kernel: `/boot/config-6.1.0-rt`, `.config`, `config.gz`, or a part
// of one. What a whole one does not name is not set, so that one which was cut off is refused.

/// Largest one: real ones are below half a megabyte.
const BYTES_MAX: u64 = 8 << 20;

/// Lines at the top that name what is configured.
const HEAD_LINES: usize = 8;

/// `# U-Boot 2023.01 Configuration`, `# Busybox version: 1.35.0`.
fn is_head_of_another(line: &str) -> bool {
    let line = line.trim_end();
    let names = |name: &str| line.starts_with(&format!("# {name}"));
    line.starts_with("# Automatically generated")
        || ["U-Boot ", "Busybox ", "BusyBox ", "Buildroot "].into_iter().any(names)
}

/// The configuration as /proc/config.gz holds it; `None`: it is something else.
pub(super) fn build_config(bytes: &[u8]) -> Option<Result<Vec<u8>, CaptureError>> {
    let wrong = |line, text: &str| Some(Err(CaptureError { line, text: text.into() }));
    let is_packed = bytes.starts_with(b"\x1f\x8b");
    let mut text = Vec::new();
    if !is_packed {
        text.extend_from_slice(bytes);
    } else if GzDecoder::new(bytes).take(BYTES_MAX).read_to_end(&mut text).is_err() {
        return wrong(1, "gzip that is damaged or was cut off; copy it again");
    }
    let text = std::str::from_utf8(&text).ok()?;
    // A last line without an end may be a part of one.
    let (lines, _) = text.rsplit_once('\n')?;
    let is_option = |line: &str| line.starts_with("CONFIG_") && line.contains('=');
    let is_comment = |line: &str| line.starts_with('#') || line.trim().is_empty();
    if !lines.lines().any(is_option) || !lines.lines().all(|l| is_option(l) || is_comment(l)) {
        return None;
    }
    let is_whole = is_whole_config(lines);
    // U-Boot, BusyBox and Buildroot have options of these names, too.
    let head = || lines.lines().take(HEAD_LINES);
    if head().any(is_head_of_another) && !head().any(|line| line.contains("Linux")) {
        return None;
    }
    // Without its head it is a part: a fragment, an extract. What that does not name is unknown.
    if is_whole {
        // The last menu but for libraries; since 5.2 each menu has an end.
        let has_ends = lines.lines().any(|line| line.starts_with("# end of "));
        let last = if has_ends { "# end of Kernel hacking" } else { "# Kernel hacking" };
        if !text.ends_with('\n') || !lines.lines().any(|line| line.trim_end() == last) {
            let what = "the kernel configuration ends here, without all of its menus: it was cut \
                        off; copy it again";
            return wrong(text.lines().count(), what);
        }
    }
    if is_packed {
        return Some(Ok(bytes.to_vec()));
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).ok().map(Ok)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Facts, Root, facts::copied::CopyKind};

    const WHOLE: &str = "#\n# Automatically generated file; DO NOT EDIT.\n\
        # Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_CC_VERSION_TEXT=\"gcc 12\"\n\
        CONFIG_PREEMPT_RT=y\nCONFIG_X86_64=y\n# CONFIG_NO_HZ_FULL is not set\n\n#\n# Kernel hacking\n#\n\
        CONFIG_DEBUG_KERNEL=y\n# end of Kernel hacking\n";

    fn gzip(text: &str) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(text.as_bytes()).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn a_configuration_alone_is_a_machine_of_which_nothing_else_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let old = WHOLE.replace("# end of Kernel hacking\n", "");
        for bytes in [WHOLE.into(), gzip(WHOLE), old.into(), WHOLE.replace('\n', "\r\n").into()] {
            fs::write(&path, &bytes).unwrap();
            let facts = Facts::read(&Root::open_path(&path).unwrap());
            let config = facts.kernel.config.value().unwrap();
            assert_eq!((config.len(), config["PREEMPT_RT"].as_str()), (4, "y"));
            // The head of the file says of which kernel it is, as uname would.
            assert_eq!(facts.kernel.version.value(), Some(&(6, 1)));
            assert_eq!(facts.kernel.arch.value().map(String::as_str), Some("x86_64"));
            assert!(facts.kernel.cmdline.value().is_none());
            assert_eq!(facts.copy.unwrap().kind, CopyKind::Config);
        }
    }

    #[test]
    fn one_that_was_cut_off_is_refused_and_a_part_is_taken() {
        let packed = gzip(WHOLE);
        let cut = &packed[..packed.len() - 9];
        let (half, _) = WHOLE.split_once("\n\n").unwrap();
        for (bytes, says) in [
            (cut, "cut off"),
            (WHOLE.trim_end().as_bytes(), "cut off"),
            (format!("{half}\n").as_bytes(), "cut off"),
            (&WHOLE.as_bytes()[..WHOLE.len() - 60], "cut off"),
        ] {
            let error = build_config(bytes).expect("a configuration").expect_err("a part");
            assert!(error.text.contains(says), "{error:?}");
        }
        assert!(
            build_config(b"CONFIG_PREEMPT_RT=y\n# CONFIG_SMP is not set\n")
                .is_some_and(|it| it.is_ok())
        );
        for head in
            ["# U-Boot 2023.01 Configuration", "# Automatically generated file; DO NOT EDIT."]
        {
            let other = format!("{head}\nCONFIG_ARM=y\n");
            assert!(build_config(other.as_bytes()).is_none(), "{head}");
        }
        for other in ["", "\n", "rtproof capture 1\n", "# a comment\n", "A=1\nCONFIG_B=2\n"] {
            assert!(build_config(other.as_bytes()).is_none(), "{other}");
        }
        assert!(build_config(&gzip("rtproof capture 1\n")).is_none());
    }
}
