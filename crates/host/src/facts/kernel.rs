//! The kernel: version, preemption model, build configuration, command line.

use std::{collections::BTreeMap, io::Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arch::{self, Family};
use crate::text::{between, quoted_words, unquoted};
use crate::{Reading, Root};

/// Facts about the running kernel: release, preemption, build configuration, command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// Release, as `uname -r`.
    pub release: Reading<String>,
    /// (major, minor) of the release: what "since kernel 6.12" is compared with.
    pub version: Reading<(u32, u32)>,
    /// Build, as `uname -v`; names PREEMPT_RT where the kernel has it.
    pub build: Reading<String>,
    /// Machine, as `uname -m`; the name of its family where /proc/cpuinfo tells no more.
    pub arch: Reading<String>,
    /// Preemption model now in force.
    pub preemption: Reading<Preemption>,
    /// Build configuration: `CONFIG_` names without the prefix. Options that are not set are
    /// absent.
    pub config: Reading<BTreeMap<String, String>>,
    /// Whether the configuration has no head, as a fragment or an extract: an option that it does
    /// not name is unknown then, and one that it says is not set has the value `n`.
    #[serde(default)]
    pub config_is_part: bool,
    /// Boot command line, in order.
    pub cmdline: Reading<CommandLine>,
    /// Lockdown mode: none, integrity or confidentiality.
    pub lockdown: Reading<String>,
    /// Taint mask (/proc/sys/kernel/tainted).
    pub tainted: Reading<u64>,
    /// A real-time core beside Linux, which schedules its threads ahead of it, with its version.
    #[serde(default)]
    pub cokernel: Reading<String>,
}

impl Kernel {
    /// Reads the kernel's facts. The release and build come from files, so that a captured machine
    /// has its own; only for the live machine, where /proc is missing, uname(2) is used.
    pub fn read(root: &Root, cpuinfo: &Reading<String>) -> Self {
        let proc_version = root.trimmed("/proc/version");
        let release = root
            .trimmed("/proc/sys/kernel/osrelease")
            .or_else(|| proc_version.clone().parsed("Linux version ...", release_of));
        let build = root
            .trimmed("/proc/sys/kernel/version")
            .or_else(|| proc_version.parsed("... #1 SMP ...", build_of));
        let uname = rustix::system::uname();
        let release = or_called(root, release, "uname -r", &uname.release().to_string_lossy());
        let build = or_called(root, build, "uname -v", &uname.version().to_string_lossy());
        let text = config_text(root, &release);
        let head = text.value().and_then(|text| ConfigHead::of(text));
        let config_is_part = text.value().is_some_and(|text| !is_whole_config(text));
        let of_head = |read: Reading<String>, word: Option<String>| match word {
            Some(word) => read.or_else(|| Reading::known(&text.path, word)),
            None => read,
        };
        let release = of_head(release, head.as_ref().map(|head| head.release.clone()));
        let arch = of_head(read_arch(root, cpuinfo), head.map(|head| head.machine));
        let version = release.clone().parsed("a release like 6.12.1", version_of);
        let config = text.and_then(parse);
        let cmdline = root.trimmed("/proc/cmdline").map(|text| CommandLine::parse(&text));
        let preemption = read_preemption(root, &version, &build, &config, &cmdline);
        Self {
            release,
            version,
            build,
            arch,
            preemption,
            config,
            config_is_part,
            cmdline,
            lockdown: root.bracketed("/sys/kernel/security/lockdown", '[', ']'),
            tainted: root.number("/proc/sys/kernel/tainted", "a number"),
            cokernel: cokernel(root),
        }
    }

    pub fn family(&self) -> Option<Family> {
        self.arch.value().map(|machine| Family::of(machine))
    }
}

/// /proc/sys/kernel/arch came with 6.1; before, only uname(2) has it, and only for the live
/// machine. Each architecture writes /proc/cpuinfo in its own way.
fn read_arch(root: &Root, cpuinfo: &Reading<String>) -> Reading<String> {
    let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
    or_called(root, root.trimmed("/proc/sys/kernel/arch"), "uname -m", &machine).or_else(|| {
        cpuinfo.as_ref().and_then(|path, text| match arch::of_cpuinfo(text) {
            Some(name) => Reading::known(path, name),
            None => Reading::absent(path),
        })
    })
}

