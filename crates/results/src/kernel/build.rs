//! A kernel that was built, and configurations that were build-tested.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON form of a build.
pub const SCHEMA: &str = "rtproof/kernel-build/1";
/// Version of the JSON form of build tests.
pub const TESTS_SCHEMA: &str = "rtproof/kernel-build-test/1";

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
