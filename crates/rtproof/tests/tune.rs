//! `tune` on a machine in a folder: plans, changes and their return to the byte, refusals.

use std::{fs, os::unix::process::CommandExt, path::Path, process::Stdio};

use crate::support::{
    self, ACCEPTED, FAILED, NOT_PROVEN, REFUSED, USAGE, command, expect_code, folder,
    small::{GOVERNORS, Small},
    stderr, stdout,
};
use serde_json::Value;

/// Checks of which the tree has something to change.
const IDS: &str = "cpufreq-governor,ksm,stat-interval,timer-migration,thp";

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(output), stderr(output)))
}

#[test]
fn a_plan_is_a_diff_and_changes_nothing() {
    let tree = Small::new();
    let before = tree.all();
    let output = tree.tune(&["plan", "--cpus", "1,3"]);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    for part in [
        "/sys/devices/system/cpu/cpu{1,3}/cpufreq/scaling_governor (2 times)\n    \
         - schedutil\n    + performance\n",
        "/sys/kernel/mm/ksm/run\n    - 1\n    + 0\n",
        "(cpufreq-governor; costs tens of µs)",
        "undo writes the old values back",
        "Next     rtproof tune apply --cpus 1,3 --root /",
        " --confirm 60s\n",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("stat_interval"), "doubtful findings are not planned:\n{text}");
    assert_eq!(tree.all(), before);

    let plan = json(&tree.tune(&["plan", IDS, "--cpus", "2-3", "--json"]));
    assert_eq!(plan["schema"], "rtproof/plan/1");
    let steps = plan["steps"].as_array().unwrap();
    let governor = |step: &&Value| {
        let path = step["change"]["path"].as_str().unwrap_or_default();
        path.ends_with("scaling_governor")
    };
    let governors: Vec<&Value> = steps.iter().filter(governor).collect();
    assert_eq!(governors.len(), 2, "each CPU is a step of its own: {plan:#}");
    assert_eq!(governors[0]["before"]["bytes"], "powersave\n");
    assert_eq!(governors[0]["checks"][0], "cpufreq-governor");
}

#[test]
fn applied_shown_undone_to_the_byte() {
    let tree = Small::new();
    let before = tree.all();
    let output = tree.tune(&["apply", IDS, "--cpus", "2-3", "--yes"]);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    assert!(text.contains("cpu2/cpufreq/scaling_governor: powersave → performance"), "{text}");
    assert!(text.contains("journal /var/lib/rtproof/tune/0001.journal"), "{text}");
    assert_eq!(tree.governor(2), "performance");
    assert_eq!(tree.governor(0), GOVERNORS[0], "not a real-time CPU");
    assert_ne!(tree.all(), before);

    let status = tree.tune(&["status"]);
    expect_code(&status, ACCEPTED);
    let text = stdout(&status);
    assert!(text.contains("Journal 1"), "{text}");
    assert!(!text.contains("CHANGED"), "{text}");

    // A folder shows what was written, and the kernel all the choices.
    tree.write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    let again = tree.tune(&["apply", IDS, "--cpus", "2-3", "--yes"]);
    expect_code(&again, ACCEPTED);
    assert!(stdout(&again).contains("nothing to change"), "{}", stdout(&again));

    let undone = tree.tune(&["undo", "--json"]);
    expect_code(&undone, ACCEPTED);
    let undone = json(&undone);
    let changes = undone["journals"][0]["changes"].as_array().unwrap();
    assert!(changes.len() >= 5, "{undone:#}");
    assert!(changes.iter().all(|change| change["outcome"] == "restored"), "{undone:#}");
    assert_eq!(tree.all(), before);

    let twice = tree.tune(&["undo"]);
    expect_code(&twice, ACCEPTED);
    assert_eq!(stdout(&twice), "Result   nothing to undo\n");
    let status = tree.tune(&["status"]);
    assert!(stdout(&status).contains("nothing of rtproof is applied"), "{}", stdout(&status));
}

