//! Exit codes: what a script may rely on.

use rtproof_judge::{Answer, Finding, Report, Standing, Status};
use rtproof_record::run::RunEnd;
use rtproof_report::junit::fails;
use rtproof_results::Ended;

pub use rtproof_run::usage::{Usage, usage};

/// Accepted, or done where nothing was to be judged.
pub const ACCEPTED: u8 = 0;
pub const FAILED: u8 = 1;
/// The machine failed: refused, or bad findings.
pub const REFUSED: u8 = 2;
/// Cannot tell: not proven, or unknown.
pub const NOT_PROVEN: u8 = 3;
/// The command line is wrong (`EX_USAGE` of sysexits.h), so that 2 stays the verdict's.
pub const USAGE: u8 = 64;

/// `run`: the program was not started, or not all was undone (as `env` and `timeout` have it).
pub const NOT_STARTED: u8 = 125;
/// `run`: the program cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// `run`: there is no such program.
pub const NOT_FOUND: u8 = 127;

/// Every exit code: number, name, meaning.
pub const CODES: &[(u8, &str, &str)] = &[
    (
        ACCEPTED,
        "accepted",
        "`prove`: accepted, or measured with no budget to judge; `check`: no bad finding; `tune \
         verify`: all as requested; else done",
    ),
    (
        FAILED,
        "failed",
        "rtproof itself failed: an unwritable record, a full disk, an unreadable file; `tune`: \
         refused, or a change could not be made and all were undone",
    ),
    (
        REFUSED,
        "refused",
        "the machine failed: `prove` refused it, `check` has bad findings; `tune`: something is \
         not as it was applied, or was left alone; `compare --fail-if-worse`: worse. `run \
         --budget`: exceeded; `run --rules`: broken",
    ),
    (
        NOT_PROVEN,
        "not proven",
        "cannot tell. `prove`: measured too little, or without the rights; `check`: could not read \
         what it needs. `measure`: cells are missing, or not all of their load worked; `experiment`: a \
         knob is open. `tune verify`: something is unknown; `compare --fail-if-worse`, `run \
         --budget`, `run --rules`: it cannot be decided",
    ),
    (USAGE, "usage", "the command line is wrong; nothing was done"),
    (
        NOT_STARTED,
        "not started",
        "`run`: the program was not started, or not all was undone; else `run` has the exit status \
         of its program, 128 + N where signal N ended it",
    ),
    (NOT_EXECUTABLE, "not executable", "`run`: the program cannot be executed"),
    (NOT_FOUND, "not found", "`run`: there is no such program"),
];

/// Exit code of a judged run. One that was cut short is not done, even where nothing is judged.
pub fn of_report(report: &Report) -> u8 {
    let whole = report.run.ended == Some(RunEnd::Complete) && report.record == Standing::Sealed;
    of_answer(report.verdict.answer, whole)
}

/// The same; `whole`: the run is complete, and its record sealed.
pub fn of_answer(answer: Answer, whole: bool) -> u8 {
    match answer {
        Answer::Accepted => ACCEPTED,
        Answer::NotJudged if whole => ACCEPTED,
        Answer::Refused => REFUSED,
        Answer::NotProven | Answer::NotJudged => NOT_PROVEN,
    }
}

/// Exit code of an audit.
pub fn of_findings(findings: &[Finding]) -> u8 {
    let counts = |finding: &&Finding| finding.skipped.is_none();
    let any = |status| findings.iter().filter(counts).any(|finding| finding.status == status);
    match () {
        () if any(Status::Bad) => REFUSED,
        () if any(Status::Unknown) => NOT_PROVEN,
        () => ACCEPTED,
    }
}

/// From which status on an audit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// Bad findings.
    Bad,
    /// Bad and doubtful ones.
    Doubtful,
    /// Bad, doubtful and unknown ones.
    Unknown,
    /// Never.
    Never,
}

impl FailOn {
    /// The status; `None`: never.
    pub const fn status(self) -> Option<Status> {
        match self {
            Self::Bad => Some(Status::Bad),
            Self::Doubtful => Some(Status::Doubtful),
            Self::Unknown => Some(Status::Unknown),
            Self::Never => None,
        }
    }

    /// Exit code of an audit.
    pub fn exit(self, findings: &[Finding]) -> u8 {
        if findings.iter().any(|finding| fails(finding, self.status())) {
            REFUSED
        } else {
            ACCEPTED
        }
    }
}

/// Exit code of work that ended.
pub const fn of(ended: Ended) -> u8 {
    match ended {
        Ended::Done => ACCEPTED,
        Ended::ToolFailed => FAILED,
        Ended::MachineFailed => REFUSED,
        Ended::CannotTell => NOT_PROVEN,
    }
}
