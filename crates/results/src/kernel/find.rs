//! Kernels for real-time work that a distribution offers.

use schemars::JsonSchema;
use serde::Serialize;

pub const SCHEMA: &str = "rtproof/kernel-find/1";

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
