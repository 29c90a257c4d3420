//! ansible-playbook runs the playbooks of `--format ansible` on this machine with a false root:
//! check mode changes nothing, a run does what check mode said, a second run has nothing to do, and
//! undo takes it back.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::tools::{self, exported, got, machine, program, run, said, written};

struct Playbooks {
    program: PathBuf,
    folder: tempfile::TempDir,
    root: tempfile::TempDir,
}

impl Playbooks {
    fn new() -> Option<Self> {
        let program = program("ansible-playbook")?;
        let root = tempfile::tempdir().expect("a root");
        machine(root.path());
        Some(Self { program, folder: written(&exported("ansible")), root })
    }

    fn root(&self) -> &Path {
        self.root.path()
    }

    /// Runs a playbook; what it said, and how many tasks changed something.
    #[track_caller]
    fn run(&self, playbook: &str, more: &[&str]) -> (String, u32) {
        let output = run(Command::new(&self.program)
            .current_dir(self.folder.path())
            .env("ANSIBLE_NOCOLOR", "1")
            .env("ANSIBLE_PIPELINING", "1")
            .env("ANSIBLE_LOCALHOST_WARNING", "false")
            .env("ANSIBLE_HOME", self.folder.path().join(".ansible"))
            .env("ANSIBLE_LOCAL_TEMP", self.folder.path().join(".ansible/tmp"))
            .env("ANSIBLE_REMOTE_TEMP", self.folder.path().join(".ansible/tmp"))
            .args(["-i", "rtproof_host,", "-c", "local"])
            .args(["-e", "ansible_python_interpreter=/usr/bin/python3"])
            .args(["-e", "ansible_become=false"])
            .arg("-e")
            .arg(format!("rtproof_root={}", self.root().display()))
            .args(more)
            .arg(playbook));
        let said = said(&output);
        assert!(output.status.success(), "{playbook} {more:?}: {said}");
        let changed = said
            .split("changed=")
            .nth(1)
            .map_or("0", |rest| rest.split_whitespace().next().unwrap_or("0"));
        (said.clone(), changed.parse().expect("a number"))
    }
}

/// The group of the playbooks, for an inventory of one name.
fn for_all(folder: &Path) {
    for name in ["rtproof.yml", "rtproof-undo.yml"] {
        let text = got(folder, name).replace("hosts: rtproof\n", "hosts: all\n");
        tools::put(folder, &[(name, &(text + "\n"))]);
    }
}

#[test]
fn ansible_applies_what_check_mode_showed_once_and_reverts_it() {
    let Some(playbooks) = Playbooks::new() else { return };
    for_all(playbooks.folder.path());
    let root = playbooks.root();
    let before = tools::tree(root);

    for playbook in ["rtproof.yml", "rtproof-undo.yml"] {
        playbooks.run(playbook, &["--syntax-check"]);
    }
    let (said, changed) = playbooks.run("rtproof.yml", &["--check", "--diff"]);
    assert!(changed > 0, "{said}");
    assert!(said.contains("7 -> 120"), "{said}");
    assert_eq!(tools::tree(root), before, "check mode writes nothing");

    let (said, changed) = playbooks.run("rtproof.yml", &[]);
    assert!(changed > 0, "{said}");
    assert_eq!(got(root, "/proc/sys/vm/stat_interval"), "120");
    assert_eq!(got(root, "/proc/sys/kernel/printk"), "3 4 1 7");
    assert_eq!(got(root, "/proc/sys/net/ipv6/conf/eth0.100/disable_ipv6"), "1");
    assert_eq!(got(root, "/sys/kernel/mm/transparent_hugepage/enabled"), "never");
    assert_eq!(got(root, "/sys/devices/system/cpu/cpu3/cpuidle/state2/disable"), "1");
    assert_eq!(got(root, "/sys/devices/system/cpu/cpu1/cpuidle/state2/disable"), "0");
    assert!(root.join("etc/default/grub.d/90-rtproof.cfg").exists());
    assert!(root.join("usr/local/sbin/rtproof-tuning").exists());

    let done = tools::tree(root);
    let (said, changed) = playbooks.run("rtproof.yml", &[]);
    assert_eq!(changed, 0, "a second run has nothing to do: {said}");
    assert_eq!(tools::tree(root), done);

    // Something else sets one of them.
    tools::put(root, &[("/sys/devices/virtual/workqueue/cpumask", "1\n")]);
    playbooks.run("rtproof-undo.yml", &[]);
    assert_eq!(got(root, "/proc/sys/kernel/sched_rt_runtime_us"), "950000", "as it was known");
    assert_eq!(got(root, "/sys/kernel/mm/transparent_hugepage/enabled"), "madvise");
    assert_eq!(got(root, "/sys/devices/virtual/workqueue/cpumask"), "1", "no longer ours");
    assert!(!root.join("etc/default/grub.d/90-rtproof.cfg").exists());
    assert!(!root.join("usr/local/sbin/rtproof-tuning").exists());
}
