//! An application that marks its cycles: in Rust in this process, and in C in one of its own.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use super::*;

/// Marks cycles of 200 us every 2 ms while `body` runs.
fn while_marking(marks: rtproof_mark::Marks, body: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut marks = marks;
            while !stop.load(Ordering::Relaxed) {
                marks.begin();
                std::thread::sleep(Duration::from_micros(200));
                marks.end();
                std::thread::sleep(Duration::from_micros(1800));
            }
        });
        body();
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_marked_application_is_measured() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let marks = rtproof_mark::Marks::open_at(&dir.path().join("ring")).expect("a ring");
    let text = format!("marks:{}", marks.path().display());
    while_marking(marks, || {
        let got = run(&plan(&text)).remove(0);
        assert_eq!((got.report.reason, got.report.ending.lost), (EndReason::Complete, 0));
        // 2 ms and what sleeping takes beyond it, on a busy machine more.
        assert!((20..=210).contains(&got.report.scheduled), "{got:?}");
        assert!(got.min() >= 200_000 && got.totals.missed == 0, "{got:?}");
        assert!(got.intervals.min() >= Some(2_000_000), "{got:?}");
        assert_ne!(got.started.tid, 0);
    });
}

#[test]
fn a_marked_application_in_c_is_measured_until_it_ends() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("marked");
    let marks = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../marks");
    let source = marks.join("examples/marked.c");
    let built = Command::new("gcc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([&marks, &PathBuf::from("-o"), &program, &source])
        .status();
    let Ok(status) = built else { return };
    assert!(status.success());
    // 150 cycles of 1 ms and more, then it ends.
    let mut app =
        Command::new(&program).arg("150").stdout(Stdio::null()).spawn().expect("the program");
    std::thread::sleep(Duration::from_millis(20));
    let got = run(&plan(&format!("marks:{}", app.id()))).remove(0);
    app.wait().expect("it ends");
    // The header leaves the ring for whoever reads it.
    std::fs::remove_file(format!("/dev/shm/rtproof-mark-{}", app.id())).expect("the ring");
    assert_eq!((got.report.reason, got.report.ending.lost), (EndReason::Complete, 0));
    assert!((30..150).contains(&got.report.scheduled), "{got:?}");
    assert_eq!(got.started.tid, app.id());
    assert!(got.started.policy == Policy::Other && got.min() > 0, "{got:?}");
}

/// The folder of the marks.
fn marks_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../marks")
}

/// Builds something with a compiler; false: it is not installed.
fn compiled(compiler: &str, args: &[&str], folder: &std::path::Path) -> bool {
    let strict = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror"];
    let mut command = Command::new(compiler);
    match command.args(strict).args(args).current_dir(folder).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{compiler} {args:?}\n{said}");
            true
        }
        Err(_) => false,
    }
}

#[expect(clippy::disallowed_methods, reason = "this test's own file")]
fn write(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).expect("a file");
}

/// Measures an application that marks 150 cycles of 1 ms and more with the word `loop`, and removes
/// its ring when it ends.
#[track_caller]
fn measured_and_gone(command: &mut Command) {
    let mut app = command.stdout(Stdio::null()).spawn().expect("the program");
    let ring = PathBuf::from(format!("/dev/shm/rtproof-mark-{}-loop", app.id()));
    let start = std::time::Instant::now();
    while !ring.exists() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let got = run(&plan(&format!("marks:{}", app.id()))).remove(0);
    assert!(app.wait().expect("it ends").success());
    assert_eq!((got.report.reason, got.report.ending.lost), (EndReason::Complete, 0));
    assert!((30..150).contains(&got.report.scheduled) && got.min() > 0, "{got:?}");
    assert!(!ring.exists(), "the ring is left");
}

