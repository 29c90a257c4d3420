//! Every reading command on every captured machine, compared with what it said before; and the way
//! there: capture this machine, check the capture.
//!
//! To add a machine, put the file of `rtproof capture` into fixtures/machines; to accept what the
//! commands say, run with `SNAPSHOTS=overwrite`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use crate::support::small::Small;
use crate::support::{
    self, ACCEPTED, FAILED, USAGE, code, expect_code, files, folder, run, stderr, stdout,
};
use rtproof_host::{Capture, Facts, Root};
use serde_json::Value;
use snapbox::{Assert, Data};

/// Largest machine: a repository is cloned in a second. fixtures/machines/README.md says how to
/// make one small.
const BYTES_MAX: u64 = 220_000;

/// The captured machines, without the snapshots beside them.
fn machines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let mut all = files(&folder, ".txt");
    all.retain(|path| !path.to_string_lossy().ends_with(".check.txt"));
    assert!(!all.is_empty(), "{}: no machines", folder.display());
    all
}

fn check(machine: &Path, more: &[&str]) -> Output {
    let mut args = vec!["check", "--root", machine.to_str().expect("UTF-8")];
    args.extend(more);
    run(Path::new("/"), &args)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(output), stderr(output)))
}

/// Compares text with a snapshot beside the machine, or writes it.
fn assert_snapshot(machine: &Path, ending: &str, text: &str) {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
    let text = text.replace(machine.to_str().expect("UTF-8"), "[MACHINE]");
    let snapshot = Data::read_from(&machine.with_extension(ending), None).raw();
    let assert = Assert::new().action_env("SNAPSHOTS").normalize_paths(false);
    assert.eq(Data::text(text).raw(), snapshot);
}

#[test]
fn every_command_prints_what_it_printed_before() {
    let mut kept = 0;
    for machine in machines() {
        let mut text = String::new();
        for more in [&[][..], &["--all"]] {
            let output = check(&machine, more);
            assert!([0, 2, 3].contains(&code(&output)), "{}", stderr(&output));
            assert!(output.stderr.is_empty(), "{}", stderr(&output));
            let words = ["rtproof check"].iter().chain(more).copied().collect::<Vec<_>>().join(" ");
            text += &format!("$ {words}\n{}exit code {}\n\n", stdout(&output), code(&output));
        }
        assert_snapshot(&machine, "check.txt", text.trim_end());
        let output = check(&machine, &["--json"]);
        assert!(text.contains(&format!("exit code {}", code(&output))));
        let findings = json(&output)["findings"].clone();
        let all = findings.as_array().map_or(0, Vec::len);
        assert!(text.contains(&format!("Checks   {all}: ")), "{}", machine.display());
        // The same in a form of 150 kB: kept for a few, by their file.
        if machine.with_extension("check.json").exists() {
            assert_snapshot(&machine, "check.json", &stdout(&output));
            kept += 1;
        }
    }
    assert!(kept > 1, "{kept} machines have a JSON snapshot");
}

#[test]
fn every_machine_is_in_the_form_that_is_written() {
    for machine in machines() {
        let name = machine.display();
        let text = fs::read_to_string(&machine).expect("UTF-8");
        let capture = Capture::parse(text.as_bytes());
        let mut capture = capture.unwrap_or_else(|error| panic!("{name}:{error}"));
        assert_eq!(capture.to_text(), text, "{name}");
        assert_eq!(capture.redact(), 0, "{name}: made with --raw?");
        assert_eq!(capture.to_text(), text, "{name}");
        assert!(
            text.len() as u64 <= BYTES_MAX,
            "{name}: {} bytes; see README.md there",
            text.len()
        );
    }
}

