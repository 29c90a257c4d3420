//! `rtproof compare`: runs side by side, of records and of files of other tools.

use std::path::{Path, PathBuf};

use anyhow::Context;

use rtproof_host::{door, door::Invalid};
use rtproof_judge::compare::{
    self, CompareAnswer, CompareRequest, Comparison, Group, Reference, Side,
};
use rtproof_render::{
    page,
    sections::compare::{ComparePage, GroupFigure},
};
use rtproof_run::{
    compare::{FileLoader, NamedFile, common_name, folder, short_names},
    parse,
};

use crate::exit::TextOutput;
use crate::{answers, exit};

/// Arguments of `compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Single runs are shown and never decide: what drifts between them is not excluded. Runs of two
conditions that alternate do, six pairs or more, better twelve in which a coin chose the order.

Examples:
  rtproof compare before.rtproof after.rtproof
  rtproof compare stock=stock.log rt=rt.log --html compare.html
  rtproof compare before.rtproof after.rtproof --html compare.html --align phase
  rtproof compare before.rtproof after.rtproof --reference machines/
  rtproof compare --a off-*.rtproof --b on-*.rtproof --fail-if-worse

Exit codes: 0 compared; with --fail-if-worse 2 for worse, 3 when it cannot be decided; 1 for files
that cannot be read; 64 for runs that are not alike.")]
pub struct Args {
    /// Runs: records or result files of other tools, each as FILE or NAME=FILE; the others are
    /// compared with the first
    #[arg(value_name = "FILE", required_unless_present = "a")]
    pub runs: Vec<PathBuf>,

    /// Runs of the one condition, to be paired by time with those of --b
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b", conflicts_with = "runs")]
    pub a: Vec<PathBuf>,

    /// Runs of the other condition
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a", conflicts_with = "runs")]
    pub b: Vec<PathBuf>,

    /// Names of the two conditions
    #[arg(long, value_name = "A,B", requires = "a", value_delimiter = ',', num_args = 1)]
    pub names: Vec<String>,

    /// Differences up to this share do not matter
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = margin)]
    pub margin: f64,

    /// Count wake-ups later than this; default: the budget of the runs
    #[arg(long, value_name = "TIME", value_parser = parse::budget)]
    pub budget: Option<u64>,

    /// Compare even runs of different machines, workloads, periods or budgets
    #[arg(long)]
    pub force: bool,

    /// Exit with 2 when worse is decided, with 3 when it cannot be decided
    #[arg(long)]
    pub fail_if_worse: bool,

    /// Write an HTML page with pictures there
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// On the page: let runs over time begin together, or their load phases of one name
    #[arg(long, value_name = "HOW", requires = "html", value_enum, default_value_t = Align::Start)]
    pub align: Align,

    /// Rank the machine among the runs in this folder, as far as they are like its own
    #[arg(long, value_name = "DIR")]
    pub reference: Option<PathBuf>,

    /// On the page: a picture of these runs alone, by name; may be given again
    #[arg(long, value_name = "NAME,NAME", requires = "html")]
    pub figure: Vec<String>,

    /// Format of files of other tools, where the content does not tell; a wrong name lists them
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,

    /// Period of the first thread in files of other tools that do not say it
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub interval: Option<u64>,

    /// How long they measured, where files of other tools do not say it
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub duration: Option<u64>,

    /// Unit of the values in files of other tools that do not say it, e.g. 1ns, 1us
    #[arg(long, value_name = "TIME", value_parser = parse::time)]
    pub unit: Option<u64>,

    /// Compare a record that was changed after it was sealed; it is marked as such
    #[arg(long)]
    pub accept_altered: bool,

    /// Print the comparison as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// How runs over time lie to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Align {
    /// The first wake-ups of all runs lie together.
    #[default]
    Start,
    /// Load phases of one name lie together.
    Phase,
}

/// A share in percent: `5%`, `2.5`.
fn margin(text: &str) -> Result<f64, Invalid> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage from 0 to 100, e.g. 5%".into()),
    }
}

/// Runs the command.
///
/// # Errors
/// Usage: one run alone, runs that are not alike, a name that is not there, a file of the
/// comparison as `--html`. Else a file that cannot be read.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    check(args)?;
    let (groups, banners) = load(args)?;
    let figures = figures(args, &groups)?;
    let request =
        CompareRequest { margin: args.margin, budget_ns: args.budget, ..CompareRequest::default() };
    let mut comparison = compare::compare_groups(&groups, &request);
    refuse(args, &comparison)?;
    comparison.reference = reference(args, &groups)?;
    let answer = answers::compare_answer(&comparison, &groups);
    let text = TextOutput::new(args.json);
    text.print(|to| {
        banners.iter().try_for_each(|banner| page::banner(to, Some(banner)))?;
        page::answer_text(to, &answer)?;
        page::comparison(to, &comparison)?;
        page::answer_again(to, &answer)
    })?;
    text.print_json(&answer.clone().with(&comparison))?;
    if let Some(path) = &args.html {
        let page = ComparePage {
            groups: &groups,
            comparison: &comparison,
            answer: &answer,
            banners,
            by_phase: args.align == Align::Phase,
            figures,
        };
        let html = page.render();
        door::write_whole(path, |to| Ok(to.write_all(html.as_bytes())?))
            .with_context(|| format!("{}: the page cannot be written", path.display()))?;
    }
    Ok(code(args, &comparison))
}

