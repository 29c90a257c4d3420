//! Exit codes: what a script may rely on.

pub use rtproof_host::door::{UsageError, usage};

use std::{
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use serde::Serialize;

use rtproof_host::text;
use rtproof_judge::{Finding, Integrity, Report, Status, VerdictAnswer};
use rtproof_record::run::RunEnd;
use rtproof_render::{
    page::{Glyphs, Terminal},
    sarif::fails,
};
use rtproof_results::Ended;

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
         knob is open. `tune verify`: something is unknown; `tune status`, `tune undo`: applied, and \
         its journal is missing; `compare --fail-if-worse`, `run \
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
    let whole = report.run.ended == Some(RunEnd::Complete) && report.record == Integrity::Sealed;
    of_answer(report.verdict.answer, whole)
}

/// The same; `whole`: the run is complete, and its record sealed.
pub fn of_answer(answer: VerdictAnswer, whole: bool) -> u8 {
    match answer {
        VerdictAnswer::Accepted => ACCEPTED,
        VerdictAnswer::NotJudged if whole => ACCEPTED,
        VerdictAnswer::Refused => REFUSED,
        VerdictAnswer::NotProven | VerdictAnswer::NotJudged => NOT_PROVEN,
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

// Where answers go: stdout.

/// What `--quiet` keeps from stdout: printed at the end of a command without an answer block.
static HELD: Mutex<Held> = Mutex::new(Held::Texts(String::new()));

#[derive(Debug)]
enum Held {
    /// No answer block was printed so far.
    Texts(String),
    /// One was: all else is left out.
    Nothing,
}

/// Where text goes: stdout, unless JSON was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextOutput {
    json: bool,
}

impl TextOutput {
    /// Text, or nothing when JSON is to be printed.
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints text, unless JSON was asked for.
    pub(crate) fn print(
        self,
        show: impl FnOnce(&mut Terminal) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut sheet = Terminal::new(crate::width(), glyphs());
        show(&mut sheet)?;
        if !crate::is_quiet() {
            return write(&sheet.shown());
        }
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *held, sheet.answer()) {
            // The answer is printed once.
            (Held::Texts(_), Some(answer)) => {
                *held = Held::Nothing;
                write(&answer)
            }
            (Held::Texts(texts), None) => {
                texts.push_str(&sheet.shown());
                Ok(())
            }
            (Held::Nothing, _) => Ok(()),
        }
    }

    /// Prints JSON, if it was asked for.
    pub(crate) fn print_json(self, value: &impl Serialize) -> io::Result<()> {
        if !self.json {
            return Ok(());
        }
        let mut text = text::json(&serde_json::to_string_pretty(value)?);
        text.push('\n');
        let mut stdout = io::stdout().lock();
        ignore_broken_pipe(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
    }
}

/// Columns of a terminal, all of them; elsewhere those of text.
pub(crate) fn columns() -> u16 {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| size.ws_col).filter(|&columns| columns > 0).unwrap_or(120)
}

/// Prints what `--quiet` held back of a command that has no answer block: its output is the answer.
/// Also before a question, which is about what was printed.
pub fn print_held() -> io::Result<()> {
    match &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        Held::Texts(texts) if !texts.is_empty() => write(&std::mem::take(texts)),
        Held::Texts(_) | Held::Nothing => Ok(()),
    }
}

/// Prints bytes as they are: what another program reads.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    ignore_broken_pipe(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Writes text; colours go where they are wanted: a terminal, or as `--color` says.
fn write(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    ignore_broken_pipe(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// A closed pipe is no error: the work continues, and the exit code gives the verdict.
fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Characters that the terminal can show.
fn glyphs() -> Glyphs {
    match std::env::var_os("TERM") {
        Some(term) if term == "dumb" => Glyphs::ASCII,
        _ => Glyphs::BLOCKS,
    }
}

#[cfg(test)]
mod tests {
    use rtproof_judge::{VerdictAnswer, testing, verdict};
    use rtproof_record::{BudgetClass, Opened, SealState, run::Run};
    use rtproof_render::page::{self, Glyphs};
    use rtproof_stats::binomial::Random;

    use super::*;

    /// A run with some late seconds, some of which weaken it.
    fn random_run(random: &mut Random) -> Run {
        let seconds = 1 + random.below(300);
        let often = random.unit().powi(4);
        let mut row = |_| if random.unit() < often { 1 + random.below(1000) } else { 0 };
        let cpus: Vec<Vec<u64>> = (0..2).map(|_| (0..seconds).map(&mut row).collect()).collect();
        let classes =
            [BudgetClass::NinetyFive, BudgetClass::Hundred, BudgetClass::Safe, BudgetClass::Soft];
        let mut run = testing::of_rows(classes[random.below(4) as usize], &cpus);
        run.options.requirement.rate_per_1000h =
            [125, 60_000, 360_000, 9_000_000][random.below(4) as usize];
        if random.below(10) == 0 {
            run.options.requirement.budget_ns = None;
        }
        if random.below(6) == 0 {
            run.facts_end = None;
        }
        run
    }

    /// Every form of the answer says the same.
    #[test]
    fn text_page_json_junit_tap_and_exit_code_agree() {
        let mut random = Random::new(37);
        let mut seen = std::collections::BTreeMap::new();
        // All but the verdict of a report takes long, and has no part in this.
        let mut report = Report::new(&random_run(&mut random), &Integrity::Sealed);
        for round in 0..1000 {
            let run = random_run(&mut random);
            report.verdict = verdict::judge(&run, &[], &Integrity::Sealed);
            report.options = run.options.clone();
            let answer = report.verdict.answer;
            *seen.entry(answer.text()).or_insert(0) += 1;
            let mut to = Terminal::new(100, Glyphs::ASCII);
            page::verdict(&mut to, &report).expect("text");
            let text = to.shown();
            assert!(text.contains(answer.text()), "{text}");
            let json = serde_json::to_value(&report).expect("JSON");
            let is = serde_json::to_value(answer).expect("a word");
            assert_eq!(json["verdict"]["answer"], is);
            let code = match answer {
                VerdictAnswer::Accepted | VerdictAnswer::NotJudged => ACCEPTED,
                VerdictAnswer::Refused => REFUSED,
                VerdictAnswer::NotProven => NOT_PROVEN,
            };
            assert_eq!(of_report(&report), code);
            let opened = Opened {
                run: run.clone(),
                state: SealState::Sealed { digest: String::new() },
                judgement: Some(rtproof_run::prove::engine::judgement(&report)),
            };
            let exported = |format| {
                let mut text = Vec::new();
                rtproof_record::export::export(&opened, format, None, &mut text).expect(format);
                String::from_utf8(text).expect("text")
            };
            let (junit, tap) = (exported("junit"), exported("tap"));
            let (failed, skipped) = (junit.contains("<failure"), junit.contains("<skipped"));
            let want = match answer {
                VerdictAnswer::Accepted => (false, false),
                VerdictAnswer::Refused => (true, skipped),
                _ => (false, true),
            };
            assert_eq!((failed, skipped), want, "{answer:?}: {junit}");
            let has = |what| tap.lines().any(|line| line.starts_with(what));
            assert_eq!((has("not ok"), tap.contains(" # SKIP ")), want, "{answer:?}: {tap}");
            let points = tap.lines().filter(|l| l.starts_with("ok ") || l.starts_with("not ok "));
            assert_eq!(tap.lines().nth(1), Some(&*format!("1..{}", points.count())));
            // A page takes a hundred times as long.
            if round % 50 == 0 {
                let page = page::render(&run, &report, &page::Extra { banner: None, next: None });
                assert!(page.contains(&format!(
                    "data-answer=\"{}\"",
                    match answer {
                        VerdictAnswer::Accepted => "accepted",
                        VerdictAnswer::Refused => "refused",
                        VerdictAnswer::NotProven => "not-proven",
                        VerdictAnswer::NotJudged => "not-judged",
                    }
                )));
            }
        }
        assert!(seen.len() == 4 && seen.values().all(|&n| n >= 20), "{seen:?}");
    }
}