/// By the files that only a running core makes.
fn cokernel(root: &Root) -> Reading<String> {
    let with_version = |path: &str, name: &str| {
        root.trimmed(path).map(|version| format!("{name} {version}").trim_end().to_owned())
    };
    let folder = |path: &str, name: &str| match root.list_dir(path).value() {
        Some(_) => Reading::known(path, name.to_owned()),
        None => Reading::absent(path),
    };
    with_version("/proc/xenomai/version", "Xenomai Cobalt")
        .or_else(|| folder("/proc/xenomai", "Xenomai"))
        .or_else(|| folder("/sys/class/evl", "Xenomai EVL"))
        .or_else(|| folder("/sys/devices/virtual/evl", "Xenomai EVL"))
        .or_else(|| folder("/proc/rtai", "RTAI"))
}

/// What the running kernel answers to a call, where no file of the live machine has it.
fn or_called(root: &Root, read: Reading<String>, call: &str, answer: &str) -> Reading<String> {
    if read.value().is_some() {
        return read;
    }
    match root.call(call, || Ok(answer.to_owned())) {
        Some(called) => read.or_else(|| called),
        None => read,
    }
}

/// `6.18.44` of `Linux version 6.18.44 (user@host) (gcc ...) #1 SMP ...`.
fn release_of(version: &str) -> Option<String> {
    version.strip_prefix("Linux version ")?.split(' ').next().map(str::to_owned)
}

/// `#1 SMP ...` of the same.
fn build_of(version: &str) -> Option<String> {
    version.rfind(" #").map(|at| version[at + 1..].to_owned())
}

/// (6, 12) of `6.12.0-rc1`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

// The boot command line, taken apart as the kernel does it (lib/cmdline.c, `next_arg`).

/// Boot command line. Keys are kept as written; a key may occur more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandLine {
    pub text: String,
    /// Parameters up to `--`, in order.
    pub parameters: Vec<Parameter>,
}

/// One parameter of the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parameter {
    /// Name, e.g. `isolcpus`.
    pub key: String,
    /// Value after `=`, quotes removed; `None` for a bare word.
    pub value: Option<String>,
}

impl CommandLine {
    /// The last value given for a key: the one most kernel parameters use. `Some(None)` is a bare
    /// word. `-` and `_` are the same in parameter names (kernel/params.c, `parameqn`).
    pub fn last(&self, key: &str) -> Option<Option<&str>> {
        self.all(key).last()
    }

    /// Every value given for a key, in order.
    pub fn all<'a>(&'a self, key: &str) -> impl Iterator<Item = Option<&'a str>> + use<'a> {
        let wanted = key.replace('-', "_");
        self.parameters
            .iter()
            .filter(move |p| p.key.replace('-', "_") == wanted)
            .map(|p| p.value.as_deref())
    }

    /// Takes a command line apart. Quotes keep spaces together, whether they stand round the value
    /// or the whole parameter; what follows a bare `--` is for init and no kernel parameter.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let words = quoted_words(text).take_while(|word| *word != "--");
        Self { text: text.to_owned(), parameters: words.map(parameter).collect() }
    }
}

fn parameter(word: &str) -> Parameter {
    // "key=a b" and key="a b" are the same parameter.
    let word = unquoted(word);
    match word.split_once('=') {
        Some((key, value)) => Parameter { key: key.to_owned(), value: Some(value.to_owned()) },
        None => Parameter { key: word, value: None },
    }
}

// The build configuration, from the first place that has it.

/// Largest configuration taken out of /proc/config.gz: real ones are below half a megabyte.
const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// The text of the configuration; the path is the file read, or all that were tried.
fn config_text(root: &Root, release: &Reading<String>) -> Reading<String> {
    let mut config = root.read_bytes("/proc/config.gz").and_then(unpack);
    let Some(release) = release.value() else {
        return config;
    };
    // Distributions differ: Debian and Fedora, Fedora since 2021, the same merged, OSTree,
    // openSUSE.
    for place in [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/usr/lib/ostree-boot/config-{release}"),
        format!("/lib/kernel/config-{release}"),
    ] {
        config = config.or_else(|| root.read_text(&place));
    }
    config
}

