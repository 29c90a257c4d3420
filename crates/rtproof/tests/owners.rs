//! What others own or can write is not obeyed: journals, plans, matrices, folders. A plan writes
//! where tuning writes, whoever made it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Output,
};

use crate::support::{
    ACCEPTED, FAILED, USAGE, code, expect_code, folder, run, small::Small, stderr,
};

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refused(output: &Output) -> String {
    assert!([FAILED, USAGE].contains(&code(output)), "{output:?}");
    let message = stderr(output);
    assert!(message.contains("can be written by others"), "{message}");
    message
}

#[test]
fn a_journal_that_anybody_could_write_is_not_obeyed() {
    let tree = Small::new();
    expect_code(&tree.tune(&["apply", "ksm", "--yes"]), ACCEPTED);
    let applied = tree.all();
    let elsewhere = folder();
    let copy = elsewhere.path().join("copy.journal");
    fs::copy(tree.journal(), &copy).unwrap();
    mode(&copy, 0o666);
    let named = ["undo", "--journal", copy.to_str().unwrap()];
    let message = refused(&tree.tune(&named));
    assert!(message.contains("chmod go-w"), "{message}");
    // The same file in a folder in which anybody could replace it, and by a link.
    mode(&copy, 0o600);
    mode(elsewhere.path(), 0o777);
    assert!(refused(&tree.tune(&named)).contains("could be replaced"));
    let safe = folder();
    let link = safe.path().join("link");
    symlink(&copy, &link).unwrap();
    refused(&tree.tune(&["undo", "--journal", link.to_str().unwrap()]));
    // The machine's own folder.
    let own = tree.file("/var/lib/rtproof/tune");
    mode(&own, 0o777);
    let output = tree.tune(&["undo", "--all"]);
    assert_ne!(code(&output), ACCEPTED);
    assert_ne!(code(&tree.tune(&["apply", "stat-interval", "--yes"])), ACCEPTED);
    mode(&own, 0o700);
    assert_eq!(tree.all(), applied, "nothing was written");
    // Whoever has looked through it says so, is shown what would be written, and asked.
    let accepted = [&named[..], &["--accept-owner"]].concat();
    let output = tree.tune(&accepted);
    expect_code(&output, USAGE);
    assert!(stderr(&output).contains("/sys/kernel/mm/ksm/run: 0 → 1"), "{}", stderr(&output));
    assert_eq!(tree.all(), applied);
    expect_code(&tree.tune(&[&accepted[..], &["--yes"]].concat()), ACCEPTED);
}

#[test]
fn a_plan_writes_where_tuning_writes_and_nowhere_else() {
    let tree = Small::new();
    let before = tree.all();
    let files = folder();
    let path = files.path().join("plan.json");
    let args = ["apply", "--plan", path.to_str().unwrap(), "--yes"];
    let output = tree.tune(&["plan", "ksm", "--json"]);
    fs::write(&path, &output.stdout).unwrap();
    mode(&path, 0o666);
    refused(&tree.tune(&args));
    let plan = String::from_utf8(output.stdout).unwrap();
    mode(&path, 0o600);
    let value = "/sys/kernel/mm/ksm/run";
    for other in [
        "/proc/self/root/etc/hostname",
        "/etc/hostname",
        "/proc/sys/../../etc/hostname",
        "/proc/sys/kernel/core_pattern",
        "/sys/kernel/mm/../../../etc/hostname",
    ] {
        fs::write(&path, plan.replace(value, other)).unwrap();
        let output = tree.tune(&args);
        assert!([FAILED, USAGE].contains(&code(&output)), "{other}: {output:?}");
        assert!(stderr(&output).contains("/etc") || stderr(&output).contains("core_pattern"));
    }
    let json: serde_json::Value = serde_json::from_str(&plan).unwrap();
    for (file, bits) in [("/etc/x", 0o4755), ("/usr/bin/x", 0o755), ("/root/.bashrc", 0o644)] {
        let mut json = json.clone();
        json["steps"][0]["change"] =
            serde_json::json!({"kind": "file", "path": file, "content": "x\n", "mode": bits});
        fs::write(&path, json.to_string()).unwrap();
        let output = tree.tune(&args);
        assert!([FAILED, USAGE].contains(&code(&output)), "{file}: {output:?}");
        assert!(stderr(&output).contains(file), "{}", stderr(&output));
    }
    assert_eq!(tree.all(), before);
    fs::write(&path, &plan).unwrap();
    mode(&path, 0o666);
    let accepted = [&args[..], &["--accept-owner"]].concat();
    expect_code(&tree.tune(&accepted), ACCEPTED);
}

#[test]
fn a_matrix_that_anybody_could_write_runs_nothing() {
    let files = folder();
    let witness = files.path().join("ran");
    let matrix = files.path().join("m.toml");
    let text = format!(
        "for = \"1s\"\ncpus = \"0\"\npolicy = \"other\"\n[[condition]]\nname = \"x\"\nbefore = \
         \"touch {}\"\n",
        witness.display()
    );
    fs::write(&matrix, text).unwrap();
    mode(&matrix, 0o666);
    let measure = |args: &[&str]| run(files.path(), &[&["measure"], args].concat());
    let matrix = matrix.to_str().unwrap();
    refused(&measure(&["--matrix", matrix]));
    // Looking is allowed; running only after a look, which is not possible here.
    expect_code(&measure(&["--matrix", matrix, "--plan"]), ACCEPTED);
    let output = measure(&["--matrix", matrix, "--accept-owner", "--output", "records"]);
    expect_code(&output, USAGE);
    assert!(stderr(&output).contains("touch "), "{}", stderr(&output));
    assert!(!witness.exists());
    // A folder of another user's, to go on with.
    fs::create_dir(files.path().join("other")).unwrap();
    let plan = measure(&["--matrix", matrix, "--plan", "--json"]).stdout;
    fs::write(files.path().join("other/plan.json"), plan).unwrap();
    mode(&files.path().join("other"), 0o777);
    refused(&measure(&["--resume", "other"]));
    assert!(!witness.exists());
}