#[test]
fn a_named_check_that_is_unknown_is_an_error() {
    let tree = Small::new();
    tree.write("/sys/kernel/mm/transparent_hugepage/enabled", "never\n");
    let before = tree.all();
    // Also together with others that have changes.
    for ids in ["thp", "thp,ksm"] {
        let output = tree.tune(&["apply", ids, "--cpus", "2-3", "--yes"]);
        expect_code(&output, FAILED);
        let why = stderr(&output);
        assert!(why.contains("thp: unknown") && why.contains("leave thp out"), "{why}");
        assert_eq!(tree.all(), before);
    }
    // Of a section, or of all, what is unknown is only left out.
    expect_code(&tree.tune(&["apply", "memory", "--cpus", "2-3", "--yes"]), ACCEPTED);
    assert_eq!(tree.read("/sys/kernel/mm/ksm/run"), "0\n");
}

#[test]
fn what_somebody_else_changed_is_left_alone() {
    let tree = Small::new();
    expect_code(&tree.tune(&["apply", "cpufreq-governor", "--cpus", "2-3", "--yes"]), ACCEPTED);
    tree.write("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "ondemand\n");
    let status = tree.tune(&["status"]);
    expect_code(&status, REFUSED);
    assert!(stdout(&status).contains("CHANGED"), "{}", stdout(&status));
    let status = json(&tree.tune(&["status", "--json"]));
    let changes = &status["journals"][0]["changes"];
    assert_eq!(
        (&changes[0]["standing"], &changes[1]["now"]),
        (&"as-applied".into(), &"ondemand".into())
    );
    expect_code(&tree.tune(&["verify"]), REFUSED);
    let undone = tree.tune(&["undo"]);
    expect_code(&undone, REFUSED);
    assert!(stdout(&undone).contains("LEFT ALONE"), "{}", stdout(&undone));
    assert_eq!((tree.governor(2).as_str(), tree.governor(3).as_str()), ("powersave", "ondemand"));
}

#[test]
fn status_names_suspects_of_a_changed_value() {
    let tree = Small::new();
    expect_code(&tree.tune(&["apply", "stat-interval", "--yes"]), ACCEPTED);
    tree.write("/etc/sysctl.d/50-other.conf", "vm.stat_interval = 5\n");
    tree.write("/proc/sys/vm/stat_interval", "5\n");
    let status = json(&tree.tune(&["status", "--json"]));
    let by = status["journals"][0]["changes"][0]["by"].to_string();
    assert!(by.contains("/etc/sysctl.d/50-other.conf"), "{status:#}");
    let text = stdout(&tree.tune(&["status"]));
    assert!(text.contains("perhaps by"), "{text}");
}

#[test]
fn several_journals_are_undone_newest_first() {
    let tree = Small::new();
    let before = tree.all();
    expect_code(&tree.tune(&["apply", "ksm", "--yes"]), ACCEPTED);
    expect_code(&tree.tune(&["apply", "cpufreq-governor", "--cpus", "2-3", "--yes"]), ACCEPTED);
    let newest = tree.tune(&["undo"]);
    expect_code(&newest, ACCEPTED);
    assert!(stdout(&newest).contains("Still open: journal 1"), "{}", stdout(&newest));
    assert_eq!(tree.read("/sys/kernel/mm/ksm/run"), "0\n");
    expect_code(&tree.tune(&["apply", "cpufreq-governor", "--cpus", "2-3", "--yes"]), ACCEPTED);
    expect_code(&tree.tune(&["undo", "--all"]), ACCEPTED);
    assert_eq!(tree.all(), before);
    expect_code(&tree.tune(&["undo", "--journal", "7"]), FAILED);
}

#[test]
fn an_older_journal_waits_for_a_newer_one_of_the_same() {
    let tree = Small::new();
    let before = tree.all();
    let elsewhere = folder();
    let file = elsewhere.path().join("own.toml");
    let value = "kind = \"value\"\npath = \"/sys/kernel/mm/ksm/run\"\nvalue = \"2\"\n";
    fs::write(&file, format!("version = 1\n[[change]]\n{value}")).unwrap();
    let file = file.to_str().unwrap();
    expect_code(&tree.tune(&["apply", "--from", file, "--yes"]), ACCEPTED);
    tree.write("/sys/kernel/mm/ksm/run", "1\n");
    expect_code(&tree.tune(&["apply", "ksm", "--yes"]), ACCEPTED);
    for older in [&["undo", "--journal", "1"][..], &["undo", "--from", file]] {
        let output = tree.tune(older);
        expect_code(&output, FAILED);
        let why = stderr(&output);
        assert!(why.contains("journal 2 has changed /sys/kernel/mm/ksm/run after"), "{why}");
        assert_eq!(tree.read("/sys/kernel/mm/ksm/run"), "0\n");
    }
    expect_code(&tree.tune(&["undo", "--all"]), ACCEPTED);
    assert_eq!(tree.all(), before);
}

#[test]
fn a_damaged_journal_is_in_nobodys_way() {
    let tree = Small::new();
    expect_code(&tree.tune(&["apply", "ksm", "--yes"]), ACCEPTED);
    let damaged = tree.read("/var/lib/rtproof/tune/0001.journal").replacen("ksm", "xsm", 1);
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    tree.write("/var/lib/rtproof/tune/0001.journal", &damaged);
    let before = tree.all();
    let args = ["apply", "stat-interval", "--yes", "--confirm", "600s"];
    expect_code(&tree.tune(&args), ACCEPTED);
    expect_code(&tree.tune(&["confirm"]), ACCEPTED);
    // It is reported, and the others go on.
    let status = tree.tune(&["status"]);
    expect_code(&status, NOT_PROVEN);
    let said = stdout(&status);
    assert!(said.contains("0001.journal") && said.contains("Journal 2"), "{said}");
    let output = tree.tune(&["undo", "--all"]);
    expect_code(&output, REFUSED);
    assert!(stdout(&output).contains("0001.journal"), "{}", stdout(&output));
    assert_eq!(tree.all(), before);
}

#[test]
fn a_copy_of_the_journal_will_do_and_a_damaged_one_not() {
    let tree = Small::new();
    let before = tree.all();
    expect_code(&tree.tune(&["apply", "ksm", "--yes"]), ACCEPTED);
    let applied = tree.all();
    let elsewhere = folder();
    let copy = elsewhere.path().join("copy.journal");
    fs::copy(tree.journal(), &copy).unwrap();

    let damaged = elsewhere.path().join("damaged.journal");
    fs::write(&damaged, fs::read_to_string(&copy).unwrap().replacen("ksm", "xsm", 1)).unwrap();
    let foreign = elsewhere.path().join("foreign.journal");
    fs::write(&foreign, "not a journal\n").unwrap();
    for wrong in [&damaged, &foreign] {
        let output = tree.tune(&["undo", "--journal", wrong.to_str().unwrap()]);
        expect_code(&output, REFUSED);
        let said = stdout(&output);
        assert!(said.contains("nothing of it was") && said.contains("damaged"), "{said}");
    }
    tree.write("/etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
    let output = tree.tune(&["undo", "--journal", copy.to_str().unwrap()]);
    expect_code(&output, REFUSED);
    assert!(stdout(&output).contains("another machine"), "{}", stdout(&output));
    tree.write("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    assert_eq!(tree.all(), applied);

    fs::remove_file(tree.journal()).unwrap();
    expect_code(&tree.tune(&["undo", "--journal", copy.to_str().unwrap()]), ACCEPTED);
    assert_eq!(tree.all(), before);
}

#[test]
fn a_stored_plan_is_applied_to_the_letter_or_not_at_all() {
    let tree = Small::new();
    let before = tree.all();
    let elsewhere = folder();
    let file = elsewhere.path().join("plan.json");
    let plan = tree.tune(&["plan", "cpufreq-governor,ksm", "--cpus", "2-3", "--json"]);
    fs::write(&file, &plan.stdout).unwrap();
    let file = file.to_str().unwrap();

    tree.write("/sys/kernel/mm/ksm/run", "2\n");
    let stale = tree.tune(&["apply", "--plan", file, "--yes"]);
    expect_code(&stale, FAILED);
    let why = stderr(&stale);
    assert!(why.contains("/sys/kernel/mm/ksm/run: holds 2, and held 1"), "{why}");
    tree.write("/sys/kernel/mm/ksm/run", "1\n");
    assert_eq!(tree.all(), before, "nothing was changed");

    // What is as the plan wants it by now is no reason to refuse.
    tree.write("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "performance\n");
    let applied = tree.tune(&["apply", "--plan", file, "--yes", "--json"]);
    expect_code(&applied, ACCEPTED);
    assert_eq!(json(&applied)["changes"].as_array().unwrap().len(), 2);
    assert_eq!(tree.governor(2), "performance");

    let none = elsewhere.path().join("none.json");
    fs::write(&none, "{\"schema\": \"rtproof/check/2\"}").unwrap();
    expect_code(&tree.tune(&["apply", "--plan", none.to_str().unwrap(), "--yes"]), USAGE);
    expect_code(&tree.tune(&["apply", "--plan", file, "thp", "--yes"]), USAGE);
}

#[test]
fn a_stored_plan_may_have_files_that_come_with_their_group() {
    let tree = Small::new();
    let top = "/sys/fs/cgroup";
    tree.write(&format!("{top}/cgroup.controllers"), "cpuset cpu\n");
    tree.write(&format!("{top}/cgroup.subtree_control"), "cpuset cpu\n");
    let elsewhere = folder();
    let profile = elsewhere.path().join("own.toml");
    fs::write(&profile, "kind = \"periodic\"\n[choices]\nisolation = \"cpuset\"\n").unwrap();
    let wish = ["cpuset-partition", "--profile", profile.to_str().unwrap(), "--cpus", "2-3"];
    let shown = stdout(&tree.tune(&[&["plan"][..], &wish].concat()));
    assert!(shown.contains("not there yet: a change before this one makes it"), "{shown}");
    let plan = tree.tune(&[&["plan", "--json"][..], &wish].concat());
    assert_eq!(json(&plan)["steps"].as_array().unwrap().len(), 3, "{}", stdout(&plan));
    let file = elsewhere.path().join("plan.json");
    fs::write(&file, &plan.stdout).unwrap();
    let file = file.to_str().unwrap();
    // A folder has no kernel that makes the files of a group.
    let before = tree.all();
    let output = tree.tune(&["apply", "--plan", file, "--yes"]);
    expect_code(&output, FAILED);
    let why = stderr(&output);
    assert!(why.contains("rtproof/cpuset.cpus: not there"), "{why}");
    assert!(why.contains("everything was taken back"), "{why}");
    assert_eq!(tree.all(), before);
    // Another group is not what the plan was made for.
    tree.write(&format!("{top}/rtproof/cpuset.cpus"), "1\n");
    tree.write(&format!("{top}/rtproof/cpuset.cpus.partition"), "member\n");
    let before = tree.all();
    let output = tree.tune(&["apply", "--plan", file, "--yes"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("rtproof/cpuset.cpus: the plan was made"), "{output:?}");
    assert_eq!(tree.all(), before);
    // A plan of its own takes it as it is, and gives it back.
    let output = tree.tune(&[&["apply", "--yes"][..], &wish].concat());
    expect_code(&output, ACCEPTED);
    assert_eq!(tree.read(&format!("{top}/rtproof/cpuset.cpus.partition")), "isolated\n");
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    assert_eq!(tree.all(), before);
}

/// systemd writes cgroup.subtree_control anew when a unit starts; the kernel then takes the
/// controller's files away.
#[test]
fn a_partition_that_lost_its_controller_is_missed() {
    let tree = Small::new();
    let top = "/sys/fs/cgroup";
    let group =
        ["cpuset.cpus", "cpuset.cpus.partition"].map(|file| format!("{top}/rtproof/{file}"));
    tree.write(&format!("{top}/cgroup.controllers"), "cpuset cpu\n");
    tree.write(&format!("{top}/cgroup.subtree_control"), "cpuset cpu\n");
    tree.write(&group[0], "1\n");
    tree.write(&group[1], "member\n");
    let elsewhere = folder();
    let profile = elsewhere.path().join("own.toml");
    fs::write(&profile, "kind = \"periodic\"\n[choices]\nisolation = \"cpuset\"\n").unwrap();
    let profile = profile.to_str().unwrap();
    let apply = ["apply", "--yes", "cpuset-partition", "--profile", profile, "--cpus", "2-3"];
    expect_code(&tree.tune(&apply), ACCEPTED);
    tree.write(&format!("{top}/cgroup.subtree_control"), "cpu\n");
    for file in &group {
        fs::remove_file(tree.path().join(&file[1..])).unwrap();
    }
    let status = stdout(&tree.tune(&["status"]));
    let undone = tree.tune(&["undo"]);
    expect_code(&undone, ACCEPTED);
    for file in &group {
        let is_gone = |line: &str| line.contains("gone") && line.ends_with(file);
        assert!(status.lines().any(is_gone), "{status}");
        let expected = format!("gone by itself    {file}");
        assert!(stdout(&undone).contains(&expected), "{}", stdout(&undone));
    }
}

#[test]
fn changes_of_a_file_are_printed_as_json_too() {
    let tree = Small::new();
    let before = tree.all();
    let elsewhere = folder();
    let file = elsewhere.path().join("own.toml");
    let change =
        |path: &str| format!("[[change]]\nkind = \"value\"\npath = \"{path}\"\nvalue = \"9\"\n");
    let changes = change("/proc/sys/vm/stat_interval") + &change("/proc/sys/vm/none");
    fs::write(&file, format!("version = 1\n{changes}")).unwrap();
    let file = file.to_str().unwrap();
    let output = tree.tune(&["apply", "--from", file, "--yes", "--json"]);
    expect_code(&output, NOT_PROVEN);
    let applied = json(&output);
    assert_eq!(applied["schema"], "rtproof/tune-repeated/1");
    assert_eq!(applied["changes"][0]["outcome"], "applied");
    assert_eq!(applied["changes"][0]["old"], "7");
    assert_eq!(applied["absent"][0]["target"], "/proc/sys/vm/none");
    let output = tree.tune(&["undo", "--from", file, "--json"]);
    expect_code(&output, ACCEPTED);
    let undone = json(&output);
    assert_eq!(undone["schema"], "rtproof/tune-undone/1");
    assert_eq!(undone["journals"][0]["changes"][0]["outcome"], "restored");
    assert_eq!(undone["still_open"].as_array().unwrap().len(), 0);
    assert_eq!(tree.all(), before);
}

#[test]
fn a_plan_that_contradicts_itself_is_refused() {
    let tree = Small::new();
    let before = tree.all();
    let elsewhere = folder();
    let file = elsewhere.path().join("plan.json");
    let mut plan = json(&tree.tune(&["plan", "ksm", "--json"]));
    plan["conflicts"] = serde_json::json!([
        {"target": "/sys/kernel/mm/ksm/run", "wishes": [["ksm", "0"], ["thp", "1"]]}
    ]);
    fs::write(&file, plan.to_string()).unwrap();
    let output = tree.tune(&["apply", "--plan", file.to_str().unwrap(), "--yes"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("ksm, thp contradict each other"), "{}", stderr(&output));
    assert_eq!(tree.all(), before);
}

#[test]
fn one_change_that_fails_takes_all_back() {
    let tree = Small::new();
    let elsewhere = folder();
    let file = elsewhere.path().join("plan.json");
    let mut plan = json(&tree.tune(&["plan", "cpufreq-governor,ksm", "--cpus", "2-3", "--json"]));
    let mut gone = plan["steps"][0].clone();
    gone["change"]["path"] = "/sys/devices/system/cpu/cpu9/cpufreq/scaling_governor".into();
    plan["steps"].as_array_mut().unwrap().push(gone);
    fs::write(&file, plan.to_string()).unwrap();
    let before = tree.all();
    let output = tree.tune(&["apply", "--plan", file.to_str().unwrap(), "--yes"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("cpu9"), "{}", stderr(&output));
    assert_eq!(tree.all(), before);
    assert_eq!(stdout(&tree.tune(&["undo"])), "Result   nothing to undo\n");
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    let tree = Small::new();
    let before = tree.all();
    let output = tree.tune(&["apply", "ksm"]);
    expect_code(&output, USAGE);
    assert!(stderr(&output).contains("give --yes"), "{}", stderr(&output));
    assert_eq!(tree.all(), before);
}

#[test]
fn unknown_names_are_reported() {
    let tree = Small::new();
    for command in [&["plan"][..], &["apply", "--yes"], &["trial", "--yes", "--only"]] {
        let output = tree.tune(&[command, &["cpufreq-govenor"]].concat());
        expect_code(&output, USAGE);
        assert!(stderr(&output).contains("cpufreq-governor"), "{}", stderr(&output));
    }
    for wrong in [
        &["apply", "--confirm", "10"][..],
        &["apply", "--confirm", "2h"],
        &["plan", "--cpus", "9"],
        &["plan", "--skip", "ksm"],
        &["verify", "=2"],
        &["trial", "--yes", "=2"],
        &["undo", "--all", "--journal", "1"],
    ] {
        expect_code(&tree.tune(wrong), USAGE);
    }
}

#[test]
fn of_a_capture_the_parameters_are_looked_for_that_are_named() {
    let folder = folder();
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let capture = top.join("qemu-rt-6.1-smt-numa-isolated.txt").display().to_string();
    let of = |words: &[&str]| {
        let args = [&["tune", "verify", "--root", &capture], words].concat();
        command(folder.path(), &args).output().expect("it runs")
    };
    let all = of(&[]);
    expect_code(&all, USAGE);
    assert!(stderr(&all).contains("name the parameters"), "{}", stderr(&all));
    expect_code(&of(&["nohz_full=2-3"]), ACCEPTED);
    let other = of(&["isolcpus=2-3"]);
    expect_code(&other, REFUSED);
    // It is there in another form: that it has no effect would be false.
    let text = stdout(&other);
    assert!(text.contains("isolcpus=2-3 is not on the command line"), "{text}");
    assert!(text.contains("on the command line: isolcpus=managed_irq,domain,2-3"), "{text}");
}

#[test]
fn without_rights_nothing_is_changed() {
    let elsewhere = folder();
    for args in [
        &["tune", "apply", "--yes"][..],
        &["tune", "undo"],
        &["tune", "confirm"],
        &["tune", "trial", "--yes", "quiet"],
    ] {
        let mut refused = command(elsewhere.path(), args);
        if rustix::process::geteuid().is_root() {
            refused.uid(65534).gid(65534);
        }
        let output = refused.output().unwrap();
        expect_code(&output, FAILED);
        assert!(stderr(&output).contains("only root can change this machine"), "{args:?}");
    }
    // What only looks needs no rights.
    let mut plan = command(elsewhere.path(), &["tune", "plan"]);
    if rustix::process::geteuid().is_root() {
        plan.uid(65534).gid(65534);
    }
    expect_code(&plan.stderr(Stdio::piped()).output().unwrap(), ACCEPTED);
}

#[test]
fn a_capture_is_planned_for_and_not_changed() {
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/qemu-rt-6.1.txt");
    let elsewhere = folder();
    let run =
        |args: &[&str]| support::run(elsewhere.path(), &[args, &["--root", machine]].concat());
    expect_code(&run(&["tune", "plan", "--json"]), ACCEPTED);
    for args in [&["tune", "apply", "--yes"][..], &["tune", "undo"], &["tune", "confirm"]] {
        let output = run(args);
        expect_code(&output, FAILED);
        assert!(stderr(&output).contains("capture"), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn an_export_is_a_folder_of_files() {
    let tree = Small::new();
    let out = tree.path().join("out");
    let out = out.to_str().unwrap();
    let args =
        ["export", out, "cpufreq-governor", "--cpus", "2-3", "--format", "systemd", "--json"];
    let output = tree.tune(&args);
    let written = json(&output);
    assert_eq!(written["schema"], "rtproof/tune-exported/1");
    for file in written["files"].as_array().unwrap() {
        assert!(fs::metadata(format!("{out}/{}", file.as_str().unwrap())).is_ok(), "{file}");
    }
    let again = tree.tune(&args);
    expect_code(&again, FAILED);
    assert!(stderr(&again).contains("--force"), "{}", stderr(&again));
    expect_code(&tree.tune(&["export", out, "--format", "puppet"]), USAGE);
}

#[test]
fn every_command_has_help_with_an_example() {
    let elsewhere = folder();
    let commands =
        ["plan", "apply", "undo", "status", "trial", "verify", "confirm", "export", "hold"];
    for command in commands {
        let output = support::run(elsewhere.path(), &["tune", command, "--help"]);
        expect_code(&output, ACCEPTED);
        let example = format!("rtproof tune {command}");
        assert!(stdout(&output).contains(&format!("Examples:\n  {example}")), "{command}");
    }
}
