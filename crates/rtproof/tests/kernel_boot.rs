//! `rtproof kernel boot` with real QEMU and made-up kernels: a few instructions that write a text
//! to the serial port, then hang or reset. The test at the end boots a kernel that is installed.

use std::{
    fs,
    path::Path,
    process::Output,
    time::{Duration, Instant},
};

use crate::support::{
    self, ACCEPTED, FAILED, USAGE, folder,
    made_up::{Then, has_qemu, kernel},
    run, start, stderr, stdout,
};

/// Boots a made-up kernel; its console's log is in `out`.
fn boot(at: &Path, text: &str, then: Then, more: &[&str]) -> Output {
    fs::write(at.join("vmlinuz"), kernel(text, then)).expect("a kernel");
    let mut words = vec!["kernel", "boot", "vmlinuz", "--no-kvm", "-o", "out"];
    words.extend(["--timeout", "6s"]);
    words.extend(more);
    run(at, &words)
}

/// The error of a boot that failed.
fn failed(text: &str, then: Then) -> String {
    let folder = folder();
    let output = boot(folder.path(), text, then, &[]);
    assert_eq!(output.status.code(), Some(FAILED), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("log: out/console.log"), "{said}");
    // QEMU's input files are removed, the logs stay.
    let mut left: Vec<_> = fs::read_dir(folder.path().join("out"))
        .expect("the folder")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    left.sort();
    assert_eq!(left, ["command.txt", "console.log", "qemu.err"]);
    said
}

#[test]
fn a_hang_before_init_shows_the_last_lines() {
    if has_qemu() {
        let said = failed("[    0.0] Linux version 6.1.0\r\n[    0.1] last words\r\n", Then::Hang);
        assert!(said.contains("did not come to init within 6 s"), "{said}");
        assert!(said.contains("\n  [    0.1] last words\n"), "{said}");
    }
}

#[test]
fn a_panic_shows_the_kernel_s_own_lines_and_ends_at_once() {
    if has_qemu() {
        let panic = "[    0.5] BUG: unable to handle page fault\r\n[    0.6] Kernel panic - not \
                     syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r\n";
        for then in [Then::Hang, Then::Reset] {
            let began = Instant::now();
            let said = failed(panic, then);
            assert!(said.contains("the boot failed (kernel panic)"), "{said}");
            assert!(said.contains("CONFIG_BLK_DEV_INITRD"), "{said}");
            assert!(said.contains("  [    0.5] BUG: unable to handle page fault\n"), "{said}");
            assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
        }
    }
}

#[test]
fn a_kernel_without_a_console_is_distinguished() {
    if has_qemu() {
        let said = failed("", Then::Hang);
        assert!(said.contains("nothing on the serial console within 6 s"), "{said}");
        assert!(said.contains("CONFIG_SERIAL_8250_CONSOLE") && said.contains("--config"), "{said}");
        let said = failed("", Then::Reset);
        assert!(said.contains("before the kernel spoke"), "{said}");
        let said = failed("[    0.0] Run /init as init process\r\n", Then::Hang);
        assert!(said.contains("init was not heard within 6 s"), "{said}");
        let said = failed("[    0.0] Linux version 6.1.0\r\n", Then::Reset);
        assert!(said.contains("reset or switched off before init"), "{said}");
    }
}

