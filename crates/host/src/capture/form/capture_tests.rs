//! Tests of captures: there and back, every answer, every mistake.

use std::{fs, io, os::unix::fs::symlink, sync::Arc};

use proptest::prelude::*;

use super::{FIRST_LINE, LAST_LINE, PATH_BYTES_MAX, clean, *};
use crate::reading::ReadingState;
use crate::testing::Tree;
use crate::{Facts, Reading, Root};

fn parsed(body: &str) -> Result<Capture, CaptureError> {
    Capture::parse(format!("{FIRST_LINE}\nfrom live, read by root\n{body}").as_bytes())
}

#[track_caller]
fn root(body: &str) -> Root {
    Root::captured(parsed(&format!("{body}== end\n")).unwrap())
}

#[test]
fn a_call_that_was_refused_is_read_again() {
    for kind in ["absent", "denied\n|EPERM", "failed\n|no answer"] {
        let text =
            format!("{FIRST_LINE}\nfrom live, read by root\n== audit status {kind}\n{LAST_LINE}\n");
        let capture = Capture::parse(text.as_bytes()).unwrap();
        assert_eq!(capture.to_text(), text);
        assert!(capture.call("audit status").is_err());
    }
    let text = format!("{FIRST_LINE}\nfrom live, read by root\n== audit file\n{LAST_LINE}\n");
    assert!(Capture::parse(text.as_bytes()).is_err());
}

#[test]
fn every_kind_answers_as_the_machine_did() {
    let root = root(
        "# a comment\n\
         == /a folder\n|b\n|c d\n\
         == /a/b file\n|one\n|== no head\n||\n:no end\n\
         == /a/e escaped\n|\\x00\\\\\n:\\xFF\n\
         == /a/empty file\n\
         == /a/gone absent\n\
         == /a/locked denied\n|EACCES\n\
         == /a/odd failed\n|not a regular file\n\
         == /a/secret redacted\n\
         == /a/there there\n\
         == /a/up link\n|../z\n\
         == /loop link\n|loop\n\
         == /z link\n|a\n\
         == uname -m call\n|riscv64\n",
    );
    let bytes = |path: &str| root.read_bytes(path);
    assert_eq!(bytes("/a/b").value().unwrap(), b"one\n== no head\n|\nno end");
    assert_eq!(bytes("/a/e").value().unwrap(), b"\0\\\n\xff");
    assert_eq!(bytes("/a/empty").value().unwrap(), b"");
    assert_eq!(bytes("/z/b").value(), bytes("/a/up/b").value());
    assert_eq!(root.list_dir("/a/up/").value().unwrap(), &["b", "c d"]);
    assert!(bytes("/a/gone").is_absent() && bytes("/a/gone/below").is_absent());
    assert!(root.list_dir("/a/b").is_absent());
    let why = |reading: Reading<Vec<u8>>| reading.why_unknown().unwrap();
    assert!(why(bytes("/a")).contains("directory"));
    assert!(why(bytes("/a/locked")).contains("os error 13"));
    assert!(why(bytes("/a/odd")).contains("not a regular file"));
    assert!(why(bytes("/a/secret")).contains("left out"));
    assert!(why(bytes("/loop")).contains("os error 40"));
    for never_asked in ["/a/there", "/a/x", "/b", "/"] {
        assert!(why(bytes(never_asked)).contains("not in the capture"), "{never_asked}");
        assert!(matches!(bytes(never_asked).state, ReadingState::Denied { .. }));
    }
    assert_eq!(root.read_link("/a/up").value().unwrap(), "../z");
    assert!(matches!(root.read_link("/a/b").state, ReadingState::Malformed { .. }));
    assert!(root.exists("/a/there") && root.exists("/loop") && root.exists("/a/secret"));
    assert!(!root.exists("/a/gone") && !root.exists("/b"));
    assert_eq!(
        root.call("uname -m", || panic!("asks nobody")).unwrap().value().unwrap(),
        "riscv64"
    );
    assert!(root.call("uname -r", || panic!("asks nobody")).unwrap().value().is_none());
    assert!(!root.is_live() && root.is_whole() && root.open("/a/b").value().is_none());
}