#[test]
fn the_facts_of_every_machine_survive_a_record() {
    for machine in machines() {
        let capture = Capture::parse(&fs::read(&machine).expect("a machine")).expect("a capture");
        let facts = Facts::read(&Root::captured(capture));
        let json = serde_json::to_string(&facts).expect("JSON");
        let again: Result<Facts, _> = serde_json::from_str(&json);
        let again = again.unwrap_or_else(|error| panic!("{}: {error}", machine.display()));
        assert!(again == facts, "{}", machine.display());
    }
}

/// What names a machine, found another way than the redaction finds it.
fn leaks(text: &str) -> Vec<&str> {
    let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
    let is_mac = |word: &str, between: char| {
        let parts: Vec<&str> = word.split(between).collect();
        parts.len() >= 6 && parts.iter().all(|part| part.len() == 2 && is_hex(part))
    };
    let is_ip = |word: &str| {
        let parts: Vec<&str> = word.split('.').collect();
        parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok())
    };
    let is_uuid = |word: &str| {
        let lengths: Vec<usize> = word.split('-').map(str::len).collect();
        lengths == [8, 4, 4, 4, 12] && word.split('-').all(is_hex)
    };
    let is_id = |word: &str| word.len() >= 32 && is_hex(word);
    let is_home = |word: &str| word.contains("/home/") && !word.contains("/home/user-");
    let words = |stop: fn(char) -> bool| text.split(stop).filter(|word| !word.is_empty());
    let mut found: Vec<&str> = words(|c| !c.is_ascii_hexdigit() && c != ':')
        .filter(|word| is_mac(word.trim_matches(':'), ':'))
        .collect();
    found.extend(
        words(|c| !c.is_ascii_hexdigit() && c != '-')
            .filter(|word| is_mac(word, '-') || is_uuid(word.trim_matches('-')) || is_id(word)),
    );
    found.extend(words(|c| !c.is_ascii_digit() && c != '.').filter(|word| is_ip(word)));
    found.extend(words(char::is_whitespace).filter(|word| is_home(word)));
    found
}

#[test]
fn fixtures_hold_no_identifiers() {
    let all = "a=52:54:00:12:34:56 01-52-54-00-12-34-56 10.0.0.1/24 (0a1b2c3d-0001-0002-0003-0123456789ab) \
               0123456789abcdef0123456789abcdef /home/eve/x 12:34:56 ffffffff,ffffffff 6.1.0-50";
    assert_eq!(leaks(all).len(), 6, "{:?}", leaks(all));
    for machine in machines() {
        let text = fs::read_to_string(&machine).expect("UTF-8");
        assert_eq!(leaks(&text), [""; 0], "{}", machine.display());
        for identity in ["machine-id", "product_uuid", "boot_id", "serial-number"] {
            let heads =
                text.lines().filter(|line| line.starts_with("== ") && line.contains(identity));
            for head in heads {
                let is_empty = ["redacted", "absent", "denied", "there"];
                assert!(is_empty.iter().any(|kind| head.ends_with(kind)), "{head}");
            }
        }
        let host = text.split_once("== /proc/sys/kernel/hostname file\n|");
        assert!(
            host.is_none_or(|(_, name)| name.starts_with("host-") || name.starts_with("(none)"))
        );
    }
}

/// A finding without what changes from one run to the next: interrupts fire, tasks come and go, and
/// mount points get other names.
fn what_lasts(finding: &Value) -> String {
    let check = finding["check"].as_str().unwrap_or_default();
    let moves = [
        "fs-mounts",
        "irq-storm",
        "kthread-affinity",
        "local-ipis",
        "nohz-single-task",
        "tlb-shootdown",
        "user-tasks-on-iso",
    ];
    if moves.contains(&check) {
        return check.to_owned();
    }
    let mut text = String::new();
    for c in finding.to_string().chars() {
        match c.is_ascii_digit() {
            true if text.ends_with('N') => {}
            true => text.push('N'),
            false => text.push(c),
        }
    }
    text
}