#[test]
fn output_of_a_guest_is_not_trusted() {
    if has_qemu() {
        let said = failed("GUEST-INIT 6.1.0\r\nGUEST-STEP prove\r\n", Then::Reset);
        assert!(said.contains("reset or switched off, while prove ran"), "{said}");
        let said = failed("GUEST-INIT 6.1.0\r\nGUEST-STEP prove\r\n", Then::Hang);
        assert!(said.contains("no end within 6 s of init, while prove ran"), "{said}");
        let said = failed("GUEST-INIT 6\r\nGUEST-BROKEN devtmpfs \x1b[2J\r\n", Then::Reset);
        assert!(said.contains("(init failed); devtmpfs"), "{said}");
        assert!(!said.contains('\x1b'), "{said}");
        // It claims success without a file, or with an invalid one.
        for files in ["", "GUEST-FILES-BEGIN\r\nAAAA\r\nGUEST-FILES-END\r\n"] {
            let text = format!("GUEST-INIT 6.1.0\r\n{files}GUEST-RC=0\r\n");
            let folder = folder();
            let output = boot(folder.path(), &text, Then::Reset, &[]);
            assert_eq!(output.status.code(), Some(FAILED), "{}", stdout(&output));
            assert!(stderr(&output).contains("damaged"), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_signal_ends_qemu_and_leaves_nothing_running() {
    if !has_qemu() {
        return;
    }
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("vmlinuz"), kernel("[    0.0] Linux version 6.1.0\r\n", Then::Hang)).unwrap();
    let words = ["kernel", "boot", "vmlinuz", "--no-kvm", "-o", "out"];
    let mut child = start(at, &words);
    let log = at.join("out/console.log");
    let began = Instant::now();
    while !fs::read_to_string(&log).is_ok_and(|text| text.contains("Linux version")) {
        assert!(began.elapsed() < Duration::from_secs(60), "QEMU does not come up");
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(FAILED));
    let folder = at.canonicalize().unwrap();
    let left = fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|entry| {
        let is_there = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder);
        is_there && entry.file_name().to_string_lossy().starts_with(|c: char| c.is_ascii_digit())
    });
    assert_eq!(left.count(), 0, "QEMU still runs");
    assert!(!at.join("out/initramfs.cpio").exists());
}

#[test]
fn what_cannot_be_booted_is_refused_before_anything_is_made() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("vmlinuz-6"), kernel("", Then::Hang)).unwrap();
    fs::write(at.join("config-6"), "CONFIG_BLK_DEV_INITRD=y\nCONFIG_DEVTMPFS=y\n").unwrap();
    fs::write(at.join("text"), "text").unwrap();
    fs::write(at.join("script"), "#!/bin/sh\n").unwrap();
    fs::copy(at.join("vmlinuz-6"), at.join("plain")).unwrap();
    let mut arm = vec![0; 4096];
    arm[0x38..0x3c].copy_from_slice(b"ARM\x64");
    fs::write(at.join("Image"), arm).unwrap();
    fs::create_dir(at.join("there")).unwrap();
    let refused = |words: &[&str]| {
        let words: Vec<&str> = ["kernel", "boot"].iter().chain(words).copied().collect();
        let output = run(at, &words);
        assert_eq!(output.status.code(), Some(FAILED), "{words:?}: {}", stdout(&output));
        stderr(&output)
    };
    let said = refused(&["vmlinuz-6", "-o", "out"]);
    assert!(said.contains("CONFIG_SERIAL_8250_CONSOLE=y") && said.contains("config-6"), "{said}");
    assert!(refused(&["text", "-o", "out"]).contains("not a kernel"));
    assert!(refused(&["9.9.9-none", "-o", "out"]).contains("no installed kernel"));
    assert!(refused(&["no/such", "-o", "out"]).contains("no/such"));
    if has_qemu() {
        let said = refused(&["plain", "-o", "there"]);
        assert!(said.contains("is there already"), "{said}");
        assert!(refused(&["plain", "--memory", "64"]).contains("give at least"));
        assert!(refused(&["plain", "--", "no-such-program"]).contains("no such program"));
        assert!(refused(&["plain", "--", "./script"]).contains("no ELF program"));
        assert!(refused(&["plain", "--load", "msr"]).contains("--modules"));
        assert!(refused(&["plain", "--append", "a -- b"]).contains("\"--\" is set by rtproof"));
    }
    if rtproof_host::trusted::find_program("qemu-system-aarch64").is_ok()
        && cfg!(target_arch = "x86_64")
    {
        let said = refused(&["Image"]);
        assert!(
            said.contains("a static rtproof for aarch64") && said.contains("--binary"),
            "{said}"
        );
        let said = refused(&["Image", "--binary", support::binary()]);
        assert!(said.contains("a program for x86-64; the kernel is for aarch64"), "{said}");
    }
    let usage = run(at, &["kernel", "boot", "plain", "--prove=--output x"]);
    assert_eq!(usage.status.code(), Some(USAGE), "{}", stderr(&usage));
    let names = fs::read_dir(at).unwrap().filter_map(Result::ok).map(|entry| entry.file_name());
    assert!(
        !names.into_iter().any(|name| name == "out" || name.to_string_lossy().contains("boot-"))
    );
}

/// Version of a kernel that is installed.
fn installed_kernel() -> Option<String> {
    let entries = fs::read_dir("/boot").ok()?.filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix("vmlinuz-")?.to_owned())).collect();
    found.sort();
    found.pop()
}

#[test]
fn an_installed_kernel_boots_and_what_ran_inside_comes_out() {
    let Some(version) = has_qemu().then(installed_kernel).flatten() else {
        eprintln!("left out: no kernel in /boot");
        return;
    };
    let folder = folder();
    let words =
        ["kernel", "boot", &version, "--no-kvm", "-o", "out", "--json", "--", "uname", "-r"];
    let output = run(folder.path(), &words);
    assert_eq!(output.status.code(), Some(ACCEPTED), "{}", stderr(&output));
    let booted: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(booted["release"].as_str(), Some(version.as_str()));
    assert_eq!(booted["steps"][0]["output"].as_str().map(str::trim), Some(version.as_str()));
}
