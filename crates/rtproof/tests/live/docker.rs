//! In Docker: a daemon of its own, on its own socket and folders, in mount and network namespaces
//! of its own. Left out, with a word, where `dockerd` is not in PATH: `apt-get install docker.io`,
//! or unpack docker.io, containerd, runc and iptables of Debian and put their folders in front.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{FAILED, REFUSED, alone, binary, code, folder, stderr, stdout, wait_for};

/// Where control groups of version 1 and 2 get the daemon's own group.
const GROUPS: &str = "/sys/fs/cgroup";

/// A daemon; ended, and what it made removed, when it goes.
struct Docker {
    folder: TempDir,
    daemon: Child,
    groups_before: Vec<PathBuf>,
}

/// The groups named after Docker.
fn groups() -> Vec<PathBuf> {
    let below = fs::read_dir(GROUPS).into_iter().flatten().flatten().map(|entry| entry.path());
    let tops = below.chain([PathBuf::from(GROUPS)]);
    tops.map(|top| top.join("docker")).filter(|path| path.is_dir()).collect()
}

impl Docker {
    /// Starts a daemon and gives it an image that has the host's programs in a folder bound to it.
    fn start() -> Option<Self> {
        let left_out = |why: &str| {
            eprintln!("left out: {why}");
            None
        };
        if !Command::new("dockerd").arg("--version").output().is_ok_and(|it| it.status.success()) {
            return left_out("dockerd is not installed (Debian: docker.io)");
        }
        if !is_root() {
            return left_out("only root can start dockerd");
        }
        let folder = folder();
        let at = |name: &str| folder.path().join(name).display().to_string();
        fs::write(at("none.json"), "{}").expect("a configuration");
        let log = fs::File::create(at("log")).expect("a log");
        let groups_before = groups();
        let daemon = Command::new("unshare")
            .args(["-mn", "dockerd", "--bridge=none", "--storage-driver=vfs"])
            .args(["--iptables=false", "--ip6tables=false", "--ip-forward=false"])
            .args(["--data-root", &at("data"), "--exec-root", &at("exec")])
            .args(["--pidfile", &at("pid"), "--config-file", &at("none.json")])
            .args(["-H", &format!("unix://{}", at("sock"))])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("unshare");
        let docker = Self { folder, daemon, groups_before };
        wait_for("dockerd", 60, || {
            let answers = docker.command(&["version"]).output();
            answers.is_ok_and(|output| output.status.success()) || docker.has_ended()
        });
        if docker.has_ended() {
            let log = fs::read_to_string(docker.folder.path().join("log")).unwrap_or_default();
            return left_out(&format!("no dockerd runs here: {}", log.lines().last()?));
        }
        docker.import();
        Some(docker)
    }

    fn has_ended(&self) -> bool {
        let path = format!("/proc/{}/stat", self.daemon.id());
        fs::read_to_string(path).map_or(true, |stat| stat.contains(") Z "))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("docker");
        let socket = self.folder.path().join("sock");
        command.arg("-H").arg(format!("unix://{}", socket.display())).args(args);
        command.stdin(Stdio::null());
        command
    }

    /// FROM scratch, with nothing but links into the /usr that is bound at each start.
    fn import(&self) {
        let image = self.folder.path().join("image");
        for name in ["usr", "tmp"] {
            fs::create_dir_all(image.join(name)).expect("a folder");
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            std::os::unix::fs::symlink(format!("usr/{name}"), image.join(name)).expect("a link");
        }
        let tar = self.folder.path().join("image.tar");
        let made = Command::new("tar").arg("-C").arg(&image).arg("-cf").arg(&tar).arg(".").status();
        assert!(made.is_ok_and(|status| status.success()), "tar");
        let imported = self.command(&["import", &tar.display().to_string(), "rtproof"]).output();
        let imported = imported.expect("docker");
        assert!(imported.status.success(), "{}", stderr(&imported));
    }

