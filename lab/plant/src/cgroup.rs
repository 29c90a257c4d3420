//! Joins a control group (version 2), made on the way with the controllers and limits it needs.

use std::{fs, path::Path};

use crate::files;

const ROOT: &str = "/sys/fs/cgroup";

/// Makes the group, sets its limits (file and value).
pub(crate) fn make(group: &str, limits: &[(&str, String)]) -> Result<(), String> {
    let group = Path::new(group);
    let inside = group
        .strip_prefix(ROOT)
        .map_err(|_| format!("--cgroup {}: expected a folder below {ROOT}", group.display()))?;
    fs::create_dir_all(group).map_err(|error| format!("{}: {error}", group.display()))?;
    let mut above = Path::new(ROOT).to_path_buf();
    for name in inside {
        for (file, _) in limits {
            let controller = file.split('.').next().unwrap_or_default();
            files::write(above.join("cgroup.subtree_control"), &format!("+{controller}"))?;
        }
        above.push(name);
    }
    limits.iter().try_for_each(|(file, value)| files::write(group.join(file), value))
}

/// Puts a process in a group; 0 is the calling one.
pub(crate) fn put(group: &str, pid: u64) -> Result<(), String> {
    files::write(Path::new(group).join("cgroup.procs"), &pid.to_string())
}

/// The folder of the group that a process is in.
pub(crate) fn of(pid: u64) -> Result<String, String> {
    let path = format!("/proc/{pid}/cgroup");
    let text = files::read(&path)?;
    let group = text.lines().find_map(|line| line.strip_prefix("0::"));
    let group = group.ok_or_else(|| format!("{path}: no group of version 2"))?;
    Ok(format!("{ROOT}{group}"))
}
