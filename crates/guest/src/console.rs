//! The guest's console: read line by line as it comes, kept on disk with the second of each line,
//! and searched for the marks that init and the prelude print.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    sync::mpsc::Sender,
    time::Instant,
};

use anyhow::{Context, Result};

/// How the kernel's panic() begins its last message.
pub const PANIC: &str = "Kernel panic - not syncing";

/// Longest line: a longer one comes in parts. Those of init are below 200 bytes.
const LINE_MAX: u64 = 64 << 10;
/// Largest log: a kernel that repeats one message fills no disk. Marks are read beyond it.
const LOG_MAX: usize = 64 << 20;

/// What a line of the console says to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Init runs: release of the kernel.
    Init(String),
    /// Init waits for a line; the state may be saved.
    Ready,
    /// The script asks the host to act.
    Cue(String),
    /// The script has ended with this code.
    Ended(i32),
    /// Init could not do its work.
    Broken(String),
    /// The kernel has panicked.
    Panic,
    /// A line of the files that come over the console.
    File(String),
    /// Standard output is closed: QEMU has ended.
    Closed,
}

/// Reads until the guest closes; sends marks.
pub fn follow(output: impl Read, log: &Path, began: Instant, marks: &Sender<Mark>) -> Result<()> {
    let mut log = File::create(log).with_context(|| format!("{}: create", log.display()))?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    let mut in_files = false;
    let mut left = LOG_MAX;
    loop {
        line.clear();
        // A guest that is killed ends its console anywhere; an error is an end too.
        if (&mut reader).take(LINE_MAX).read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        match text {
            "GUEST-FILES-BEGIN" => in_files = true,
            "GUEST-FILES-END" => in_files = false,
            _ if in_files => {
                let _ = marks.send(Mark::File(text.to_owned()));
                continue;
            }
            _ => {}
        }
        match left.checked_sub(line.len()) {
            Some(rest) => {
                writeln!(log, "[{:7.2}] {text}", began.elapsed().as_secs_f64())?;
                left = rest;
            }
            None if left > 0 => {
                writeln!(log, "[{:7.2}] the log ends: 64 MiB", began.elapsed().as_secs_f64())?;
                left = 0;
            }
            None => {}
        }
        if text.contains(PANIC) {
            let _ = marks.send(Mark::Panic);
        }
        if let Some(mark) = parse(text) {
            let _ = marks.send(mark);
        }
    }
    let _ = marks.send(Mark::Closed);
    Ok(())
}

/// The mark of a line. Kernel messages may precede it on the same line.
fn parse(line: &str) -> Option<Mark> {
    let mark = &line[line.find("GUEST-")?..];
    let (word, rest) = mark.split_once([' ', '=']).unwrap_or((mark, ""));
    Some(match word {
        "GUEST-INIT" => Mark::Init(rest.trim().to_owned()),
        "GUEST-READY" => Mark::Ready,
        "GUEST-CUE" => Mark::Cue(rest.trim().to_owned()),
        "GUEST-RC" => Mark::Ended(rest.trim().parse().ok()?),
        "GUEST-BROKEN" => Mark::Broken(rest.to_owned()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks_of(text: &str) -> Vec<Mark> {
        let folder = tempfile::tempdir().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        follow(text.as_bytes(), &folder.path().join("log"), Instant::now(), &sender).unwrap();
        drop(sender);
        receiver.iter().collect()
    }

    #[test]
    fn marks_are_found_among_kernel_messages() {
        let text =
            "[    0.1] hello\r\nGUEST-INIT 6.1.0\r\n[    2.0] x: GUEST-CUE stop now\nGUEST-RC=7\n";
        assert_eq!(
            marks_of(text),
            [
                Mark::Init("6.1.0".into()),
                Mark::Cue("stop now".into()),
                Mark::Ended(7),
                Mark::Closed
            ]
        );
    }

    #[test]
    fn files_are_not_taken_for_marks() {
        let text = "GUEST-FILES-BEGIN\nTEFCLVJDPTA=\nGUEST-RC=1\nGUEST-FILES-END\nGUEST-RC=0\n";
        assert_eq!(
            marks_of(text),
            [
                Mark::File("TEFCLVJDPTA=".into()),
                Mark::File("GUEST-RC=1".into()),
                Mark::Ended(0),
                Mark::Closed
            ]
        );
    }

    #[test]
    fn a_line_without_end_and_a_flood_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let (sender, receiver) = std::sync::mpsc::channel();
        let flood = std::io::repeat(b'x').take(80 << 20);
        let end = "\nGUEST-RC=3\n";
        follow(flood.chain(end.as_bytes()), &log, Instant::now(), &sender).unwrap();
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [Mark::Ended(3), Mark::Closed]);
        let length = usize::try_from(log.metadata().unwrap().len()).unwrap();
        assert!((LOG_MAX..LOG_MAX + (1 << 20)).contains(&length), "{length}");
    }

    #[test]
    fn a_cut_or_foreign_line_is_no_mark() {
        assert_eq!(marks_of("GUEST-RC=\nGUEST-RCX\nGUEST-RC=zero\nLA"), [Mark::Closed]);
    }
}