#[test]
fn a_folder_and_its_capture_have_the_same_facts() {
    let tree = Tree::new(&[
        ("proc/1/stat", "1 (init) S 0\n"),
        ("proc/cpuinfo", "processor : 0\nflags : fpu\n"),
        ("proc/irq/default_smp_affinity", "3\n"),
        ("proc/sys/kernel/osrelease", "6.1.0\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/node/node0/cpulist", "0-1"),
        ("sys/kernel/security/lockdown/a-folder", ""),
        ("etc/systemd/system/multi user.wants/x", ""),
    ]);
    fs::write(tree.path().join("proc/cmdline"), b"caf\xe9 \x01quiet\n").unwrap();
    symlink("/proc/1", tree.path().join("proc/self")).unwrap();
    let facts = Facts::read(&tree.root());
    let capture = Capture::take(&tree.root());
    let text = capture.to_text();
    let again = Capture::parse(text.as_bytes()).unwrap();
    assert_eq!(again, capture, "{text}");
    let captured = Root::captured(again);
    assert_eq!(Facts::read(&captured), facts);
    assert!(!captured.is_whole());
    assert_eq!(Capture::take(&captured), capture, "a capture of a capture is itself");
}

#[test]
fn gzip_is_kept_as_the_text_inside() {
    let tree = Tree::new(&[("proc/sys/kernel/osrelease", "6.1.0\n")]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    io::Write::write_all(&mut gzip, b"CONFIG_HZ=250\n").unwrap();
    fs::write(tree.path().join("proc/config.gz"), gzip.finish().unwrap()).unwrap();
    let capture = Capture::take(&tree.root());
    assert!(capture.to_text().contains("== /proc/config.gz gzip\n|CONFIG_HZ=250\n"));
    assert_eq!(Facts::read(&Root::captured(capture)).kernel.config.value().unwrap()["HZ"], "250");
}

#[test]
fn links_and_what_is_behind_them_are_both_kept() {
    let tree = Tree::new(&[("a/b", "text\n")]);
    symlink("b", tree.path().join("a/link")).unwrap();
    for link_first in [true, false] {
        let recorder = Arc::new(CaptureRecorder::default());
        let recorded = tree.root().recorded(Arc::clone(&recorder));
        assert!(recorded.exists("/a/link"));
        if link_first {
            let _ = recorded.read_link("/a/link");
        }
        let _ = recorded.read_bytes("/a/link");
        let _ = recorded.read_link("/a/link");
        let entries = recorder.entries();
        assert_eq!(entries["/a/link"], CaptureEntry::Link("b".into()));
        assert_eq!(entries["/a/b"], CaptureEntry::File(b"text\n".to_vec()));
    }
}

#[test]
fn lines_of_a_file_are_kept_and_the_rest_is_not_known() {
    let tree = Tree::new(&[("s", "Name:\ta b\nUid:\t0\nCpus:\t0-3\nPid:\t1\n"), ("t", "Pid: 2\n")]);
    let take = |ask: &dyn Fn(&Root)| {
        let recorder = Arc::new(CaptureRecorder::default());
        ask(&tree.root().recorded(Arc::clone(&recorder)));
        recorder.entries()
    };
    let entries = take(&|root| {
        assert_eq!(root.excerpt("/s", &["Cpus"]).value().unwrap(), "Cpus:\t0-3\n");
        assert_eq!(root.excerpt("/s", &["Uid", "Name"]).value().unwrap(), "Name:\ta b\nUid:\t0\n");
        assert!(matches!(root.excerpt("/t", &["Cpus"]).state, ReadingState::Malformed { .. }));
        assert!(root.excerpt("/u", &["Cpus"]).is_absent());
    });
    assert_eq!(entries["/s"], CaptureEntry::Lines("Cpus:\t0-3\nName:\ta b\nUid:\t0\n".into()));
    let capture = Capture { origin: CaptureOrigin::Folder, about: Vec::new(), entries };
    assert_eq!(Capture::parse(capture.to_text().as_bytes()).as_ref(), Ok(&capture));
    let root = Root::captured(capture);
    assert_eq!(root.excerpt("/s", &["Cpus"]).value().unwrap(), "Cpus:\t0-3\n");
    // An unread file is not an absent one.
    for unknown in [root.excerpt("/s", &["Cpus", "Pid"]), root.read_text("/s")] {
        assert!(unknown.why_unknown().unwrap().contains("not in the capture"));
    }
    assert_eq!(root.excerpt("/t", &["Cpus"]), tree.root().excerpt("/t", &["Cpus"]));
    assert!(root.excerpt("/u", &["Cpus"]).is_absent());
    // Asked as a whole, before or after, it is kept as a whole and answers both.
    for first in [true, false] {
        let entries = take(&|root| {
            let whole = || drop(root.read_text("/s"));
            first.then(whole);
            let _ = root.excerpt("/s", &["Cpus"]);
            (!first).then(whole);
        });
        assert!(matches!(entries["/s"], CaptureEntry::File(_)));
        let root =
            Root::captured(Capture { origin: CaptureOrigin::Folder, about: Vec::new(), entries });
        assert_eq!(root.excerpt("/s", &["Cpus"]).value().unwrap(), "Cpus:\t0-3\n");
    }
}

#[test]
fn mistakes_are_found_where_they_are() {
    for (line, says, body) in [
        (3, "cut off", ""),
        (3, "cut off", "== end"),
        (4, "nothing may follow", "== end\n\n"),
        (3, "== PATH KIND", "hello\n== end\n"),
        (3, "== PATH KIND", "\n== end\n"),
        (3, "no such kind: fail", "== /a fail\n== end\n"),
        (3, "expected a path", "== a file\n== end\n"),
        (3, "expected a path", "== /a/../b file\n== end\n"),
        (3, "expected a path", "== /a call\n|x\n== end\n"),
        (3, "not a path", "== /a\\b file\n== end\n"),
        (4, "sorted", "== /b there\n== /a there\n== end\n"),
        (4, "sorted", "== /b there\n== /b there\n== end\n"),
        (4, "control character", "== /b file\n|a\r\n== end\n"),
        (4, "no lines below", "== /b absent\n|a\n== end\n"),
        (3, "one line below", "== /b denied\n== end\n"),
        (4, "EACCES", "== /b denied\n|EWHAT\n== end\n"),
        (4, "EACCES", "== /b denied\n|0\n== end\n"),
        (5, "names are sorted", "== /b folder\n|b\n|a\n== end\n"),
        (4, "name of a file", "== /b folder\n|a/b\n== end\n"),
        (4, "`:` is for files", "== /b link\n:a\n== end\n"),
        (4, "`:` needs text", "== /b file\n:\n== end\n"),
        (4, "backslash", "== /b escaped\n|\\x0\n== end\n"),
        (5, "== PATH KIND", "== /b file\n:a\n|b\n== end\n"),
    ] {
        let error = parsed(body).unwrap_err();
        assert_eq!(error.line, line, "{body:?}: {error}");
        assert!(error.text.contains(says), "{body:?}: {error}");
    }
    for (line, says, bytes) in [
        (1, "rtproof capture FILE", &b""[..]),
        (1, "rtproof capture FILE", b"\x7fELF\xff"),
        (1, "rtproof capture FILE", b"SQLite format 3\0"),
        (1, "another version", b"rtproof capture 2\n"),
        (1, "another version", b"rtproof capture 1\r\n"),
        (2, "from live", b"rtproof capture 1\n"),
        (4, "UTF-8", b"rtproof capture 1\nfrom folder\n== /a file\n|\xff\n"),
    ] {
        let error = Capture::parse(bytes).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.text.contains(says), "{error}");
    }
}

