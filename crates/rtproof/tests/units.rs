//! The units of rtproof before systemd's own tools, and the one that holds the latency limit at
//! work: reported ready, the limit in force while it runs, gone after SIGTERM.

use std::{
    fs,
    io::Read as _,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rtproof_judge::plan::units;

const EXE: &str = env!("CARGO_BIN_EXE_rtproof");

/// Whether systemd's tool is there; `make test` installs it.
fn has_systemd() -> bool {
    let asked = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    let is_there = asked.is_ok_and(|status| status.success());
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(is_there || !is_ci, "no systemd-analyze: run `make deps`");
    is_there
}

fn written(folder: &Path) -> Vec<(&'static str, String)> {
    let after = ["plc.service".to_owned()];
    let all = vec![
        (units::SERVICE, units::boot_unit(EXE, units::CONFIG, &after)),
        (units::LATENCY, units::latency_unit(EXE)),
        (units::TRIAL, units::trial_unit()),
        (units::TRIAL_TIMER, units::trial_timer(600)),
    ];
    for (name, text) in &all {
        fs::write(folder.join(name), text).unwrap();
    }
    all
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    if !has_systemd() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, _) in written(dir.path()) {
        let verify = Command::new("systemd-analyze")
            .args(["verify", "--man=no", &format!("./{name}")])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&verify.stderr);
        // Other units belong to the machine.
        let of_ours: Vec<&str> = said.lines().filter(|line| line.contains("rtproof")).collect();
        assert!(verify.status.success() && of_ours.is_empty(), "{name}: {said}");
    }
}

#[test]
fn the_units_are_sandboxed_as_far_as_their_work_allows() {
    if !has_systemd() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    // In tenths: 100 is a service without any limits.
    for (name, most) in [(units::LATENCY, 15), (units::SERVICE, 35), (units::TRIAL, 70)] {
        let security = Command::new("systemd-analyze")
            .args(["security", "--no-pager", "--offline=yes", &format!("--threshold={most}")])
            .arg(format!("./{name}"))
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&security.stdout);
        let level = said.lines().last().unwrap_or_default();
        assert!(security.status.success(), "{name}: {level}");
    }
}

#[test]
fn the_trial_reboots_in_the_emergency_shell_too() {
    // What has mounts of its own waits for file systems that may be what is missing.
    let unit = units::trial_unit();
    for option in ["PrivateTmp", "ProtectSystem", "PrivateDevices", "StateDirectory"] {
        assert!(!unit.contains(option), "{option}");
    }
    for unit in [unit, units::trial_timer(600)] {
        assert!(unit.contains("\nDefaultDependencies=no\n"), "{unit}");
    }
}

/// The limit in force, microseconds; `None`: it cannot be read here.
fn limit_us() -> Option<i32> {
    let mut bytes = [0; 4];
    fs::File::open("/dev/cpu_dma_latency").ok()?.read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

#[test]
fn a_limit_is_held_until_sigterm_and_systemd_is_notified() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("notify");
    let notify = UnixDatagram::bind(&socket).unwrap();
    notify.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let notified = || {
        let mut buffer = [0; 256];
        let length = notify.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let may_hold = fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").is_ok();
    let mut child = Command::new(EXE)
        .args(["tune", "hold", "--latency", "37ms"])
        .env("NOTIFY_SOCKET", &socket)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if !may_hold {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("/dev/cpu_dma_latency"), "{said}");
        return;
    }
    let ready = notified();
    assert!(ready.starts_with("READY=1\nSTATUS=/dev/cpu_dma_latency: 37000 µs held"), "{ready}");
    // Another process may hold a lower one at the same time, and the kernel takes the lowest.
    assert!(limit_us().is_some_and(|us| us <= 37_000));
    let kill = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(kill.success());
    assert_eq!(notified(), "STOPPING=1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_ne!(limit_us(), Some(37_000));
}

#[test]
fn the_documentation_shows_the_units_as_they_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/persist.md");
    let docs = fs::read_to_string(path).unwrap();
    let exe = "/usr/local/bin/rtproof";
    for unit in [
        units::boot_unit(exe, units::CONFIG, &[]),
        units::latency_unit(exe),
        units::trial_unit(),
        units::trial_timer(600),
    ] {
        assert!(docs.contains(&format!("```ini\n{unit}```\n")), "{unit}");
    }
}
