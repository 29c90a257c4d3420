//! `check --pid` and `--unit`: live processes that only sleep.

use std::process::{Child, Command, Stdio};

use crate::support::{self, USAGE, code, expect_code, folder, run, stderr, stdout};
use serde_json::Value;

/// A child that sleeps and is ended with the test.
struct Sleeper(Child);

impl Sleeper {
    fn start(command: &[&str]) -> Self {
        let mut child = Command::new(command[0]);
        child.args(&command[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(child.spawn().expect("a child"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// The `application` object of `check --pid`.
    fn check(&self) -> Value {
        let output = run(folder().path(), &["check", "--json", "--pid", &self.pid()]);
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
        json["application"].clone()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status<'a>(application: &'a Value, check: &str) -> &'a Value {
    let findings = application["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["check"] == check);
    &found.unwrap_or_else(|| panic!("no {check} in {application:#}"))["status"]
}

#[test]
fn an_ordinary_process_is_not_real_time() {
    let sleeper = Sleeper::start(&["sleep", "60"]);
    support::wait_for("sleep", 5, || sleeper.check()["name"] == "sleep");
    let application = sleeper.check();
    assert_eq!(application["pid"], sleeper.0.id());
    assert_eq!((&application["threads"], &application["processes"]), (&1.into(), &1.into()));
    assert_eq!(status(&application, "app-policy"), "bad");
    assert_eq!(status(&application, "app-memory-locked"), "bad");
    assert_eq!(status(&application, "app-outranked"), "not_applicable");
    assert_eq!(status(&application, "app-debugger"), "good");
    let output = run(folder().path(), &["check", "--pid", &sleeper.pid()]);
    assert_eq!(code(&output), support::REFUSED);
    let head = format!("Application sleep (pid {}", sleeper.pid());
    assert!(stdout(&output).contains(&head), "{}", stdout(&output));
}

#[test]
fn a_real_time_process_is() {
    let sleeper = Sleeper::start(&["chrt", "--fifo", "10", "sleep", "60"]);
    support::wait_for("chrt", 5, || {
        // chrt becomes sleep, or ends where real-time scheduling is refused.
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", sleeper.pid()));
        stat.is_ok_and(|stat| stat.contains("(sleep)") || stat.contains(") Z "))
    });
    let output = run(folder().path(), &["check", "--json", "--pid", &sleeper.pid()]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let application = &json["application"];
    if application["name"] == "chrt" {
        assert!(std::env::var_os("CI").is_none(), "CI needs real-time scheduling");
        eprintln!("not run: SCHED_FIFO is refused here");
        return;
    }
    assert_eq!(status(application, "app-policy"), "good", "{application:#}");
    assert_eq!(status(application, "app-memory-locked"), "bad");
    // What the machine's checks call strangers, it is not one of.
    let rogue = json["findings"].as_array().expect("findings").iter();
    let mut rogue = rogue.filter(|finding| finding["check"] == "rogue-rt-tasks");
    let summary = rogue.next().expect("rogue-rt-tasks")["summary"].to_string();
    assert!(!summary.contains(&format!("pid {}", sleeper.pid())), "{summary}");
    assert!(rogue.next().is_none());
}

#[test]
fn a_unit_of_a_captured_machine() {
    let folder = folder();
    let mut stat = vec!["0"; 50];
    stat[0] = "S";
    stat[17] = "1";
    let stat = format!("100 (arm) {}\n", stat.join(" "));
    let thread = "Cpus_allowed_list:\t0\nvoluntary_ctxt_switches:\t1\n\
                  nonvoluntary_ctxt_switches:\t0\n";
    let unit = "[Service]\nExecStart=/bin/arm\nRestrictRealtime=yes\n";
    for (path, text) in [
        ("proc/100/stat", stat.as_str()),
        ("proc/100/status", "Name:\tarm\nTgid:\t100\n"),
        ("proc/100/task/100/stat", &stat),
        ("proc/100/task/100/status", thread),
        ("proc/100/cgroup", "0::/system.slice/arm.service\n"),
        ("usr/lib/systemd/system/arm.service", unit),
    ] {
        let path = folder.path().join("machine").join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let output = run(folder.path(), &["check", "--root", "machine", "--unit", "arm", "--json"]);
    expect_code(&output, support::REFUSED);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let application = &json["application"];
    assert_eq!(application["unit"], "arm.service");
    assert_eq!(status(application, "app-unit"), "bad");
    assert_eq!(status(application, "app-policy"), "bad");
    for unread in ["app-memory-locked", "app-limits-rtprio", "app-cgroup-quota", "app-oom"] {
        assert_eq!(status(application, unread), "unknown", "{unread}");
    }
    let output = run(folder.path(), &["check", "--root", "machine", "--unit", "arm"]);
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Application arm (pid 100, arm.service, 1 thread)"), "{text}");
    assert!(text.contains("put \"[Service] RestrictRealtime=no\" into"), "{text}");
}

#[test]
fn explain_of_no_process_names_no_option_that_it_lacks() {
    let folder = folder();
    let output = run(folder.path(), &["explain", "--pid", "4194305", "--for", "1s"]);
    expect_code(&output, USAGE);
    let text = stderr(&output);
    assert!(text.contains("`ps -e`") && !text.contains("--unit"), "{text}");
}

#[test]
fn what_is_not_there_is_a_usage_error_with_the_next_step() {
    let folder = folder();
    for (args, part) in [
        (["check", "--pid", "4194305"], "list processes with `ps -e`"),
        (["check", "--unit", "no-such-unit"], "no unit no-such-unit.service"),
        (["check", "--pid", "0"], "0 is not in 1.."),
        (["check", "--pid", "2"], "thread of the kernel"),
    ] {
        let output = run(folder.path(), &args);
        if args[2] == "2" && stderr(&output).contains("no process 2") {
            // A PID namespace shows no thread of the kernel.
            continue;
        }
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains(part), "{args:?}: {}", stderr(&output));
    }
    let both = run(folder.path(), &["check", "--pid", "1", "--unit", "x"]);
    expect_code(&both, USAGE);
}
