//! What the commands of `rtproof kernel` return.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_model::Status;

// Which commit or which options a kernel's behaviour begins with, and how that was found.

pub const BISECT_SCHEMA: &str = "rtproof/kernel-bisect/1";

/// What a bisection found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelBisected {
    /// Version of this form: `rtproof/kernel-bisect/1`.
    pub schema: &'static str,
    /// The folder of state, logs and page.
    pub folder: String,
    /// Where the kernels were booted. On the machine, lengths are nanoseconds, not instructions.
    pub booted_in: BisectedIn,
    pub over: BisectedOver,
    /// What makes a kernel bad, in words.
    pub test: String,
    /// Above this it is bad: instructions or stretches; null: the test has no number.
    pub threshold: Option<u64>,
    /// Arguments of `prove` in the guests; null: a command ran instead.
    pub prove: Option<String>,
    /// Whether `suspects` is the answer: the first bad commit, or a set of options of which none
    /// can be left out. Else it is among them, or some of them may not be needed.
    pub is_found: bool,
    /// Whether both sides of the answer were as before when they were booted a second time; null:
    /// they were not booted again, as nothing was found or a guest does the same each time.
    pub is_reproduced: Option<bool>,
    pub suspects: Vec<BisectSuspect>,
    /// Options that kconfig changed along with the suspects; empty for commits.
    pub changed: Vec<OptionPair>,
    /// Numbers of the steps that represent the good side and the bad one.
    pub evidence: [usize; 2],
    /// All steps, in order.
    pub steps: Vec<BisectStep>,
    pub notes: Vec<String>,
}

/// Version of the JSON form while a bisection over trial boots is under way.
pub const NEXT_SCHEMA: &str = "rtproof/kernel-bisect-next/1";

/// A bisection over trial boots that goes on after the next boot of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelBisectNext {
    /// Version of this form: `rtproof/kernel-bisect-next/1`.
    pub schema: &'static str,
    /// The folder of state, logs and page.
    pub folder: String,
    /// Number of the step whose kernel boots next; null: the machine's own kernel boots next.
    pub step: Option<usize>,
    /// Argument of reboot(2) with which it boots; null: none is needed.
    pub reboot: Option<String>,
    /// What comes after that reboot, in words.
    pub then: String,
    /// Steps that are done, in order.
    pub steps: Vec<BisectStep>,
}

/// Where the kernels were booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BisectedIn {
    /// In a guest whose time counts instructions.
    Guest,
    /// On the machine itself, each once.
    Machine,
}

/// What a bisection searches: commits or configuration options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BisectedOver {
    /// Commits of a git tree.
    Commits,
    /// Options of two configurations.
    Options,
}

/// A culprit, or one of those that may be it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum BisectSuspect {
    Commit {
        /// Its id, 40 digits.
        commit: String,
        /// First line of its message.
        subject: String,
        author: String,
        /// Date of the author, ISO 8601.
        date: String,
        /// `git diff --stat` to its first parent.
        stat: Vec<String>,
        /// How its own test ended; null: it was not tested.
        outcome: Option<StepOutcome>,
    },
    /// An option that differs between the configurations.
    Option {
        /// Name and its values in the good configuration and the bad one.
        option: OptionPair,
        /// Its prompt in Kconfig; null: none was found.
        prompt: Option<String>,
        /// First lines of its help.
        help: Vec<String>,
        /// Whether the kernel is good without it; null: that could not be tested.
        is_needed: Option<bool>,
    },
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// It does not show the fault.
    Good,
    Bad,
    /// It could not be tested.
    #[default]
    Skipped,
}

impl StepOutcome {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Skipped => "skipped",
        }
    }
}

