//! What a bisection found, in words that its text and its page share.

use rtproof_judge::units::{count, grouped};
use rtproof_results::kernel::bisect::{
    BisectedIn, BisectedOver, KernelBisected, StepOutcome, Suspect,
};

/// Digits of a commit or a digest that are shown.
pub(crate) const DIGITS: usize = 12;

/// What lengths are counted in.
pub(crate) const fn unit(of: &KernelBisected) -> &'static str {
    match of.booted_in {
        BisectedIn::Guest => "instructions",
        BisectedIn::Machine => "ns",
    }
}

/// The answer in one sentence.
pub(crate) fn sentence(of: &KernelBisected) -> String {
    match of.is_reproduced {
        Some(false) => format!(
            "Not reproduced, a second boot of the same kernel ended otherwise: {}",
            answer(of)
        ),
        _ => answer(of),
    }
}

fn answer(of: &KernelBisected) -> String {
    let number = of.suspects.len() as u64;
    let all = match of.over {
        BisectedOver::Commits => count(number, "commit"),
        BisectedOver::Options => count(number, "option"),
    };
    match (of.over, of.is_found, of.suspects.first()) {
        (BisectedOver::Commits, true, Some(Suspect::Commit { commit, subject, .. })) => {
            format!("The first bad commit is {}: {subject}", short(commit))
        }
        (BisectedOver::Commits, ..) => format!(
            "The first bad commit is one of {all}: those between could not be tested, so none is \
             named"
        ),
        (BisectedOver::Options, true, _) if number == 1 => {
            format!("The option that makes the difference is {}", names(of))
        }
        (BisectedOver::Options, true, _) => {
            format!("{all} make the difference together, and none of them alone: {}", names(of))
        }
        (BisectedOver::Options, false, _) => format!(
            "Among {all} is what makes the difference; without some of them it could not be \
             tested: {}",
            names(of)
        ),
    }
}

fn names(of: &KernelBisected) -> String {
    let name = |suspect: &Suspect| match suspect {
        Suspect::Option { option, .. } => {
            format!("{} ({} -> {})", option.name, option.values[0], option.values[1])
        }
        Suspect::Commit { commit, .. } => short(commit).to_owned(),
    };
    of.suspects.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The first digits of an id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}

/// How many steps ended in which way.
pub(crate) fn tally(of: &KernelBisected) -> String {
    let number =
        |outcome| of.steps.iter().filter(|step| step.outcome == outcome).count().to_string();
    format!(
        "{}: {} good, {} bad, {} skipped",
        count(of.steps.len() as u64, "step"),
        number(StepOutcome::Good),
        number(StepOutcome::Bad),
        number(StepOutcome::Skipped)
    )
}

/// The test and its limit in words.
pub(crate) fn test(of: &KernelBisected) -> String {
    match of.threshold {
        Some(limit) => format!("{} (limit {})", of.test, grouped(limit)),
        None => of.test.clone(),
    }
}