#[test]
fn errors_show_no_control_characters() {
    for body in ["== /a f\x1b[1m\n", "== /a\\x1b//b file\n", "== /b there\n== /a\\x1b there\n"] {
        let error = parsed(body).unwrap_err();
        assert!(error.text.contains("\\x1B") && !error.text.contains('\x1b'), "{error}");
    }
}

#[test]
fn long_paths_are_refused_and_not_followed() {
    let long = "a/".repeat(PATH_BYTES_MAX / 2 + 1);
    assert_eq!(parsed(&format!("== /b link\n|{long}\n== end\n")).unwrap_err().line, 4);
    assert_eq!(parsed(&format!("== /{long}a there\n== end\n")).unwrap_err().line, 3);
    let growing = "a/".repeat(1500);
    let root = root(&format!("== /b link\n|/b/{growing}c\n"));
    assert!(root.read_bytes("/b").why_unknown().unwrap().contains("os error 36"));
}

fn any_entry() -> impl Strategy<Value = CaptureEntry> {
    let name = "[^/\0]{1,8}".prop_filter("a name", |name| name != "." && name != "..");
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60).prop_map(CaptureEntry::File),
        "[ -~\n\t|:=#]{0,60}".prop_map(|text| CaptureEntry::File(text.into_bytes())),
        "[ -~\n]{0,60}".prop_map(CaptureEntry::Gzip),
        "([A-Z]{1,3}:[ -~\t]{0,9}\n){0,3}".prop_map(CaptureEntry::Lines),
        prop::collection::btree_set(name, 0..6)
            .prop_map(|names| CaptureEntry::Folder(names.into_iter().collect())),
        ".{1,20}".prop_map(CaptureEntry::Link),
        ".{0,20}".prop_map(CaptureEntry::Failed),
        (1..4096).prop_map(CaptureEntry::Denied),
        Just(CaptureEntry::There),
        Just(CaptureEntry::Absent),
        Just(CaptureEntry::Redacted),
    ]
}

