//! `rtproof kernel` with a small source of the test's own: real make, patch and git, and a makefile
//! that answers as the kernel's does. A real kernel is built by hand (docs/kernel.md).

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::support::{self, ACCEPTED, FAILED, REFUSED, USAGE, folder, run, stderr};

/// The head and the end by which a whole configuration is known.
const CONFIG: &str = "#\n# Automatically generated file; DO NOT EDIT.\n\
    # Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n\
    CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT_RT is not set\n# CONFIG_EXPERT is not set\n#\n# Kernel hacking\n#\n\
    CONFIG_KASAN_GENERIC=y\n# end of Kernel hacking\n";

/// kconfig in one line: what depends on ARCH_SUPPORTS_RT is dropped, HZ follows HZ_1000.
const MAKEFILE: &str = "\
kernelversion:\n\t@echo 6.1.0\n\
kernelrelease:\n\t@echo 6.1.0-small\n\
image_name:\n\t@echo arch/x86/boot/bzImage\n\
tinyconfig:\n\t@cp small.config $(O)/.config\n\
brokenconfig:\n\t@echo 'scripts/broken.c:1:2: error: no such thing' >&2; exit 1\n\
olddefconfig:\n\t@grep -q CONFIG_ARCH_SUPPORTS_RT=y $(O)/.config || \
sed -i 's/^CONFIG_PREEMPT_RT=y/# CONFIG_PREEMPT_RT is not set/' $(O)/.config\n\
\t@! grep -q CONFIG_HZ_1000=y $(O)/.config || sed -i '/HZ_250/d' $(O)/.config\n\
all:\n\t@echo '  CC      init/main.o'\n\t@mkdir -p $(O)/arch/x86/boot $(O)/include/generated\n\
\t@touch $(O)/include/generated/bounds.h\n\
\tcc -c -o $(O)/main.o init/main.c\n\
\t@cp $(O)/main.o $(O)/arch/x86/boot/bzImage\n";

const KCONFIG: &str = "config EXPERT\n\tbool \"experts\"\nconfig ARCH_SUPPORTS_RT\n\tbool\n\
    config PREEMPT_RT\n\tbool \"RT\"\n\tdepends on EXPERT && ARCH_SUPPORTS_RT\n";