/// One kernel: built, booted, tested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BisectStep {
    /// From 1; 1 is the good end, 2 the bad one.
    pub number: usize,
    /// The step whose kernel it tests a second time; null: it is the first test of this one.
    #[serde(default)]
    pub repeats: Option<usize>,
    /// Commit, or SHA-256 of the configuration.
    pub id: String,
    /// Subject of the commit, or the options that were taken from the bad side.
    pub title: String,
    pub outcome: StepOutcome,
    /// What was measured, or why it was skipped.
    pub why: String,
    pub objects: u64,
    /// Seconds of the build.
    pub build_s: u64,
    /// Seconds of the guest, of the host's time; on the machine: of the test alone.
    pub boot_s: f64,
    /// Folder of its logs.
    pub folder: String,
    /// What `prove` measured; null: it did not.
    pub measured: Option<KernelSide>,
    /// Status and finding of the criterion's check.
    pub check: Option<(Status, String)>,
    /// Exit code of the command; 255: the kernel panicked while it ran.
    pub exit: Option<i32>,
}

// A kernel that was booted under QEMU, and what ran in its guest.

pub const BOOT_SCHEMA: &str = "rtproof/kernel-boot/1";

/// Result of a boot that ended as it should.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Booted {
    /// Version of this form: `rtproof/kernel-boot/1`.
    pub schema: &'static str,
    pub image: String,
    /// Release, as the guest's `uname -r` reported it.
    pub release: String,
    pub arch: String,
    /// Where the configuration is from; null: unknown.
    pub config: Option<String>,
    /// Value of `PREEMPT_RT` there, `n`: not set; null: unknown.
    pub preempt_rt: Option<String>,
    pub guest: Guest,
    /// Seconds of the host from the start of QEMU until init spoke.
    pub init_s: f64,
    /// Seconds of the host until QEMU ended.
    pub seconds: f64,
    /// What ran inside, in order.
    pub steps: Vec<GuestStep>,
    /// The folder of all files.
    pub folder: String,
    pub files: Vec<String>,
    pub notes: Vec<String>,
}

/// The virtual machine that a kernel was booted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Guest {
    pub qemu: String,
    /// How its time passes.
    pub clock: GuestClock,
    pub cpus: u32,
    pub memory_mib: u32,
    /// The kernel's command line.
    pub command_line: String,
}

/// How time passes in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestClock {
    /// The processor's own virtualization; the host's time.
    Kvm,
    /// Emulated, in the host's time.
    Emulated,
    /// Emulated, and time is a count of instructions.
    Instructions,
}

impl GuestClock {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Emulated => "emulated",
            Self::Instructions => "emulated, counted instructions",
        }
    }

    /// What a latency that was measured in such a guest says.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Kvm => {
                "Latencies are those of a guest: the host's scheduling and the exits to it are in \
                 them. They prove nothing about this kernel on the bare machine."
            }
            Self::Emulated => {
                "The processor is emulated and its CPUs are threads of the host: latencies say \
                 nothing about this kernel. Whether it works, how it is configured and what its \
                 checks find is what counts."
            }
            Self::Instructions => {
                "Time is a count: each instruction takes 4 ns. A latency is a length of code, \
                 not a time: caches, memory, buses, firmware, power states and other CPUs at the \
                 same time are not in it."
            }
        }
    }
}

/// One command that ran in the guest.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GuestStep {
    /// Its name: `check`, `prove`, `command`.
    pub name: String,
    pub command: Vec<String>,
    /// Exit code; null: not started, or ended by a signal.
    pub exit: Option<i32>,
    /// Why there is no exit code.
    pub why: Option<String>,
    /// Seconds of the guest.
    pub seconds: f64,
    /// What it wrote to standard output, as far as it is text.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}

// A kernel that was built, and configurations that were build-tested.

/// Version of the JSON form of a build.
pub const BUILD_SCHEMA: &str = "rtproof/kernel-build/1";

/// Version of the JSON form of build tests.
pub const TESTS_SCHEMA: &str = "rtproof/kernel-build-test/1";

