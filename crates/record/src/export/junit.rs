//! JUnit XML, for CI: a case for the verdict and one for each thread. A late wake-up fails its
//! thread; what is unknown is skipped, with the reason.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_model::Answer;

use super::{
    ExportError, Exporter,
    series::{self, Series},
};
use crate::{Opened, SealState};

pub(super) const JUNIT: Exporter = Exporter {
    id: "junit",
    title: "JUnit XML for CI: a case for the verdict, one for each thread.",
    extension: "xml",
    tables: &[],
    write,
};

fn write(opened: &Opened, _: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut cases = vec![verdict(opened)];
    let budget_ns = opened.run.options.requirement.budget_ns;
    cases.extend(series::of(&opened.run).iter().map(|series| thread(series, budget_ns)));
    let failures = cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed(_))).count();
    let skipped = cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped(_))).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\"", cases.len());
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites name=\"rtproof run\" {counts}>")?;
    let id = &opened.run.meta.run_id;
    writeln!(out, "<testsuite name=\"{}\" {counts} skipped=\"{skipped}\" time=\"0\">", Xml(id))?;
    cases.iter().try_for_each(|case| case.write(out))?;
    writeln!(out, "</testsuite>\n</testsuites>")?;
    Ok(())
}

struct Case {
    name: String,
    outcome: Outcome,
    about: String,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Case {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "<testcase classname=\"rtproof.run\" name=\"{}\" time=\"0\">",
            Xml(&self.name)
        )?;
        match &self.outcome {
            Outcome::Passed => {}
            Outcome::Failed(why) => write!(out, "<failure message=\"{}\"/>", Xml(why))?,
            Outcome::Skipped(why) => write!(out, "<skipped message=\"{}\"/>", Xml(why))?,
        }
        writeln!(out, "<system-out>{}</system-out></testcase>", Xml(&self.about))
    }
}

/// The verdict as it was stored; a record that is not whole proves nothing.
fn verdict(opened: &Opened) -> Case {
    let stored = opened.judgement.as_ref();
    let about = stored.map_or(String::new(), |judgement| judgement.summary.clone());
    let verdict = stored.map(|judgement| &judgement.verdict);
    let sentence = verdict.map_or_else(|| about.clone(), |verdict| verdict.sentence.clone());
    let outcome = match (&opened.state, verdict.map(|verdict| verdict.answer)) {
        (SealState::Torn, _) => Outcome::Skipped("the record is torn".into()),
        (SealState::Altered { why }, _) => {
            Outcome::Failed(format!("the record was altered: {why}"))
        }
        (_, Some(Answer::Accepted)) => Outcome::Passed,
        (_, Some(Answer::Refused)) => Outcome::Failed(sentence),
        (_, Some(_)) => Outcome::Skipped(sentence),
        (_, None) => Outcome::Skipped("nothing was judged".into()),
    };
    Case { name: "verdict".into(), outcome, about }
}

fn thread(series: &Series, budget_ns: Option<u64>) -> Case {
    let ns = |ns: Option<u64>| ns.map_or("unknown".into(), |ns| format!("{ns} ns"));
    let missed = series.missed.map_or("unknown".into(), |n| n.to_string());
    let about = format!(
        "{} {}, from {} to {}, missed {missed}",
        series.n,
        series.kind.words(),
        ns(series.min_ns),
        ns(series.max_ns)
    );
    let outcome = match budget_ns {
        _ if series.n == 0 => Outcome::Skipped("no sample".into()),
        Some(budget_ns) if series.late > 0 => Outcome::Failed(format!(
            "{} wake-ups later than {budget_ns} ns, the latest sampled one {}",
            series.late,
            ns(series.max_ns)
        )),
        Some(_) => Outcome::Passed,
        None => Outcome::Skipped("no budget to judge by".into()),
    };
    let name = match series.cpu {
        Some(cpu) if series.tag.starts_with('t') => format!("CPU {cpu}"),
        _ => series.tag.clone(),
    };
    Case { name, outcome, about }
}

/// Text in XML: what it may not hold is left out (XML 1.0, section 2.2).
struct Xml<'a>(&'a str);

impl std::fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in harmless::text(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' | '\r' => write!(f, "&#{};", c as u32)?,
                ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'.. => write!(f, "{c}")?,
                _ => {}
            }
        }
        Ok(())
    }
}