/// Whether a configuration has the head that the kernel's build writes over a whole one.
pub(crate) fn is_whole_config(text: &str) -> bool {
    ConfigHead::of(text).is_some()
}

/// What the head of a configuration says of its kernel: `# Linux/arm 4.14.40 Kernel Configuration`.
struct ConfigHead {
    release: String,
    /// As `uname -m`; the kernel's own word for the architecture where its options do not decide.
    machine: String,
}

impl ConfigHead {
    fn of(text: &str) -> Option<Self> {
        const HEAD_LINES: usize = 8;
        let named = text.lines().take(HEAD_LINES).find_map(|line| {
            line.strip_prefix("# Linux/")?.split_once(" Kernel Configuration")?.0.split_once(' ')
        });
        let (arch, release) = named?;
        version_of(release)?;
        let is_set = |option: &str| text.lines().any(|line| line.trim_end() == option);
        let either =
            |option, set: &str, not: &str| if is_set(option) { set } else { not }.to_owned();
        let machine = match arch {
            "x86" | "x86_64" | "i386" => either("CONFIG_X86_64=y", "x86_64", "i686"),
            "arm64" => "aarch64".into(),
            "arm" if is_set("CONFIG_CPU_32v6=y") => "armv6l".into(),
            "arm" => either("CONFIG_CPU_32v7=y", "armv7l", "arm"),
            "riscv" => either("CONFIG_64BIT=y", "riscv64", "riscv32"),
            "loongarch" => either("CONFIG_64BIT=y", "loongarch64", "loongarch32"),
            "mips" => either("CONFIG_64BIT=y", "mips64", "mips"),
            "s390" => either("CONFIG_64BIT=y", "s390x", "s390"),
            "powerpc" if is_set("CONFIG_CPU_LITTLE_ENDIAN=y") => "ppc64le".into(),
            "powerpc" => either("CONFIG_PPC64=y", "ppc64", "ppc"),
            other => other.into(),
        };
        Some(Self { release: release.into(), machine })
    }
}

fn unpack(path: String, bytes: Vec<u8>) -> Reading<String> {
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&bytes[..]).take(CONFIG_BYTES_MAX);
    match unpacked.read_to_string(&mut text) {
        Ok(_) => Reading::known(path, text),
        Err(error) => Reading::malformed(path, &error.to_string(), "gzip with text inside"),
    }
}

fn parse(path: String, text: String) -> Reading<BTreeMap<String, String>> {
    let option = |line: &str| {
        let (name, value) = line.trim().strip_prefix("CONFIG_")?.split_once('=')?;
        let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((name.to_owned(), inner.unwrap_or(value).to_owned()))
    };
    let mut options: BTreeMap<_, _> = text.lines().filter_map(option).collect();
    if !is_whole_config(&text) {
        let not_set = |line: &str| {
            let name = line.trim().strip_prefix("# CONFIG_")?.strip_suffix(" is not set")?;
            Some((name.to_owned(), "n".to_owned()))
        };
        options.extend(text.lines().filter_map(not_set));
    }
    if options.is_empty() {
        return Reading::malformed(path, &text, "lines CONFIG_NAME=value");
    }
    Reading::known(path, options)
}

// The preemption model in force.
//
// Sources, best first: the build string and /sys/kernel/realtime for PREEMPT_RT; debugfs for what
// CONFIG_PREEMPT_DYNAMIC is switched to now; else what it was booted with (command line, build
// default), which holds unless debugfs was written since: the path then names the files that
// were used. Nothing is guessed.