/// Result of `kernel build`: the kernel and the files made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuiltKernel {
    /// Version of this form: `rtproof/kernel-build/1`.
    pub schema: &'static str,
    /// Release, as `uname -r` will report it.
    pub release: String,
    pub kernel_source: String,
    /// Patches applied, in order.
    pub patches: Vec<String>,
    /// Files made: kernel image, configuration, packages.
    pub files: Vec<BuiltFile>,
    /// Whether an unfinished build in the folder was continued.
    pub continued: bool,
    /// Whether ccache was used.
    pub ccache: bool,
    /// Objects made by this call: compiled, assembled, linked, archived.
    pub objects: u64,
    /// Warnings of the compiler in this call.
    pub warnings: u64,
    /// Seconds that this call's make took.
    pub seconds: u64,
    pub log: String,
    /// Value of `PREEMPT_RT` in the configuration that was built; `n`: not set.
    pub preempt_rt: String,
}

/// A file of the build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuiltFile {
    pub path: String,
    pub bytes: u64,
}

/// Configurations that were built to see whether they build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuildTests {
    /// Version of this form: `rtproof/kernel-build-test/1`.
    pub schema: &'static str,
    pub kernel_source: String,
    /// One row each, in the order given.
    pub rows: Vec<BuildTest>,
}

/// Result of building the source with one test configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BuildTest {
    /// Target of the source that makes the configuration, e.g. `allnoconfig`.
    pub config: String,
    /// Whether it was built to its end.
    pub builds: bool,
    pub objects: u64,
    /// Warnings of the compiler.
    pub warnings: u64,
    pub seconds: u64,
    /// The first lines of the errors.
    pub errors: Vec<String>,
    pub log: String,
}

// Two kernels that were booted in the same made-up machine and measured by counted instructions.

pub const COMPARE_SCHEMA: &str = "rtproof/kernel-compare/1";

/// Differences between two kernels.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelsCompared {
    /// Version of this form: `rtproof/kernel-compare/1`.
    pub schema: &'static str,
    /// The guest of both; its command line is the first one's.
    pub guest: Guest,
    /// Arguments of `prove` in both guests.
    pub prove: Vec<String>,
    /// Length of one instruction in the guest's time, nanoseconds.
    pub instruction_ns: u64,
    /// The first kernel and the second one.
    pub kernels: [KernelSide; 2],
    /// Checks whose answer is not the same in both.
    pub checks: Vec<CheckPair>,
    /// Options of the configurations that are not the same; null: one of them is unknown.
    pub options: Option<Vec<OptionPair>>,
    pub notes: Vec<String>,
}

/// One of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelSide {
    pub image: String,
    /// Release, as the guest reported it.
    pub release: String,
    /// Where the configuration is from; null: unknown.
    pub config: Option<String>,
    /// Folder of its record and logs.
    pub folder: String,
    /// Exit code of `prove`.
    pub exit: Option<i32>,
    /// Wake-ups that were due.
    pub scheduled: u64,
    pub missed: u64,
    /// From due to run.
    pub latency: WakeUpPath,
    /// Above this a wake-up was looked into, instructions; null: none was.
    pub threshold: Option<u64>,
    /// Wake-ups above it, those that are explained, and of these the ones with events missing.
    pub spikes: [u64; 3],
    /// What they waited for, longest sum first.
    pub causes: Vec<Stretches>,
}

/// Length of the way from due to run, instructions. Quantiles are at most 0.8 % too large; null:
/// too few wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeUpPath {
    pub min: Option<u64>,
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
}

/// What a cause took of the explained wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stretches {
    /// Cause, e.g. `irqs-off`.
    pub cause: String,
    pub title: String,
    pub count: u64,
    /// The longest one, instructions.
    pub longest: u64,
    /// All of them, instructions.
    pub sum: u64,
    /// Of that, what may have been another cause, instructions.
    pub uncertain: u64,
}

/// A check that answers differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckPair {
    pub check: String,
    /// Status under each kernel; null: not asked there.
    pub status: [Option<Status>; 2],
    pub summary: [Option<String>; 2],
}

/// An option with two values; `n`: not set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OptionPair {
    /// Without `CONFIG_`.
    pub name: String,
    pub values: [String; 2],
}

// A kernel's configuration: the request, and the result of the source's own kconfig.

pub const CONFIG_SCHEMA: &str = "rtproof/kernel-config/1";