    /// rtproof in a container of its own.
    fn run(&self, options: &[&str], args: &[&str]) -> Output {
        let binary = Path::new(binary());
        let bound = format!("{}:/rt:ro", binary.parent().expect("a folder").display());
        self.command(&["run", "--rm", "--network=none", "-v", "/usr:/usr:ro", "-v", &bound])
            .args(["-w", "/tmp"])
            .args(options)
            .args(["rtproof", "/rt/rtproof"])
            .args(args)
            .output()
            .expect("docker")
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let kill = |signal: &str| {
            let _ = Command::new("kill").args([signal, &self.daemon.id().to_string()]).status();
        };
        kill("-TERM");
        for _ in 0..100 {
            if self.has_ended() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        kill("-KILL");
        let _ = self.daemon.wait();
        for group in groups().into_iter().filter(|group| !self.groups_before.contains(group)) {
            let _ = fs::remove_dir(group);
        }
    }
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nUid:\t0\t0"))
}

/// A finding of `check --json`.
fn finding(output: &Output, id: &str) -> Value {
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["machine"]["container"], "docker", "{}", stderr(output));
    let findings = json["findings"].as_array().expect("findings");
    findings.iter().find(|it| it["check"] == id).expect("the finding").clone()
}

#[test]
fn what_a_container_may_and_where_it_gets_the_rest() {
    let _alone = alone();
    let Some(docker) = Docker::start() else { return };
    let check = ["check", "--only", "container,limits-rtprio", "--json"];
    let plain = docker.run(&[], &check);
    assert_eq!(code(&plain), REFUSED, "{}", stderr(&plain));
    for id in ["container", "limits-rtprio"] {
        let finding = finding(&plain, id);
        assert_eq!(finding["status"], "bad", "{finding}");
        assert!(finding["remedies"].to_string().contains("--cap-add SYS_NICE"), "{finding}");
        assert!(!finding["remedies"].to_string().contains("limits.d"), "{finding}");
    }
    let able = docker.run(&["--cap-add=SYS_NICE"], &check);
    assert_eq!(finding(&able, "container")["status"], "doubtful");
    assert_eq!(finding(&able, "limits-rtprio")["status"], "good");
    // Docker puts no capability in force for another user than root.
    let other = docker.run(&["--cap-add=SYS_NICE", "--user=1000"], &check);
    assert_eq!(finding(&other, "container")["status"], "bad");

    let plan = docker.run(&[], &["tune", "plan", "soft-watchdog,swappiness"]);
    let text = stdout(&plan);
    let is_empty = text.contains("nothing to change");
    assert!(is_empty || text.contains("run it on\n") || text.contains("run it on the"), "{text}");
    assert!(!text.contains("tune apply"), "{text}");
    let apply = docker.run(&[], &["tune", "apply", "swappiness", "--yes"]);
    assert!(stderr(&apply).contains("run it on the host"), "{}{}", stdout(&apply), stderr(&apply));
    assert_eq!(code(&apply), FAILED);

    let measure = ["measure", "--for", "1s", "--cpus", "0", "--priority", "80"];
    let refused = docker.run(&["--cap-add=IPC_LOCK"], &measure);
    let text = stdout(&refused).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("measured with SCHED_OTHER: SCHED_FIFO 80 was refused"), "{text}");
    assert!(text.contains("check --prove priority --priority 80"), "{text}");
    assert!(text.contains("tracefs is not mounted in this container (docker)"), "{text}");
    assert!(!text.contains("Memory is not locked"), "{text}");

    // Its threads have other numbers in the host's events: no cause may come from them.
    if !Path::new("/sys/kernel/tracing/instances").is_dir() {
        eprintln!("left out: no tracefs to give a container");
        return;
    }
    let traced = ["-v", "/sys/kernel/tracing:/sys/kernel/tracing"];
    let prove = ["prove", "--for", "1s", "--cpus", "0", "--load", "idle", "--budget", "1h"];
    let alone = docker.run(&traced, &prove);
    let text = stdout(&alone);
    assert!(text.contains("in a PID namespace"), "{text}");
    assert!(!text.contains("is certain"), "{text}");
    let shared = docker.run(&[&traced[..], &["--pid=host"]].concat(), &prove);
    assert!(!stdout(&shared).contains("in a PID namespace"), "{}", stdout(&shared));
}
