//! Machines without /sys or /proc: what is missing is named, and what can be measured is.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::support::{
    self, FAILED, NOT_PROVEN, REFUSED, alone, assert_accounted, binary, code, folder, report,
    stderr, stdout,
};

/// Runs the binary in a mount namespace of its own, where an empty folder covers each of these.
/// `None`: this user may not.
fn without(folders: &[&str], dir: &Path, args: &str) -> Option<Output> {
    let covers: String =
        folders.iter().map(|folder| format!("mount -t tmpfs none {folder} && ")).collect();
    let script = format!("{covers}echo covered >&2 && exec {} {args}", binary());
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .output()
        .expect("unshare");
    if stderr(&output).contains("covered") {
        return Some(output);
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs root: {}", stderr(&output));
    eprintln!("not run: no mount namespace ({})", stderr(&output).trim());
    None
}

#[test]
fn every_finding_of_an_audit_shows_its_evidence_where_asked() {
    let folder = folder();
    let few = support::run(folder.path(), &["check", "--cpus", "0"]);
    let all = support::run(folder.path(), &["check", "--cpus", "0", "--all", "-v"]);
    assert!(!stdout(&few).contains("saw: "), "{}", stdout(&few));
    let text = stdout(&all);
    assert!(text.matches("saw: ").count() >= 15, "{text}");
    assert!(text.contains("saw: /proc/sys/kernel/sched_rt_runtime_us: "), "{text}");
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn without_sys_it_measures_what_the_counters_list() {
        let _alone = alone();
        let folder = folder();
        let args = "prove --for 1s --load idle --budget 1h -o run";
        let Some(output) = without(&["/sys"], folder.path(), args) else { return };
        let text = stdout(&output);
        assert!([NOT_PROVEN, REFUSED].contains(&code(&output)), "{text}{}", stderr(&output));
        let (json, _) = report(&folder.path().join("run.rtproof"));
        let findings = json["findings"].to_string();
        assert!(findings.contains("/sys/devices/system/cpu: not there"), "{text}");
        assert!(
            !findings.contains("not online") && !findings.contains("sees no siblings"),
            "{text}"
        );
        assert_accounted(&json);
    }

    #[test]
    fn without_sys_and_proc_it_measures_and_names_what_is_missing() {
        let _alone = alone();
        let folder = folder();
        let args = "prove --for 1s --load idle --budget 1h -o run";
        let Some(output) = without(&["/sys", "/proc"], folder.path(), args) else { return };
        let text = stdout(&output);
        assert!([NOT_PROVEN, REFUSED].contains(&code(&output)), "{text}{}", stderr(&output));
        assert!(!text.contains("Linux ?"), "uname(2) tells: {text}");
        let (json, _) = report(&folder.path().join("run.rtproof"));
        let findings = json["findings"].to_string();
        assert!(findings.contains("/proc/*/task/*/stat: not there"), "{text}");
        assert!(!findings.contains("hidepid") && !findings.contains("not online"), "{text}");
        assert_accounted(&json);
    }

    #[test]
    fn without_proc_a_load_names_what_it_needs() {
        let _alone = alone();
        let folder = folder();
        let args = "prove --for 1s --load cpu --budget 1h -o run";
        let Some(output) = without(&["/proc"], folder.path(), args) else { return };
        let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_ne!(code(&output), FAILED, "{text}{}", stderr(&output));
        assert!(text.contains("mount -t proc proc /proc"), "{text}");
    }
}
