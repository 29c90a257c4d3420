//! The kernel: version, preemption model, build configuration, command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Reading;

/// The running kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// Release, as `uname -r`.
    pub release: Reading<String>,
    /// (major, minor) of the release: what "since kernel 6.12" is compared with.
    pub version: Reading<(u32, u32)>,
    /// Build, as `uname -v`; names PREEMPT_RT where the kernel has it.
    pub build: Reading<String>,
    /// Machine, as `uname -m`.
    pub arch: Reading<String>,
    /// Preemption model now in force.
    pub preemption: Reading<Preemption>,
    /// Build configuration: `CONFIG_` names without the prefix. Options that are not set are absent.
    pub config: Reading<BTreeMap<String, String>>,
    /// Boot command line, in order.
    pub cmdline: Reading<CommandLine>,
    /// Lockdown mode: none, integrity or confidentiality.
    pub lockdown: Reading<String>,
    /// Taint mask (/proc/sys/kernel/tainted).
    pub tainted: Reading<u64>,
}

/// Preemption model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// Boot command line. Keys are kept as written; a key may occur more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandLine {
    /// The whole line.
    pub text: String,
    /// Parameters up to `--`, in order.
    pub parameters: Vec<Parameter>,
}

/// One parameter of the command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parameter {
    /// Name, e.g. `isolcpus`.
    pub key: String,
    /// Value after `=`, quotes removed; `None` for a bare word.
    pub value: Option<String>,
}

impl CommandLine {
    /// The last value given for a key: the one most kernel parameters use. `Some(None)` is a bare
    /// word. `-` and `_` are the same in parameter names (kernel/params.c, `parameqn`).
    #[must_use]
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
}