/// A source in `small`.
fn source(at: &Path) {
    let files = [
        ("Makefile", MAKEFILE),
        ("Kconfig", KCONFIG),
        ("small.config", CONFIG),
        ("arch/x86/Kconfig", ""),
        ("init/main.c", "int started;\nint main_line;\n"),
    ];
    for (path, text) in files {
        let path = at.join("small").join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

fn config(at: &Path, more: &[&str]) -> Output {
    let mut words = vec!["kernel", "config", "--source", "small", "--base", "tinyconfig", "out"];
    words.extend(["--root", "small/small.config"]);
    words.extend(more);
    run(at, &words)
}

fn build(at: &Path, more: &[&str]) -> Output {
    let mut words = vec!["kernel", "build", "--source", "small", "out"];
    words.extend(more);
    run(at, &words)
}

fn got(at: &Path, path: &str) -> String {
    fs::read_to_string(at.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether programs are here; says what is left out.
fn needs(programs: &[&str]) -> bool {
    let is_here = |name: &&&str| rtproof_host::trusted::find_program(name).is_err();
    let missing: Vec<_> = programs.iter().filter(is_here).collect();
    if !missing.is_empty() {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "CI needs {missing:?}: scripts/deps.sh");
        eprintln!("left out: {missing:?} missing");
    }
    missing.is_empty()
}

#[test]
fn the_table_agrees_with_the_configuration() {
    let folder = folder();
    let at = folder.path();
    source(at);
    let output = config(at, &["--json"]);
    assert_eq!(output.status.code(), Some(REFUSED), "{}", stderr(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = got(at, "out/build/.config");
    let fragment = got(at, "out/rtproof.config");
    let rows = found["options"].as_array().expect("rows");
    for row in rows {
        let (name, after) = (row["name"].as_str().unwrap(), row["after"].as_str().unwrap());
        let is = text.lines().find_map(|line| line.strip_prefix(&format!("CONFIG_{name}=")));
        assert_eq!(is.unwrap_or("n"), after, "{row}");
        let survived = row["wanted"] == row["after"];
        assert_eq!(row["fate"] == "survived", survived, "{row}");
        assert!(fragment.contains(&format!("CONFIG_{name}")), "{name}: {fragment}");
    }
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect(name);
    assert_eq!(row("PREEMPT_RT")["fate"], "dropped");
    let because = row("PREEMPT_RT")["because"][0].as_str().unwrap();
    assert!(because.starts_with("depends on ARCH_SUPPORTS_RT"), "{because}");
    assert_eq!(row("KASAN_GENERIC")["after"], "n");
    assert!(found["changed"].to_string().contains("HZ_250"), "{}", found["changed"]);
    // Once more is as once.
    config(at, &[]);
    assert_eq!(got(at, "out/build/.config"), text);
    let left: Vec<_> = fs::read_dir(at.join("out")).unwrap().filter_map(Result::ok).collect();
    let parts = left.iter().filter(|it| it.file_name().to_string_lossy().contains(".part"));
    assert_eq!(parts.count(), 0, "{left:?}");
}

#[test]
fn what_survives_is_built_and_a_failure_shows_the_compiler_s_lines() {
    if !needs(&["flex", "bison", "bc", "gcc", "perl"]) {
        return;
    }
    let folder = folder();
    let at = folder.path();
    source(at);
    let none = build(at, &[]);
    assert_eq!(none.status.code(), Some(FAILED));
    assert!(stderr(&none).contains("rtproof kernel config"), "{}", stderr(&none));
    config(at, &[]);
    let no_compiler = build(at, &["--set", "CC=no-such-cc"]);
    assert_eq!(no_compiler.status.code(), Some(FAILED));
    assert!(stderr(&no_compiler).contains("no-such-cc is needed"), "{}", stderr(&no_compiler));
    assert!(!at.join("out/build/main.o").exists());
    fs::write(at.join("small/init/main.c"), "int started\n").unwrap();
    let broken = build(at, &[]);
    let said = stderr(&broken);
    assert_eq!(broken.status.code(), Some(FAILED), "{said}");
    assert!(
        said.contains("main.c:1") && said.contains("error:") && said.contains("build.log"),
        "{said}"
    );
    fs::write(at.join("small/init/main.c"), "int started;\n").unwrap();
    let built = build(at, &["--json"]);
    assert_eq!(built.status.code(), Some(ACCEPTED), "{}", stderr(&built));
    let found: serde_json::Value = serde_json::from_slice(&built.stdout).expect("JSON");
    assert_eq!((&found["release"], &found["objects"]), (&"6.1.0-small".into(), &1.into()));
    assert_eq!((&found["continued"], &found["preempt_rt"]), (&true.into(), &"n".into()));
    assert!(found["files"][0]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(build(at, &["--set", "O=/tmp"]).status.code(), Some(USAGE));
}

#[test]
fn an_unusable_base_is_reported_once() {
    let folder = folder();
    let of = |base: &str| {
        let output = run(folder.path(), &["kernel", "config", "--base", base, "out"]);
        assert_eq!(output.status.code(), Some(FAILED));
        stderr(&output)
    };
    assert!(of("defconfig").contains("a target of a source, and no source is given"));
    let missing = of("no-such-file");
    assert_eq!(missing.matches("No such file").count(), 1, "{missing}");
}

#[test]
fn what_is_no_configuration_is_no_base() {
    if !needs(&["make"]) {
        return;
    }
    let folder = folder();
    let at = folder.path();
    source(at);
    for (name, bytes) in [("junk", &[0x80, 7, 0, 0xff][..]), ("text", b"hello\n"), ("empty", b"")] {
        fs::write(at.join(name), bytes).expect("a file");
        let words = ["kernel", "config", "--source", "small", "--base", name, "out"];
        let output = run(at, &words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(FAILED), "{name}: {said}");
        assert!(said.contains(name), "{name}: {said}");
        assert!(!at.join("out/build/.config").exists(), "{name}");
    }
}

#[test]
fn a_makefile_of_another_user_never_runs_as_root() {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder();
    let at = folder.path();
    source(at);
    let refused = |what: &str| {
        let output = config(at, &[]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(FAILED), "{what}: {said}");
        assert!(said.contains("--user"), "{what}: {said}");
    };
    chown(at.join("small/Kconfig"), Some(65_534), None).expect("root may");
    refused("a file of another user");
    chown(at.join("small/Kconfig"), Some(0), None).expect("root may");
    fs::set_permissions(at.join("small"), fs::Permissions::from_mode(0o777)).expect("our own");
    refused("a source in which others can write");
    fs::set_permissions(at.join("small"), fs::Permissions::from_mode(0o755)).expect("our own");
    fs::create_dir_all(at.join("out/build")).expect("a folder");
    chown(at.join("out/build"), Some(65_534), None).expect("root may");
    refused("a folder of another user, whose files make includes");
}

#[test]
fn another_architecture_is_an_error_of_one_line() {
    let folder = folder();
    let at = folder.path();
    source(at);
    let arm = CONFIG.replace("Linux/x86", "Linux/arm64");
    fs::write(at.join("arm"), &arm).unwrap();
    let words = ["kernel", "config", "--source", "small", "--base", "arm", "--root", "arm", "out"];
    let said = stderr(&run(at, &words));
    assert!(said.contains("this configuration is for arm64"), "{said}");
    let said = stderr(&config(at, &["--set", "ARCH=arm64"]));
    assert!(said.contains("no architecture arm64"), "{said}");
    let words = ["kernel", "build", "--source", ".", "out"];
    let said = stderr(&run(at, &words));
    assert!(said.contains("no kernel source"), "{said}");
}

#[test]
fn a_patch_that_fails_is_named_and_leaves_nothing() {
    if !needs(&["patch", "flex", "bison", "bc", "gcc", "perl"]) {
        return;
    }
    let folder = folder();
    let at = folder.path();
    source(at);
    let patch = |old: &str| {
        format!(
            "--- a/init/main.c\n+++ b/init/main.c\n@@ -1,2 +1,2 @@\n int {old};\n-int main_line;\n\
             +int other_line;\n"
        )
    };
    fs::create_dir(at.join("patches")).unwrap();
    fs::write(at.join("patches/good.patch"), patch("started")).unwrap();
    let wrong = patch("nothing_like_it").replace("main_line", "gone");
    fs::write(at.join("patches/bad.patch"), wrong).unwrap();
    fs::write(at.join("patches/series"), "good.patch\nbad.patch\n").unwrap();
    let output = config(at, &["--patches", "patches"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(FAILED), "{said}");
    assert!(said.contains("bad.patch: does not apply (1 before it did)"), "{said}");
    assert!(said.contains("-int gone;") && said.contains("source.log"), "{said}");
    let left: Vec<_> = fs::read_dir(at.join("out")).unwrap().filter_map(Result::ok).collect();
    assert_eq!(left.len(), 1, "the log alone: {left:?}");
    assert!(got(at, "small/init/main.c").contains("main_line"), "the source is as before");
    fs::write(at.join("patches/series"), "good.patch\n").unwrap();
    for _ in 0..2 {
        let output = config(at, &["--patches", "patches"]);
        assert_eq!(output.status.code(), Some(REFUSED), "{}", stderr(&output));
        assert!(got(at, "out/source/init/main.c").contains("other_line"));
    }
    let other = config(at, &["--patches", "patches/bad.patch"]);
    assert!(stderr(&other).contains("holds another source"), "{}", stderr(&other));
}

#[test]
fn a_full_disk_is_named() {
    if !needs(&["unshare", "flex", "bison", "bc", "gcc", "perl"]) {
        return;
    }
    let folder = folder();
    let at = folder.path();
    source(at);
    config(at, &[]);
    fs::create_dir(at.join("disk")).unwrap();
    // A program of 1 MiB on a disk of 256 KiB.
    fs::write(at.join("small/init/main.c"), "char much[1 << 20] = { 1 };\n").unwrap();
    let script = "mount -t tmpfs -o size=256k,mode=755 none disk || exit 99\n\
                  mkdir -p disk/build && cp out/build/.config disk/build/ || exit 98\n\
                  exec \"$0\" kernel build --source small disk";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(support::binary())
        .current_dir(at)
        .env("NO_COLOR", "1")
        .output()
        .expect("unshare runs");
    let said = stderr(&output);
    if output.status.code() == Some(99) || said.contains("unshare:") {
        eprintln!("left out: no mount namespace here: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(FAILED), "{said}");
    assert!(said.contains("disk is full") || said.contains("No space left"), "{said}");
    assert!(said.contains("disk/build.log"), "{said}");
}

#[test]
fn build_tests_make_a_table() {
    if !needs(&["flex", "bison", "bc", "gcc", "perl"]) {
        return;
    }
    let folder = folder();
    let at = folder.path();
    source(at);
    let words =
        ["kernel", "build", "--source", "small", "out", "--test", "tinyconfig,brokenconfig"];
    let output = run(at, &words);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(REFUSED), "{text}{}", stderr(&output));
    let row = |name: &str| text.lines().find(|line| line.contains(name)).expect(name).to_owned();
    assert!(row("tinyconfig").contains("yes") && row("brokenconfig").contains("no"), "{text}");
    assert!(text.contains("scripts/broken.c:1:2: error: no such thing"), "{text}");
    let bad = run(at, &["kernel", "build", "--source", "small", "out", "--test", "clean"]);
    assert_eq!(bad.status.code(), Some(USAGE));
}

/// A tree with v1, v2 and a local commit after v1 on `mine`.
fn git_tree(at: &Path) {
    let script = "git init -q -b main . && git config user.name t && git config user.email t@t.example\n\
        echo one > a; echo x > b; git add a b; git commit -qm first; git tag v1\n\
        echo two > a; git commit -qam second; git tag v2\n\
        git checkout -q -b mine v1; echo mine > a; git commit -qam 'mine in a'\n\
        git checkout -q -b apart v1; echo y > b; git commit -qam 'mine in b'";
    let output = Command::new("sh").args(["-ec", script]).current_dir(at).output().expect("sh");
    assert!(output.status.success(), "{}", stderr(&output));
}

fn git(at: &Path, words: &[&str]) -> String {
    let output = Command::new("git").current_dir(at).args(words).output().expect("git");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_rebase_stops_at_a_conflict_and_continues() {
    if !needs(&["git"]) {
        return;
    }
    let folder = folder();
    let at = folder.path();
    git_tree(at);
    let rebase = |more: &[&str]| {
        let mut words = vec!["kernel", "rebase", "."];
        words.extend(more);
        run(at, &words)
    };
    let done = rebase(&["--onto", "v2"]);
    assert_eq!(done.status.code(), Some(ACCEPTED), "{}", stderr(&done));
    assert_eq!(git(at, &["log", "--format=%s", "v2..apart"]), "mine in b");
    git(at, &["checkout", "-q", "mine"]);
    let before = git(at, &["rev-parse", "mine"]);
    for end in ["--abort", "--continue"] {
        let stopped = rebase(&["--onto", "v2"]);
        let said = stderr(&stopped);
        assert_eq!(stopped.status.code(), Some(REFUSED), "{said}");
        assert!(said.contains("mine in a, in a.") && said.contains("--continue"), "{said}");
        let again = stderr(&rebase(&["--onto", "v2"]));
        assert!(again.contains("under way"), "{again}");
        if end == "--continue" {
            let unresolved = rebase(&["--continue"]);
            assert_eq!(unresolved.status.code(), Some(REFUSED), "{}", stderr(&unresolved));
            fs::write(at.join("a"), "both\n").unwrap();
            git(at, &["add", "a"]);
        }
        let ended = rebase(&[end]);
        assert_eq!(ended.status.code(), Some(ACCEPTED), "{}", stderr(&ended));
        if end == "--abort" {
            assert_eq!(git(at, &["rev-parse", "mine"]), before);
        }
    }
    assert_eq!(git(at, &["log", "--format=%s", "v2..mine"]), "mine in a");
    for (words, says) in [
        (["--onto", "v9"].as_slice(), "no commit \"v9\""),
        (&["--continue"], "no rebase is under way"),
    ] {
        let said = stderr(&rebase(words));
        assert!(said.contains(says), "{said}");
    }
    // Patches that v2 has already are skipped, which is reported.
    git(at, &["checkout", "-q", "-b", "twice", "v1"]);
    git(at, &["cherry-pick", "v2", "apart"]);
    let left_out = rebase(&["--onto", "v2", "--from", "v1"]);
    let said = String::from_utf8_lossy(&left_out.stdout).into_owned();
    assert!(said.contains("1 commit on top of v2") && said.contains("There were 2"), "{said}");
    // A hook is not run.
    git(at, &["checkout", "-q", "-b", "blocked", "v1"]);
    fs::write(at.join(".git/hooks/pre-rebase"), "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(
        at.join(".git/hooks/pre-rebase"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let passed = rebase(&["--onto", "v2"]);
    assert_eq!(passed.status.code(), Some(ACCEPTED), "{}", stderr(&passed));
    fs::remove_file(at.join(".git/hooks/pre-rebase")).unwrap();
    fs::write(at.join("b"), "dirty\n").unwrap();
    let said = stderr(&rebase(&["--onto", "v1"]));
    assert!(said.contains("not committed"), "{said}");
}