#[test]
fn a_marked_application_in_cpp_is_measured_until_it_ends() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let source = "#include \"rtproof_mark.hpp\"\n\
                  int main()\n{\n\trtproof::Mark mark(\"loop\");\n\
                  \tstruct timespec pause = {0, 1000000};\n\tunsigned sum = 0;\n\
                  \tfor (int n = 0; n < 150; n++) {\n\t\t{\n\t\t\trtproof::Cycle cycle(mark);\n\
                  \t\t\tfor (unsigned i = 0; i < 10000; i++)\n\
                  \t\t\t\t__asm__ volatile(\"\" : \"+r\"(sum));\n\t\t}\n\
                  \t\tnanosleep(&pause, nullptr);\n\t}\n\treturn mark.is_open() ? 0 : 1;\n}\n";
    write(&dir.path().join("app.cpp"), source);
    let include = format!("-I{}", marks_folder().display());
    for standard in ["-std=c++11", "-std=c++20"] {
        if !compiled("g++", &[standard, &include, "-o", "app", "app.cpp"], dir.path()) {
            return;
        }
    }
    // The header of C alone is C++, too.
    let header =
        "#include \"rtproof_mark.h\"\nint main() { return !rtproof_mark_open(\"x/y/z\"); }\n";
    write(&dir.path().join("c.cpp"), header);
    compiled("g++", &["-std=c++11", &include, "-fsyntax-only", "c.cpp"], dir.path());
    measured_and_gone(&mut Command::new(dir.path().join("app")));
}

#[test]
fn a_marked_application_in_python_is_measured_until_it_ends() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let marks = marks_folder();
    for name in ["librtproof_mark.c", "rtproof_mark.py"] {
        std::fs::copy(marks.join("python").join(name), dir.path().join(name)).expect("a copy");
    }
    let include = format!("-I{}", marks.display());
    let args = ["-shared", "-fPIC", &include, "-o", "librtproof_mark.so", "librtproof_mark.c"];
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    if !has_python || !compiled("cc", &[&["-std=gnu11"], &args[..]].concat(), dir.path()) {
        return;
    }
    let text = "import sys, time\n\
                from rtproof_mark import Marks\n\
                marks = Marks('loop')\n\
                for cycle in range(150):\n    \
                    marks.begin()\n    \
                    sum(range(1000))\n    \
                    marks.end()\n    \
                    time.sleep(0.001)\n\
                marks.close()\n\
                marks.end()\n\
                try:\n    \
                    Marks('/no/such/folder/ring')\n\
                except OSError:\n    \
                    sys.exit(0)\n\
                sys.exit(1)\n";
    write(&dir.path().join("app.py"), text);
    measured_and_gone(Command::new("python3").arg("app.py").current_dir(dir.path()));
}

#[test]
fn an_application_without_marks_is_reported() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let marks = rtproof_mark::Marks::open_at(&dir.path().join("ring")).expect("a ring");
    let got = run(&plan(&format!("marks:{}", marks.path().display()))).remove(0);
    assert_eq!(got.report.reason, EndReason::Failed);
    let failure = got.report.ending.failure.expect("why");
    assert!(failure.contains("no cycle was marked"), "{failure}");
    let error = Session::start(&plan("marks:/no/such/ring")).expect_err("none").to_string();
    assert!(error.contains("/no/such/ring: No such file"), "{error}");
    let error = Session::start(&plan("marks:1")).expect_err("none").to_string();
    assert!(error.contains("process 1 has no ring"), "{error}");
}

#[test]
fn a_flood_of_cycles_is_read_or_counted_as_lost() {
    let _alone = alone();
    let dir = tempfile::tempdir().expect("a folder");
    let mut marks = rtproof_mark::Marks::open_at(&dir.path().join("ring")).expect("a ring");
    let text = format!("marks:{}", marks.path().display());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                marks.begin();
                marks.end();
            }
        });
        let mut plan = plan(&text);
        plan.cpus = vec![0];
        let got = run(&plan).remove(0);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(got.report.reason, EndReason::Complete, "{got:?}");
        assert!(got.report.ending.lost > 0 && got.report.scheduled > 0, "{got:?}");
        // Nothing torn was taken: a cycle of two readings of the clock is no hour.
        assert!(got.max() < 10_000_000_000, "{got:?}");
    });
}