/// Exit code: a comparison decides nothing for a script that did not ask.
fn code(args: &Args, comparison: &Comparison) -> u8 {
    match comparison.answer {
        CompareAnswer::Worse if args.fail_if_worse => exit::REFUSED,
        CompareAnswer::CannotDecide if args.fail_if_worse => exit::NOT_PROVEN,
        _ => exit::ACCEPTED,
    }
}

/// Wrong words are found before anything is opened.
fn check(args: &Args) -> anyhow::Result<()> {
    if args.a.is_empty() && args.runs.len() < 2 {
        return Err(exit::usage(
            "compare needs two runs or more; to look at one: rtproof report FILE",
        ));
    }
    if !args.names.is_empty() && args.names.len() != 2 {
        return Err(exit::usage("--names takes two names, e.g. --names stock,rt"));
    }
    let Some(target) = &args.html else { return Ok(()) };
    let files = args.runs.iter().chain(&args.a).chain(&args.b);
    files
        .map(|path| NamedFile::of(path))
        .try_for_each(|named| door::check_target(&named.path, target))
}

/// Runs that are not alike are refused unless it was asked for.
fn refuse(args: &Args, comparison: &Comparison) -> anyhow::Result<()> {
    if args.force || comparison.mismatches.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = comparison.mismatches.iter().map(compare::Mismatch::text).collect();
    Err(exit::usage(format!(
        "these runs are not alike: {}. What differs between them says nothing of a change; to see \
         it all the same add --force",
        texts.join("; ")
    )))
}

type Loaded = (Vec<Group>, Vec<String>);

/// Rank of the first run of each condition among reference machines.
fn reference(args: &Args, groups: &[Group]) -> anyhow::Result<Vec<Reference>> {
    let Some(path) = &args.reference else { return Ok(Vec::new()) };
    // Options for the compared files do not apply to these.
    let (others, unread) = folder(&FileLoader::default(), path)?;
    let firsts = groups.iter().filter_map(|group| group.sides.first());
    Ok(firsts.map(|run| Reference::of(run, &others, &unread)).collect())
}

fn load(args: &Args) -> anyhow::Result<Loaded> {
    let loader = FileLoader {
        accept_altered: args.accept_altered,
        format: args.format.clone(),
        period_ns: args.interval,
        duration_ns: args.duration,
        unit_ns: args.unit,
    };
    let mut banners = Vec::new();
    let mut side = |path: &Path, label: &str| -> anyhow::Result<Side> {
        let (side, banner) = loader.side(path, label)?;
        banners.extend(banner.map(|banner| format!("{}: {banner}", path.display())));
        Ok(side)
    };
    if args.a.is_empty() {
        let named: Vec<NamedFile> = args.runs.iter().map(|path| NamedFile::of(path)).collect();
        let labels = labels(&named);
        let sides: anyhow::Result<Vec<Side>> =
            named.iter().zip(&labels).map(|(named, label)| side(&named.path, label)).collect();
        return Ok((sides?.into_iter().map(Group::single).collect(), banners));
    }
    let mut groups = Vec::new();
    for (label, files) in group_names(args).into_iter().zip([&args.a, &args.b]) {
        let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let labels = short_names(&paths);
        let sides: anyhow::Result<Vec<Side>> =
            paths.iter().zip(&labels).map(|(path, label)| side(path, label)).collect();
        groups.push(Group { label, sides: sides? });
    }
    Ok((groups, banners))
}

/// The names given, and short ones for the others.
fn labels(named: &[NamedFile]) -> Vec<String> {
    let paths: Vec<&Path> =
        named.iter().filter(|n| n.name.is_none()).map(|named| named.path.as_path()).collect();
    let mut short = short_names(&paths).into_iter();
    let label = |named: &NamedFile| named.name.clone().or_else(|| short.next()).unwrap_or_default();
    named.iter().map(label).collect()
}

/// Names of the two conditions: as given, as their files, else A and B.
fn group_names(args: &Args) -> [String; 2] {
    if let [a, b] = args.names.as_slice() {
        return [a.clone(), b.clone()];
    }
    let of =
        |files: &[PathBuf]| common_name(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    match (of(&args.a), of(&args.b)) {
        (Some(a), Some(b)) if a != b => [a, b],
        _ => ["A".into(), "B".into()],
    }
}

/// The pictures asked for: numbers of groups.
fn figures(args: &Args, groups: &[Group]) -> anyhow::Result<Vec<GroupFigure>> {
    let number = |name: &str| {
        let name = name.trim();
        groups.iter().position(|group| group.label == name).ok_or_else(|| {
            let known: Vec<&str> = groups.iter().map(|group| group.label.as_str()).collect();
            exit::usage(format!("--figure {name}: no such run; there are {}", known.join(", ")))
        })
    };
    args.figure
        .iter()
        .map(|names| {
            Ok(GroupFigure { groups: names.split(',').map(number).collect::<Result<_, _>>()? })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_percent() {
        assert_eq!((margin("5%"), margin("2.5"), margin("0")), (Ok(0.05), Ok(0.025), Ok(0.0)));
        for wrong in ["", "%", "-1%", "101", "x", "nan", "inf"] {
            assert!(margin(wrong).is_err(), "{wrong}");
        }
    }
}