fn any_capture() -> impl Strategy<Value = Capture> {
    let path = prop::collection::vec(".{0,6}", 0..4).prop_map(|names| clean(&names.join("/")));
    let entries = prop::collection::btree_map(path, any_entry(), 0..8);
    let calls = prop::collection::btree_map("[a-z][a-z -]{0,8}", ".{0,10}", 0..3);
    let about = prop::collection::vec("[ -~]{0,20}", 0..3);
    let origin = prop::sample::select(CaptureOrigin::ALL.to_vec());
    (origin, about, entries, calls).prop_map(|(origin, about, mut entries, calls)| {
        entries.extend(calls.into_iter().map(|(call, answer)| (call, CaptureEntry::Call(answer))));
        Capture { origin, about, entries }
    })
}

proptest! {
    #[test]
    fn there_and_back(capture in any_capture()) {
        let text = capture.to_text();
        let again = Capture::parse(text.as_bytes());
        prop_assert_eq!(again.as_ref(), Ok(&capture), "{}", text);
    }

    #[test]
    fn arbitrary_bytes_give_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let error = Capture::parse(&bytes).unwrap_err();
        prop_assert!(error.line >= 1);
    }

    #[test]
    fn changed_files_never_panic(
        capture in any_capture(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = capture.to_text().into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            match Capture::parse(bytes) {
                Ok(read) => {
                    prop_assert_eq!(Capture::parse(read.to_text().as_bytes()), Ok(read.clone()));
                    let _ = Facts::read(&Root::captured(read));
                }
                Err(error) => prop_assert!((1..=lines + 2).contains(&error.line), "{}", error),
            }
        }
    }

    #[test]
    fn redaction_keeps_files_readable(mut capture in any_capture()) {
        capture.redact();
        let text = capture.to_text();
        prop_assert_eq!(Capture::parse(text.as_bytes()), Ok(capture), "{}", text);
    }
}

#[test]
fn a_refused_call_can_be_read_again() {
    let head = "rtproof capture 1\nfrom live, read by a user\n";
    let text = format!(
        "{head}== audit status denied\n|EPERM\n== kernel log denied\n|EPERM\n\
         == msr 0x34 of cpu 0 absent\n== end\n"
    );
    let capture = Capture::parse(text.as_bytes()).unwrap();
    assert_eq!(capture.to_text(), text);
    let root = Root::captured(capture);
    let ask = || panic!("asks nobody");
    assert!(root.call("audit status", ask).unwrap().why_unknown().is_some());
    assert!(root.register(0, 0x34).is_absent());
    for wrong in ["proc/stat denied\n|EPERM", "proc/stat absent", "a file", "/a call\n|x"] {
        let text = format!("{head}== {wrong}\n== end\n");
        assert!(Capture::parse(text.as_bytes()).is_err(), "{wrong}");
    }
}
