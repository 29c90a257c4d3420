//! What is there: the state of what a change is about, exact enough to be put back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tree::TreeFile;
use crate::{
    CpuList,
    change::{Bytes, IrqName, Scheduling, TaskName},
};

/// The state of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum State {
    /// Nothing is there.
    Absent,
    /// Bytes of a value of the running kernel, as read.
    Value {
        bytes: Bytes,
        /// The files that move with it, with their bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        couples: Vec<(String, Bytes)>,
    },
    File {
        bytes: Bytes,
        mode: u32,
        uid: u32,
        gid: u32,
        /// Last modification, nanoseconds since 1970.
        modified_ns: i64,
        /// Extended attributes (security labels), by name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, Bytes)>,
    },
    /// A symbolic link, and where it leads.
    Link {
        /// Its text.
        to: String,
    },
    Folder,
    /// A file or folder that was put in place whole.
    Tree {
        /// Itself and, of a folder, all that is in it, by path.
        files: Vec<TreeFile>,
    },
    /// Scheduling of a task.
    Task {
        scheduling: Scheduling,
    },
    Unit {
        active: bool,
        /// Links that enable or mask it (path, text), in the folders of systemd and of the boot
        /// scripts under /etc and /run.
        links: Vec<(String, String)>,
        /// The folders that hold such links (`multi-user.target.wants`), whatever is in them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<String>,
    },
    /// A property of a unit.
    Property {
        /// Its value as `systemctl show` gives it.
        value: String,
        /// The drop-in that an earlier `set-property --runtime` left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        drop_in: Option<Bytes>,
    },
    /// A group of users.
    Group {
        gid: u32,
        /// The users that are listed for it, in the order of the file.
        members: Vec<String>,
    },
    /// Whether a user is in a group.
    Member {
        /// The group's number; `None`: there is no such group.
        gid: Option<u32>,
        /// Whether the user is in it: listed, or as the user's first group.
        is_member: bool,
    },
    /// Packages, each as its manager has it.
    Packages {
        /// In the order of the change.
        packages: Vec<PackageState>,
    },
    /// The switch of a CPU, and what the kernel moves when it is set.
    Hotplug {
        /// Bytes of the switch.
        bytes: Bytes,
        /// Affinity of every task that may use a CPU that goes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<(TaskName, CpuList)>,
        /// Affinity of every interrupt.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        irqs: Vec<(IrqName, CpuList)>,
        /// CPUs of the groups (`cpuset.cpus`), and the tasks of those of version 1 that would be
        /// left without one (`tasks`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<(String, Bytes)>,
    },
}

/// A package as its manager has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PackageState {
    pub name: String,
    /// dpkg's word: `installed`, `config-files` (removed, its settings kept), `not-installed`, or
    /// a state half way (`unpacked`, `half-configured` ...).
    pub status: String,
    /// Version; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}