#[test]
fn a_capture_of_this_machine_has_its_findings() {
    let folder = folder();
    let live = || json(&run(folder.path(), &["check", "--json"]));
    let before = live();
    for more in [&[][..], &["--raw"]] {
        let file = folder.path().join(format!("machine{}.txt", more.len()));
        let mut args = vec!["capture", file.to_str().expect("UTF-8")];
        args.extend(more);
        let output = run(folder.path(), &args);
        expect_code(&output, ACCEPTED);
        assert!(output.stdout.is_empty() && stderr(&output).contains(" entries, "));
        let captured = json(&check(&file, &["--json"]));
        let after = live();
        let list = |audit: &Value| audit["findings"].as_array().expect("findings").clone();
        assert_eq!(list(&captured).len(), list(&before).len());
        for (index, finding) in list(&captured).iter().enumerate() {
            let now = what_lasts(finding);
            let same =
                now == what_lasts(&list(&before)[index]) || now == what_lasts(&list(&after)[index]);
            assert!(same, "captured {finding:#}\nlive {:#}", list(&after)[index]);
        }
        let text = fs::read_to_string(&file).expect("the capture");
        let capture = Capture::parse(text.as_bytes()).expect("it can be read");
        assert_eq!(capture.to_text(), text);
        if more.is_empty() {
            assert_eq!(leaks(&text), [""; 0]);
        } else {
            let mode = fs::metadata(&file).expect("the capture").permissions().mode();
            assert_eq!(mode & 0o077, 0, "what only root may read is for the owner alone");
        }
    }
}

#[test]
fn captures_are_written_whole_and_never_over_another() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let capture = |args: &[&str]| {
        let args: Vec<&str> = ["capture"].iter().chain(args).copied().collect();
        run(folder.path(), &args)
    };
    expect_code(&capture(&["a.txt"]), ACCEPTED);
    let first = fs::read(path("a.txt")).expect("the capture");
    let again = capture(&["a.txt"]);
    expect_code(&again, FAILED);
    assert!(stderr(&again).contains("a.txt") && stderr(&again).contains("--force"));
    assert_eq!(fs::read(path("a.txt")).expect("still there"), first);
    // A capture of the capture is the capture.
    let output = capture(&["a.txt", "--force", "--json", "--root", "a.txt"]);
    expect_code(&output, ACCEPTED);
    assert_eq!(fs::read(path("a.txt")).expect("the capture"), first);
    let summary = json(&output);
    assert_eq!(summary["bytes"], first.len());
    assert_eq!(
        (&summary["from"], &summary["schema"]),
        (&"live".into(), &"rtproof/capture/1".into())
    );
    let output = capture(&["-", "--root", "a.txt"]);
    expect_code(&output, ACCEPTED);
    assert_eq!(output.stdout, first);
    expect_code(&capture(&["-", "--json"]), USAGE);
    for target in [".", "no/such/folder/file", "/proc/machine.txt"] {
        let output = capture(&[target]);
        expect_code(&output, FAILED);
        assert!(stderr(&output).contains(target), "{}", stderr(&output));
    }
    expect_code(&capture(&["/dev/null"]), ACCEPTED);
    let output = capture(&["b.txt", "--root", "missing"]);
    expect_code(&output, USAGE);
    assert!(stderr(&output).contains("missing"));
    assert_eq!(files(folder.path(), "").len(), 1, "nothing is left behind");
}

#[test]
fn files_that_are_no_capture_are_refused_with_the_line() {
    let folder = folder();
    for (text, says) in [
        (&b""[..], "uname -a"),
        (b"\x7fELF\0\xff", "rtproof capture"),
        (b"rtproof capture 2\n", "another version"),
        (b"rtproof capture 1\nfrom folder\n== /a file\n|b\n", ":5: cut off"),
        (b"rtproof capture 1\nfrom folder\n== /a file\nb\n== end\n", ":4: expected"),
    ] {
        fs::write(folder.path().join("odd.txt"), text).expect("a file");
        for args in [&["check", "--root", "odd.txt"][..], &["capture", "-", "--root", "odd.txt"]] {
            let output = run(folder.path(), args);
            expect_code(&output, USAGE);
            let error = stderr(&output);
            assert!(error.contains("odd.txt:") && error.contains(says), "{says}: {error}");
            assert!(output.stdout.is_empty());
        }
    }
}

