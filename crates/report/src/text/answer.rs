//! The answer in a few lines: the result, why, what to do next.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_results::answer::{Answer, Tone};

use super::sheet::{BAD, BOLD, GOOD, Ink, Sheet, WARN, wrapped};
use super::verdict;

/// Lines of a screen: below more, the answer is repeated.
const SCREEN: usize = 24;

pub fn answer(to: &mut Sheet, answer: &Answer) -> io::Result<()> {
    to.in_answer(|to| block(to, answer))
}

fn block(to: &mut Sheet, answer: &Answer) -> io::Result<()> {
    let style = match answer.tone {
        Tone::Verdict(word) => {
            let sentence = answer.result.strip_prefix(word.text()).unwrap_or(&answer.result);
            verdict::line(to, word, sentence.trim_start())?;
            return why_and_next(to, answer);
        }
        Tone::Plain => Ink::PLAIN,
        Tone::Good => GOOD,
        Tone::Doubtful => WARN,
        Tone::Bad => BAD,
    };
    let text = format!("{style}{}{style:#}", answer.result);
    wrapped(to, &format!("{BOLD}Result{BOLD:#}   "), "         ", &text)?;
    why_and_next(to, answer)
}

fn why_and_next(to: &mut Sheet, answer: &Answer) -> io::Result<()> {
    if let Some(why) = &answer.why {
        wrapped(to, &format!("{BOLD}Why{BOLD:#}      "), "         ", why)?;
    }
    next(to, answer.next.as_deref())
}

/// Writes it again below what is longer than a screen.
pub fn answer_again(to: &mut Sheet, answer: &Answer) -> io::Result<()> {
    if to.lines() <= SCREEN {
        return Ok(());
    }
    writeln!(to)?;
    self::answer(to, answer)
}

/// What to do next.
pub fn next(to: &mut Sheet, command: Option<&str>) -> io::Result<()> {
    match command {
        // One line, however long: a break would end the command where it is pasted.
        Some(command) => writeln!(to, "{BOLD}Next{BOLD:#}     {}", harmless::line(command)),
        None => Ok(()),
    }
}
