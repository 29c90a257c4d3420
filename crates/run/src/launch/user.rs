//! Another user for the program, and the capabilities that it keeps.

use rtproof_host::Root;
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use crate::usage::Invalid;

/// A user as the kernel knows one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) groups: Vec<u32>,
    pub(super) name: String,
    pub(super) home: String,
}

/// A user by name, or by number (`UID` or `UID:GID`). Only /etc/passwd and /etc/group are asked: a
/// static program cannot ask a directory service.
pub(super) fn user(root: &Root, asked: &str) -> Result<User, Invalid> {
    let text = |path: &str| root.read_text(path).value().cloned().unwrap_or_default();
    find(&text("/etc/passwd"), &text("/etc/group"), asked)
}

fn find(passwd: &str, group: &str, asked: &str) -> Result<User, Invalid> {
    let (uid, gid) = match asked.split_once(':') {
        Some((uid, gid)) => (uid, Some(number(gid)?)),
        None => (asked, None),
    };
    let entry = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| {
        fields.len() >= 6 && (fields[0] == uid || gid.is_none() && fields[2] == uid)
    });
    match (entry, gid) {
        (Some(fields), None) => {
            let gid = number(fields[3])?;
            let is_member = |line: &&str| {
                line.rsplit_once(':')
                    .is_some_and(|(_, all)| all.split(',').any(|of| of == fields[0]))
            };
            let of = |line: &str| line.split(':').nth(2)?.parse().ok();
            let mut groups: Vec<u32> = group.lines().filter(is_member).filter_map(of).collect();
            groups.push(gid);
            groups.sort_unstable();
            groups.dedup();
            let (name, home) = (fields[0].into(), fields[5].into());
            Ok(User { uid: number(fields[2])?, gid, groups, name, home })
        }
        (None, None) => Err(format!(
            "no such user in /etc/passwd; one of a directory service is named by its numbers, as \
             {asked}: UID:GID"
        )
        .into()),
        (_, Some(gid)) => {
            let uid = number(uid)?;
            Ok(User { uid, gid, groups: vec![gid], name: uid.to_string(), home: "/".into() })
        }
    }
}

fn number(text: &str) -> Result<u32, Invalid> {
    // The largest means "as it is" to the kernel.
    text.parse().ok().filter(|id| *id != u32::MAX).ok_or_else(|| {
        format!("{text}: expected the number of a user or a group, e.g. --user 1000:1000").into()
    })
}

/// Capabilities by name, with or without `cap_`; `none`.
pub(super) fn capabilities(asked: &str) -> Result<CapabilitySet, Invalid> {
    if asked == "none" {
        return Ok(CapabilitySet::empty());
    }
    let mut all = CapabilitySet::empty();
    for word in asked.split(',').map(str::trim) {
        let name = word.to_uppercase();
        let name = name.strip_prefix("CAP_").unwrap_or(&name);
        all |= CapabilitySet::from_name(name).ok_or_else(|| {
            format!("{word}: no such capability; write e.g. sys_nice,ipc_lock, or none")
        })?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nrt:x:1000:1000::/home/rt:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nrealtime:x:95:rt,other\nrt:x:1000:\naudio:x:29:other\n";

    #[test]
    fn a_user_has_the_groups_of_the_system() {
        let rt = find(PASSWD, GROUP, "rt").unwrap();
        assert_eq!((rt.uid, rt.gid, rt.groups.as_slice()), (1000, 1000, &[95, 1000][..]));
        assert_eq!(rt.home, "/home/rt");
        assert_eq!(find(PASSWD, GROUP, "1000").unwrap(), rt);
        let bare = find(PASSWD, GROUP, "4711:4712").unwrap();
        assert_eq!((bare.uid, bare.groups.as_slice()), (4711, &[4712][..]));
        for wrong in ["nobody-here", "5", "x:1", "1:x", "1:4294967295", ""] {
            assert!(find(PASSWD, GROUP, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn capabilities_have_the_kernels_names() {
        let two = CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK;
        assert_eq!(capabilities("sys_nice,CAP_IPC_LOCK"), Ok(two));
        assert_eq!(capabilities("none"), Ok(CapabilitySet::empty()));
        assert!(capabilities("sys_fast").is_err());
        assert!(capabilities("").is_err());
    }
}