/// Preemption model of a kernel: how far kernel code can be preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preemption {
    /// CONFIG_PREEMPT_RT: fully preemptible.
    Rt,
    /// Preemptible kernel (`preempt=full` or CONFIG_PREEMPT).
    Full,
    /// Lazy preemption (6.13 and later).
    Lazy,
    /// Voluntary preemption points only.
    Voluntary,
    /// No preemption in the kernel.
    None,
    /// CONFIG_PREEMPT_DYNAMIC and the mode in force cannot be read.
    DynamicUnknown,
}

const SWITCH: &str = "/sys/kernel/debug/sched/preempt";

const REALTIME: &str = "/sys/kernel/realtime";

type Config = Reading<BTreeMap<String, String>>;

fn read_preemption(
    root: &Root,
    version: &Reading<(u32, u32)>,
    build: &Reading<String>,
    config: &Config,
    cmdline: &Reading<CommandLine>,
) -> Reading<Preemption> {
    let words = build.value().map_or(Built::Silent, |build| Built::from(build));
    if words == Built::Model(Preemption::Rt) {
        return Reading::known(&build.path, Preemption::Rt);
    }
    // The file was removed with the merge of PREEMPT_RT; its absence proves nothing.
    if root.trimmed(REALTIME).value().is_some_and(|text| text == "1") {
        return Reading::known(REALTIME, Preemption::Rt);
    }
    let set = |name: &str| is_set(config, name);
    if set("PREEMPT_RT") || set("PREEMPT_RT_FULL") {
        return Reading::known(&config.path, Preemption::Rt);
    }
    if words == Built::Dynamic || set("PREEMPT_DYNAMIC") {
        return dynamic(root, version, config, cmdline);
    }
    if let Some(model) = configured(config) {
        return Reading::known(&config.path, model);
    }
    let paths = format!("{}, {REALTIME}, {}", build.path, config.path);
    match words {
        Built::Model(model) => Reading::known(&build.path, model),
        // From 6.13 a build that only says PREEMPT may be lazy or full.
        Built::Preempt if version.value().is_some_and(|&v| v < (6, 13)) => {
            Reading::known(&build.path, Preemption::Full)
        }
        // No word at all: voluntary or none, which only the configuration distinguishes.
        _ => Reading::absent(paths),
    }
}

/// What the build string says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Built {
    /// It names the model.
    Model(Preemption),
    Dynamic,
    /// PREEMPT and no more.
    Preempt,
    /// The build string names no preemption model.
    Silent,
}

impl Built {
    /// Forms seen: `PREEMPT RT` (4.x), `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`, and as in kernel
    /// logs since 6.14 (kernel/sched/core.c, `preempt_model_str`) `PREEMPT(full)`,
    /// `PREEMPT_{RT,(lazy)}`, `PREEMPT_LAZY`.
    fn from(build: &str) -> Self {
        let words: Vec<&str> = build.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| word.starts_with("PREEMPT")) else {
            return Self::Silent;
        };
        let word = words[at];
        let rt = word.starts_with("PREEMPT_RT") || word.starts_with("PREEMPT_{RT");
        if rt || (word == "PREEMPT" && words.get(at + 1) == Some(&"RT")) {
            return Self::Model(Preemption::Rt);
        }
        if let Some(mode) = between(word, '(', ')') {
            // A list of modes is a choice that is not made here.
            return mode_named(mode).map_or(Self::Dynamic, Self::Model);
        }
        match word {
            "PREEMPT_DYNAMIC" => Self::Dynamic,
            "PREEMPT_LAZY" => Self::Model(Preemption::Lazy),
            _ => Self::Preempt,
        }
    }
}

fn dynamic(
    root: &Root,
    version: &Reading<(u32, u32)>,
    config: &Config,
    cmdline: &Reading<CommandLine>,
) -> Reading<Preemption> {
    let now = root.bracketed(SWITCH, '(', ')');
    if let Some(mode) = now.value() {
        return match mode_named(mode) {
            Some(model) => Reading::known(SWITCH, model),
            None => Reading::malformed(SWITCH, mode, "none, voluntary, full or lazy"),
        };
    }
    let booted = format!("{}, {}", cmdline.path, config.path);
    let all = format!("{SWITCH}, {booted}");
    // A line that cannot be read may hold preempt=.
    let Some(line) = cmdline.value() else {
        return Reading::known(all, Preemption::DynamicUnknown);
    };
    // Every preempt= is taken in turn, and one that is not accepted changes nothing.
    let requested = line.all("preempt").flatten().filter_map(mode_named);
    match requested.filter(|&mode| accepted(mode, version, config)).last() {
        Some(model) => Reading::known(&cmdline.path, model),
        None => match configured(config) {
            Some(model) => Reading::known(booted, model),
            None => Reading::known(all, Preemption::DynamicUnknown),
        },
    }
}