#[test]
fn a_folder_is_captured_and_a_pipe_is_read() {
    let folder = folder();
    let machine = folder.path().join("machine");
    fs::create_dir_all(machine.join("proc/sys/kernel")).expect("a folder");
    fs::write(machine.join("proc/sys/kernel/sched_rt_runtime_us"), "950000\n").expect("a file");
    let output = run(folder.path(), &["capture", "-", "--root", "machine"]);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    assert!(
        text.contains("\nfrom folder\n") && text.contains("sched_rt_runtime_us file\n|950000\n")
    );
    let mut check = support::command(folder.path(), &["check", "--json", "--root", "/dev/stdin"]);
    let mut child = check.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("stdin");
    std::io::Write::write_all(&mut stdin, text.as_bytes()).expect("it reads");
    drop(stdin);
    let piped = child.wait_with_output().expect("it ends");
    let direct = run(folder.path(), &["check", "--json", "--root", "machine"]);
    assert_eq!((code(&piped), json(&piped)), (code(&direct), json(&direct)));
}

/// What a plan says, without the step that only a folder can take.
fn planned(root: &Path, options: &[&str]) -> String {
    let root = root.to_str().expect("UTF-8");
    let mut args = vec!["tune", "plan", "--root", root];
    args.extend(options);
    let output = run(Path::new("/"), &args);
    // The name of the host is redacted.
    let text = stdout(&output).replace(root, "[MACHINE]").replace("plc7", "host-1");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Next ")).collect();
    lines.join("\n")
}

#[test]
fn a_capture_of_a_folder_plans_what_the_folder_plans() {
    let threads = |tree: &Small| {
        for cpu in 0..4 {
            let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
            let core = cpu % 2;
            tree.write(
                &format!("{topology}/thread_siblings_list"),
                &format!("{core},{}\n", core + 2),
            );
            tree.write(&format!("{topology}/core_id"), &format!("{core}\n"));
        }
        tree.write("/sys/devices/system/cpu/smt/active", "1\n");
        tree.write("/sys/devices/system/cpu/smt/control", "on\n");
    };
    let old = |tree: &Small| {
        tree.write("/proc/sys/kernel/osrelease", "4.4.302\n");
        tree.write("/proc/sys/kernel/version", "#1 SMP PREEMPT\n");
    };
    let interrupts = |tree: &Small| {
        let table = "    CPU0 CPU1 CPU2 CPU3\n 30: 1 2 3 4 IO-APIC  30-fasteoi   eth0\n";
        tree.write("/proc/interrupts", table);
        tree.write("/proc/irq/30/smp_affinity_list", "0-3\n");
    };
    let changes: [&dyn Fn(&Small); 4] = [&|_| {}, &threads, &old, &interrupts];
    for (number, change) in changes.iter().enumerate() {
        let tree = Small::new();
        change(&tree);
        let folder = tree.file("/");
        let file = support::folder();
        let file = file.path().join("machine.txt");
        let args = ["capture", "--root", folder.to_str().expect("UTF-8")];
        let args = [&args[..], &[file.to_str().expect("UTF-8")]].concat();
        expect_code(&run(Path::new("/"), &args), ACCEPTED);
        for options in [&[][..], &["--cpus", "3"], &["--cpus", "2-3", "--budget", "100us"]] {
            let of_folder = planned(folder.as_path(), options);
            assert!(of_folder.starts_with("Result "), "{of_folder}");
            assert_eq!(of_folder, planned(&file, options), "{number} {options:?}");
        }
    }
}
