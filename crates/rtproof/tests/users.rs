//! Rights of a user, and what a user says of the firmware: `--user`, groups, `check tick`.

use std::{fs, path::Path, process::Command};

use crate::support::{binary, code, expect_code, folder, run, stderr, stdout};

const DMI: &str = "root/sys/class/dmi/id";

/// A machine in a folder `root`: firmware, users, nothing else that matters here.
fn machine(folder: &Path) {
    let files = [
        ("root/sys/class/dmi/id/bios_vendor", "Maker\n"),
        ("root/sys/class/dmi/id/bios_version", "2.1\n"),
        ("root/sys/class/dmi/id/bios_date", "01/02/2024\n"),
        ("root/sys/class/dmi/id/chassis_type", "10\n"),
        ("root/sys/class/power_supply/BAT0/type", "Battery\n"),
        ("root/proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: tsc\n"),
        ("root/proc/version", "Linux version 6.12.0\n"),
        ("root/proc/self/status", "CapEff:\t0\n"),
        ("root/etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
        ("root/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n"),
        ("root/etc/group", "root:x:0:\nalice:x:1000:\n"),
        ("root/etc/security/limits.conf", "# nothing\n"),
        ("root/etc/security/limits.d/README", "nothing\n"),
        ("root/sys/devices/system/cpu/online", "0-1\n"),
        ("root/sys/devices/system/cpu/smt/active", "0\n"),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

fn finding(folder: &Path, check: &str, more: &[&str]) -> serde_json::Value {
    let args = ["check", "--root", "root", "--json", "--only", check];
    let output = run(folder, &[&args[..], more].concat());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    answer["findings"][0].clone()
}

#[test]
fn the_firmware_s_list_is_ticked_gets_stale_and_is_contradicted() {
    let folder = folder();
    let folder = folder.path();
    machine(folder);
    let status = || finding(folder, "bios-profile", &[])["status"].clone();
    assert_eq!(status(), "unknown");
    let tick = |more: &[&str]| run(folder, &[&["check", "tick", "--root", "root"], more].concat());
    assert!(stdout(&tick(&[])).contains("all 11 items not ticked"));
    for (wrong, word) in
        [(&["smtt"][..], "no such item; there are smt"), (&["smt", "--as", "kept"], "say why")]
    {
        let output = tick(wrong);
        expect_code(&output, 64);
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    let output = tick(&["all", "--by", "alice"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("all of 11 items ticked"), "{}", stdout(&output));
    assert_eq!(status(), "good");
    let kept = fs::read_to_string(folder.join("root/etc/rtproof-firmware.conf")).expect("ticks");
    assert!(kept.contains("smt | set | 20") && kept.contains("| alice | 2.1 01/02/2024"), "{kept}");
    fs::write(folder.join("root/sys/devices/system/cpu/smt/active"), "1\n").expect("a file");
    assert_eq!(status(), "doubtful");
    fs::write(folder.join("root/sys/devices/system/cpu/smt/active"), "0\n").expect("a file");
    expect_code(&tick(&["smt", "--remove"]), 0);
    assert_eq!(status(), "unknown");
    expect_code(&tick(&["smt", "--as", "kept", "--note", "both wanted"]), 0);
    assert_eq!(status(), "good");
    fs::write(folder.join(DMI).join("bios_version"), "2.2\n").expect("a file");
    assert_eq!(status(), "unknown");
    fs::remove_file(folder.join(DMI).join("bios_version")).expect("a file");
    let output = tick(&["smt"]);
    expect_code(&output, 1);
    assert!(stderr(&output).contains("bios_version and bios_date"), "{}", stderr(&output));
    let laptop = finding(folder, "laptop", &[]);
    assert_eq!(laptop["summary"], "this is a notebook with a battery");
}

#[test]
fn a_user_s_rights_are_judged_and_planned_and_groups_of_a_folder_refused() {
    let folder = folder();
    let folder = folder.path();
    machine(folder);
    let alice = ["--user", "alice"];
    assert_eq!(finding(folder, "limits-rtprio", &alice)["status"], "bad");
    assert_eq!(finding(folder, "limits-rtprio", &["--user", "carol"])["status"], "doubtful");
    let ids = ["limits-rtprio", "limits-memlock"];
    let tune = |what: &str, more: &[&str]| {
        run(folder, &[&["tune", what, "--root", "root"], &ids[..], &alice, more].concat())
    };
    let plan = stdout(&tune("plan", &[]));
    for words in ["group realtime, member alice", "@realtime - rtprio 95", "next login of alice"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    assert!(plan.contains("tune apply --user alice"), "{plan}");
    let output = tune("apply", &["--yes"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("on the machine itself alone"), "{}", stderr(&output));
    assert!(!folder.join("root/etc/security/limits.d/99-rtproof.conf").exists());
    let group = "root:x:0:\nalice:x:1000:\nrealtime:x:95:alice\n";
    fs::write(folder.join("root/etc/group"), group).expect("a file");
    let output = tune("apply", &["--yes"]);
    expect_code(&output, 0);
    assert_eq!(finding(folder, "limits-rtprio", &alice)["status"], "good");
}

/// The machine's own tools, on a copy of /etc that only this namespace sees.
#[test]
fn the_machine_s_own_tools_make_a_group_and_a_member() {
    let may = rustix::process::geteuid().is_root()
        && rtproof_host::trusted::find_program("groupadd").is_ok();
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(may || !is_ci, "CI runs as root, with groupadd");
    if !may {
        eprintln!("left out: groups need root, and groupadd");
        return;
    }
    let folder = folder();
    let script = format!(
        "set -e\n\
         mkdir etc && cp -a /etc/. etc && mount --bind etc /etc\n\
         mount -t tmpfs none /var/lib\n\
         groupdel realtime 2>/dev/null || true\n\
         useradd --no-create-home rtproof-alice\n\
         before=$(cat /etc/group /etc/gshadow)\n\
         R={}\n\
         $R tune apply limits-rtprio,limits-memlock --user rtproof-alice --yes\n\
         grep -q '^realtime:.*:rtproof-alice$' /etc/group\n\
         $R tune status\n\
         $R check --only limits-rtprio --user rtproof-alice --json >found\n\
         grep -q 'grant it to rtproof-alice at login' found\n\
         $R tune undo\n\
         test \"$before\" = \"$(cat /etc/group /etc/gshadow)\"\n\
         test ! -e /etc/security/limits.d/99-rtproof.conf\n\
         echo all was as expected\n",
        binary()
    );
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .current_dir(folder.path())
        .output()
        .expect("unshare");
    let said = format!("{}{}", stdout(&output), stderr(&output));
    if said.contains("mounted read-only") {
        eprintln!("left out: /proc/sys is read-only here");
        return;
    }
    assert!(said.contains("all was as expected"), "{said}");
    assert!(said.contains("next login of rtproof-alice"), "{said}");
}