/// Whether the kernel takes a mode. Lazy came with 6.13; none and voluntary went with 7.0 where the
/// architecture has lazy (kernel/sched/core.c, `sched_dynamic_mode`).
fn accepted(mode: Preemption, version: &Reading<(u32, u32)>, config: &Config) -> bool {
    let Some(&version) = version.value() else {
        return true;
    };
    match mode {
        Preemption::Lazy => version >= (6, 13),
        Preemption::None | Preemption::Voluntary => {
            version < (7, 0)
                || (config.value().is_some() && !is_set(config, "ARCH_HAS_PREEMPT_LAZY"))
        }
        _ => true,
    }
}

fn is_set(config: &Config, name: &str) -> bool {
    config.value().is_some_and(|options| options.get(name).is_some_and(|value| value == "y"))
}

/// The model chosen at build time: for PREEMPT_DYNAMIC the one it boots with.
fn configured(config: &Config) -> Option<Preemption> {
    [
        ("PREEMPT_LAZY", Preemption::Lazy),
        ("PREEMPT", Preemption::Full),
        ("PREEMPT_VOLUNTARY", Preemption::Voluntary),
        ("PREEMPT_NONE", Preemption::None),
    ]
    .into_iter()
    .find_map(|(name, model)| is_set(config, name).then_some(model))
}