/// The fragment and its resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Configured {
    /// Version of this form: `rtproof/kernel-config/1`.
    pub schema: &'static str,
    /// Where it began: a file, a target of the source, the running kernel.
    pub base: String,
    /// The source; `None`: no source was given, so that nothing is resolved.
    pub kernel_source: Option<String>,
    /// Version of the source, e.g. `6.12.8`.
    pub version: Option<String>,
    pub fragment: String,
    /// The resolved configuration; `None` without a source.
    pub config: Option<String>,
    pub options: Vec<OptionRow>,
    /// Other options that have another value than the base as this source resolves it.
    pub changed: Vec<ChangedOption>,
    /// Options that a profile leaves open, as they are.
    pub open: Vec<OptionRow>,
    /// What else the user has to know.
    pub notes: Vec<String>,
}

impl Configured {
    /// Options that are not as they were asked for.
    pub fn dropped(&self) -> impl Iterator<Item = &OptionRow> {
        self.options.iter().filter(|row| row.fate == OptionOutcome::Dropped)
    }
}

/// Outcome of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionOutcome {
    /// The resolved configuration has it.
    Survived,
    /// It has another value.
    Dropped,
    /// There is no source to resolve it with.
    Unresolved,
    Open,
}

/// One kernel option: its value wanted, before and after kconfig.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OptionRow {
    /// Without `CONFIG_`.
    pub name: String,
    /// Value asked for; `n`: not set; empty: none.
    pub wanted: String,
    /// Value in the base.
    pub before: String,
    /// Value in the resolved configuration; `None`: not resolved.
    pub after: Option<String>,
    pub fate: OptionOutcome,
    /// Why it was dropped.
    pub because: Vec<String>,
    /// The check that asks for it, or `guest`, `core-sched`.
    pub check: String,
    pub why: String,
    /// Where that is known from.
    pub source: String,
    /// Latency that the other value costs, as a rule, in words.
    pub costs: Option<String>,
}

/// An option that changed with the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedOption {
    /// Without `CONFIG_`.
    pub name: String,
    /// Value in the base as this source resolves it; `n`: not set.
    pub before: String,
    /// Value in the resolved configuration.
    pub after: String,
}

// Kernels for real-time work that a distribution offers.

pub const FIND_SCHEMA: &str = "rtproof/kernel-find/1";

/// What the package manager of this machine answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Offers {
    /// Version of this form: `rtproof/kernel-find/1`.
    pub schema: &'static str,
    /// The package manager, e.g. `apt`.
    pub manager: String,
    /// The commands that were run.
    pub queries: Vec<String>,
    /// Packages whose name says that they are real-time kernels; those that follow the newest
    /// version come first.
    pub packages: Vec<KernelPackage>,
}

/// A kernel package that the distribution offers, with its sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelPackage {
    pub name: String,
    /// Version that would be installed.
    pub version: String,
    /// Version that is installed; `None`: the manager reports none, or was not asked.
    pub installed: Option<String>,
    /// Bytes to download, with the packages of `with`; `None`: not reported.
    pub download_bytes: Option<u64>,
    /// Bytes on disk, with the packages of `with`; `None`: not reported.
    pub disk_bytes: Option<u64>,
    /// Kernel packages that come with it and are part of the sizes.
    pub with: Vec<String>,
    pub description: String,
    /// Whether the name follows the newest version, instead of holding one.
    pub follows: bool,
    /// Command that installs it.
    pub install: String,
    /// Command that removes it again, with what came with it.
    pub remove: String,
}

// Commits that were carried over to another version.

pub const REBASE_SCHEMA: &str = "rtproof/kernel-rebase/1";

/// A git tree after a rebase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rebased {
    /// Version of this form: `rtproof/kernel-rebase/1`.
    pub schema: &'static str,
    pub tree: String,
    /// Onto what, where this call began it.
    pub onto: Option<String>,
    /// Commits on top of it, oldest first, where this call began it.
    pub commits: Option<Vec<String>>,
    /// Local commits before, where this call began it. git leaves out those that the new version
    /// has already, those that are empty then, and merges.
    pub local: Option<u64>,
    pub head: String,
    /// Whether the rebase was given up.
    pub aborted: bool,
}