fn mode_named(mode: &str) -> Option<Preemption> {
    match mode {
        "full" => Some(Preemption::Full),
        "lazy" => Some(Preemption::Lazy),
        "voluntary" => Some(Preemption::Voluntary),
        "none" => Some(Preemption::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_core_beside_linux_is_known_by_what_it_makes() {
        for (file, text, name) in [
            ("proc/xenomai/version", "3.2.1\n", Some("Xenomai Cobalt 3.2.1")),
            ("proc/xenomai/sched/threads", "", Some("Xenomai")),
            ("sys/class/evl/clock/x", "", Some("Xenomai EVL")),
            ("proc/rtai/scheduler", "", Some("RTAI")),
            ("proc/version", "Linux version 5.4.100-ipipe (u@h) #1\n", None),
        ] {
            let tree = Tree::new(&[(file, text)]);
            assert_eq!(cokernel(&tree.root()).value().map(String::as_str), name, "{file}");
        }
    }

    #[test]
    fn release_and_build_come_from_proc_version_where_sys_is_not_captured() {
        let tree = Tree::new(&[(
            "proc/version",
            "Linux version 5.4.140-rt64 (u@h) (gcc (Debian #2) 8.3.0) #1 SMP PREEMPT_RT Tue Aug 17\n",
        )]);
        let kernel = Kernel::read(&tree.root(), &Reading::absent("/proc/cpuinfo"));
        assert_eq!(kernel.release, Reading::known("/proc/version", "5.4.140-rt64".into()));
        assert_eq!(kernel.version.value(), Some(&(5, 4)));
        assert_eq!(kernel.build.value().unwrap(), "#1 SMP PREEMPT_RT Tue Aug 17");
        assert_eq!(kernel.preemption.value(), Some(&Preemption::Rt));
        assert!(kernel.arch.is_absent() && kernel.cmdline.is_absent() && kernel.config.is_absent());
        assert!(kernel.lockdown.is_absent() && kernel.tainted.is_absent());
    }

    #[test]
    fn the_system_call_is_used_on_the_live_machine_only() {
        let called = or_called(&Root::live(), Reading::absent("p"), "uname -r", "6.1");
        assert_eq!(called, Reading::known("uname -r", "6.1".into()));
        let captured = or_called(&Tree::new(&[]).root(), Reading::absent("p"), "uname -r", "6.1");
        assert_eq!(captured, Reading::absent("p"));
    }

    #[test]
    fn odd_contents_are_malformed() {
        let tree = Tree::new(&[
            ("proc/version", "BSD"),
            ("sys/kernel/security/lockdown", "none"),
            ("proc/sys/kernel/tainted", "x"),
        ]);
        let kernel = Kernel::read(&tree.root(), &Reading::absent("/proc/cpuinfo"));
        for why in [
            kernel.release.why_unknown(),
            kernel.version.why_unknown(),
            kernel.build.why_unknown(),
            kernel.lockdown.why_unknown(),
            kernel.tainted.why_unknown(),
        ] {
            assert!(why.unwrap().starts_with("holds"));
        }
        assert_eq!(version_of("7.0.0-rc1+"), Some((7, 0)));
        assert_eq!(version_of("7"), None);
    }
}

#[cfg(test)]
mod cmdline_tests {
    use super::*;

    #[test]
    fn quotes_bare_words_and_the_end() {
        let line = CommandLine::parse(
            "BOOT_IMAGE=/vmlinuz ro quiet dyndbg=\"file a.c +p\" \"x=1 2\" isolcpus=  a=b=c -- -s nosmt\n",
        );
        let all: Vec<_> =
            line.parameters.iter().map(|p| (p.key.as_str(), p.value.as_deref())).collect();
        assert_eq!(
            all,
            [
                ("BOOT_IMAGE", Some("/vmlinuz")),
                ("ro", None),
                ("quiet", None),
                ("dyndbg", Some("file a.c +p")),
                ("x", Some("1 2")),
                ("isolcpus", Some("")),
                ("a", Some("b=c")),
            ]
        );
        assert_eq!(line.last("nosmt"), None);
        assert!(line.text.ends_with("nosmt"));
    }

    #[test]
    fn the_last_of_several_and_dashes_as_underscores() {
        let line = CommandLine::parse("tsc=a rcu-nocbs=1 tsc=b \"unclosed");
        assert_eq!(line.last("tsc"), Some(Some("b")));
        assert_eq!(line.all("tsc").count(), 2);
        assert_eq!(line.last("rcu_nocbs"), Some(Some("1")));
        assert_eq!(line.last("unclosed"), Some(None));
        assert!(CommandLine::parse("").parameters.is_empty());
    }
}

#[cfg(test)]
mod config_tests {
    use std::io::Write;

    use super::*;
    use crate::testing::Tree;

    const TEXT: &str = "#\n# Linux\n#\nCONFIG_HZ=250\n# CONFIG_KASAN is not set\nCONFIG_LOCALVERSION=\"-rt\"\nCONFIG_EMPTY=\"\"\n";

    #[test]
    fn without_its_head_it_is_a_part_that_says_what_is_not_set() {
        let read = |text: &str| {
            let tree = Tree::new(&[
                ("proc/version", "Linux version 6.1.0 (u@h) #1\n"),
                ("boot/config-6.1.0", text),
            ]);
            Kernel::read(&tree.root(), &Reading::absent("/proc/cpuinfo"))
        };
        let part = read("# My Kernel Configuration\nCONFIG_A=y\n# CONFIG_B is not set\n");
        let options = part.config.value().unwrap();
        assert!(part.config_is_part);
        assert_eq!((options["A"].as_str(), options["B"].as_str()), ("y", "n"));
        let whole = read(
            "#\n# Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_A=y\n# CONFIG_B is not set\n",
        );
        assert!(!whole.config_is_part && !whole.config.value().unwrap().contains_key("B"));
    }

    #[test]
    fn reads_text_and_gzip_and_names_the_file() {
        let tree = Tree::new(&[("usr/lib/modules/6.1/config", TEXT)]);
        let release = Reading::known("r", "6.1".to_owned());
        let config = config_text(&tree.root(), &release).and_then(parse);
        assert_eq!(config.path, "/usr/lib/modules/6.1/config");
        let options = config.value().unwrap();
        assert_eq!(options["HZ"], "250");
        assert_eq!(options["LOCALVERSION"], "-rt");
        assert_eq!(options["EMPTY"], "");
        assert_eq!(options["KASAN"], "n");

        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        let file = std::fs::File::create(tree.path().join("proc/config.gz")).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        gzip.write_all(TEXT.as_bytes()).unwrap();
        gzip.finish().unwrap();
        let packed = config_text(&tree.root(), &Reading::absent("r")).and_then(parse);
        assert_eq!(packed.path, "/proc/config.gz");
        assert_eq!(packed.value(), config.value());
    }

    #[test]
    fn all_requested_options_are_read() {
        let release = Reading::known("r", "6.1".to_owned());
        let none = config_text(&Tree::new(&[]).root(), &release);
        assert!(none.is_absent());
        assert_eq!(none.path.split(", ").count(), 6);
        let other = Tree::new(&[("boot/config-6.1", "<html>"), ("proc/config.gz", "no gzip")]);
        assert!(
            config_text(&other.root(), &release)
                .and_then(parse)
                .why_unknown()
                .unwrap()
                .contains("<html>")
        );
        let broken = config_text(&other.root(), &Reading::absent("r")).and_then(parse);
        assert!(broken.why_unknown().unwrap().contains("gzip"));
    }
}

#[cfg(test)]
mod preemption_tests {
    use super::*;
    use crate::testing::Tree;

    fn reading(files: &[(&str, &str)]) -> Reading<Preemption> {
        Kernel::read(&Tree::new(files).root(), &Reading::absent("/proc/cpuinfo")).preemption
    }

    fn model(files: &[(&str, &str)]) -> Option<Preemption> {
        reading(files).value().copied()
    }

    const BUILD: &str = "proc/sys/kernel/version";
    const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.18.1\n");
    const DYNAMIC: (&str, &str) = (BUILD, "#1 SMP PREEMPT_DYNAMIC Mon\n");
    const CONFIG: &str = "boot/config-6.18.1";
    const CMDLINE: &str = "proc/cmdline";

    #[test]
    fn build_strings() {
        let built = |text: &str| model(&[(BUILD, text), ("proc/sys/kernel/osrelease", "5.10.1")]);
        assert_eq!(built("#1 SMP PREEMPT_RT Debian 6.1 (2025)"), Some(Preemption::Rt));
        assert_eq!(built("#1 SMP PREEMPT RT Tue"), Some(Preemption::Rt));
        assert_eq!(built("#1 SMP PREEMPT_{RT,(lazy)} Tue"), Some(Preemption::Rt));
        assert_eq!(built("#1 SMP PREEMPT(full) Tue"), Some(Preemption::Full));
        assert_eq!(built("#1 SMP PREEMPT Tue"), Some(Preemption::Full));
        assert_eq!(built("#1 SMP PREEMPT_LAZY Tue"), Some(Preemption::Lazy));
        assert_eq!(built("#1 SMP Tue"), None);
        assert_eq!(built("#1 SMP PREEMPT(none,lazy) x"), Some(Preemption::DynamicUnknown));
        assert_eq!(model(&[RELEASE, (BUILD, "#1 SMP PREEMPT Tue")]), None);
    }

    #[test]
    fn debian_kernels_as_they_booted_in_the_lab() {
        // That of 5.10 is written after the others: only its version and flavour were noted.
        // Release, `uname -v`, whether /sys/kernel/realtime was there.
        for (release, build, has_file, found) in [
            ("5.10.0-43-rt-amd64", "#1 SMP PREEMPT_RT Debian 5.10.251-1", true, Preemption::Rt),
            (
                "6.1.0-50-rt-amd64",
                "#1 SMP PREEMPT_RT Debian 6.1.176-1 (2026-07-02)",
                true,
                Preemption::Rt,
            ),
            (
                "6.12.95+deb12-rt-amd64",
                "#1 SMP PREEMPT_RT Debian 6.12.95-1~bpo12+1 (2026-07-05)",
                true,
                Preemption::Rt,
            ),
            (
                "7.2.12+deb13-rt-amd64",
                "#1 SMP PREEMPT_RT Debian 7.2.12-1~bpo13+1 (2026-11-04)",
                false,
                Preemption::Rt,
            ),
            (
                "6.1.0-50-amd64",
                "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)",
                false,
                Preemption::DynamicUnknown,
            ),
        ] {
            let mut files = vec![("proc/sys/kernel/osrelease", release), (BUILD, build)];
            if has_file {
                files.push(("sys/kernel/realtime", "1\n"));
            }
            let preemption = reading(&files);
            assert_eq!(preemption.value(), Some(&found), "{release}");
            let is_rt = found == Preemption::Rt;
            assert_eq!(preemption.path == "/proc/sys/kernel/version", is_rt, "{preemption:?}");
        }
    }

    #[test]
    fn rt_from_realtime_or_config() {
        assert_eq!(model(&[("sys/kernel/realtime", "1\n")]), Some(Preemption::Rt));
        assert!(reading(&[("sys/kernel/realtime", "0\n")]).is_absent());
        assert_eq!(model(&[RELEASE, (CONFIG, "CONFIG_PREEMPT_RT=y\n")]), Some(Preemption::Rt));
    }

    #[test]
    fn static_models_from_config() {
        let configured = |line: &str| model(&[RELEASE, (BUILD, "#1 SMP Tue"), (CONFIG, line)]);
        assert_eq!(configured("CONFIG_PREEMPT_VOLUNTARY=y"), Some(Preemption::Voluntary));
        assert_eq!(configured("CONFIG_PREEMPT_NONE=y"), Some(Preemption::None));
        assert_eq!(configured("CONFIG_PREEMPT=y"), Some(Preemption::Full));
        assert_eq!(configured("CONFIG_PREEMPT_LAZY=y"), Some(Preemption::Lazy));
        assert_eq!(configured("CONFIG_HZ=100"), None);
    }

    #[test]
    fn dynamic_now_then_boot_then_default_then_unknown() {
        let switch = ("sys/kernel/debug/sched/preempt", "none voluntary (full) lazy\n");
        let config = (CONFIG, "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
        let lazy = (CMDLINE, "quiet preempt=full preempt=lazy preempt=odd");
        assert_eq!(model(&[RELEASE, DYNAMIC, switch, lazy, config]), Some(Preemption::Full));
        let booted = reading(&[RELEASE, DYNAMIC, lazy, config]);
        assert_eq!(booted, Reading::known("/proc/cmdline", Preemption::Lazy));
        let default = reading(&[RELEASE, DYNAMIC, (CMDLINE, "quiet"), config]);
        assert_eq!(default.value(), Some(&Preemption::None));
        assert_eq!(default.path, format!("/proc/cmdline, /{CONFIG}"));
        let unknown = Some(Preemption::DynamicUnknown);
        assert_eq!(model(&[RELEASE, DYNAMIC, (CMDLINE, "quiet")]), unknown);
        // The command line was not captured: it may hold preempt=.
        assert_eq!(model(&[RELEASE, DYNAMIC, config]), unknown);
        let odd = ("sys/kernel/debug/sched/preempt", "none (rapid)\n");
        assert!(reading(&[RELEASE, DYNAMIC, odd]).why_unknown().unwrap().contains("rapid"));
    }

    #[test]
    fn modes_that_the_kernel_does_not_take_change_nothing() {
        let at = |release: &str, line: &str, config: &str| {
            let path = format!("boot/config-{release}");
            let files = [
                ("proc/sys/kernel/osrelease", release),
                DYNAMIC,
                (CMDLINE, line),
                (path.as_str(), config),
            ];
            model(&files)
        };
        let lazy = "CONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_PREEMPT_LAZY=y\n";
        assert_eq!(at("7.0.1", "preempt=none", lazy), Some(Preemption::Lazy));
        assert_eq!(at("6.18.1", "preempt=none", lazy), Some(Preemption::None));
        let full = "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n";
        assert_eq!(at("6.6.1", "preempt=lazy", full), Some(Preemption::Full));
    }
}
