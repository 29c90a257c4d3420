//! `rtproof prove`: check, measure under load, judge, record, report.

use std::path::PathBuf;

use clap::ValueEnum;

use rtproof_host::{Facts, Root, door::usage};
use rtproof_judge::{Intent, Report, checks};
use rtproof_measure::{clock::Clock, loads::LoadSet};
use rtproof_record::{BudgetClass, Requirement, Start};
use rtproof_results::Answer;
use rtproof_run::{
    parse,
    prove::{self, NoSwitcher, Output, Request},
};

use crate::exit::TextOutput;
use crate::show::CellDisplay;
use crate::{IntentArgs, exit, next};

/// Arguments of `prove`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof prove --for 20s --budget 100us
  rtproof prove --for 24h --budget 50us --cpus 2-3 --load cpu+memory+net
  rtproof prove --budget 250us --period 250us --load 'stress-ng:--vm 2 --hdd 1'

Without real-time rights it still measures and says so; nothing is tuned. The record \
(*.rtproof) holds everything that was measured; the report (*.html) opens in any browser.")]
pub struct Args {
    /// Duration of the measurement, e.g. 20s, 10m, 24h; default: 60s, or what --samples takes
    #[arg(long = "for", value_name = "TIME", value_parser = parse::run_duration)]
    pub duration_ns: Option<u64>,

    /// Measure as long as it takes to prove what is asked for, if no wake-up is late: 26 h under
    /// load for the default --max-rate, 2:39 for --class 95
    #[arg(long, conflicts_with_all = ["duration_ns", "samples"])]
    pub to_prove: bool,

    /// End after N wake-ups due on each CPU, under all loads together, or after --for if that comes
    /// first. 5000 at 1 ms are 5 s: too few for the default --max-rate
    #[arg(long, value_name = "N", value_parser = parse::samples)]
    pub samples: Option<u64>,

    /// Latency budget of a wake-up, e.g. 100us; without it nothing is judged
    #[arg(long = "budget", value_name = "TIME", value_parser = parse::budget)]
    pub budget_ns: Option<u64>,

    /// How they are judged.
    #[command(flatten)]
    pub judged: JudgedArgs,

    /// CPUs to measure, e.g. 2-3,6; default: the isolated CPUs if there are any, else all
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,

    /// Profile and checks left out.
    #[command(flatten)]
    pub intent: IntentArgs,

    /// Real-time priority of the measured threads (SCHED_FIFO), 1 to 99; default: 80
    #[arg(long, value_name = "N", value_parser = parse::priority)]
    pub priority: Option<u32>,

    /// Policy of the measured threads
    #[arg(long, value_enum, default_value_t = PolicyArg::Fifo)]
    pub policy: PolicyArg,

    /// Period of the wake-ups, 5us to 10s; default: 1ms
    #[arg(long = "period", value_name = "TIME", value_parser = parse::period)]
    pub period_ns: Option<u64>,

    /// Wake the CPUs one after the other over the period, or all at once
    #[arg(long, value_enum, default_value_t = StartArg::Staggered)]
    pub start: StartArg,

    /// Load while measuring: idle, or cpu, memory, net, ping, traffic:IFACE:PEER, disk, files,
    /// fork, messages, compile joined by +, or s0 to s4 (docs/reference/loads.md), or
    /// stress-ng:ARGS, or cmd:COMMAND. Default: a third idle, then cpu+memory+net+disk
    #[arg(long, value_name = "LOAD", value_parser = LoadSet::from_command_line)]
    pub load: Option<LoadSet>,

    /// CPUs the load runs on; default: all that are not isolated
    #[arg(long, value_name = "LIST")]
    pub load_cpus: Option<String>,

    /// Folder for the files of the loads (removed again); default: where the record is
    #[arg(long, value_name = "DIR")]
    pub load_dir: Option<PathBuf>,

    /// Clock to wait for and read: monotonic, realtime, boottime, tai (docs/measure.md)
    #[arg(long, value_name = "CLOCK", value_parser = parse::clock, default_value = "monotonic")]
    pub clock: Clock,

    /// Hold /dev/cpu_dma_latency at US microseconds; default: not touched
    #[arg(long = "dma-latency", value_name = "US")]
    pub dma_latency_us: Option<u32>,

    /// Wake-ups later than this are spikes, which are explained; default: the budget, and without
    /// one a threshold that follows the machine
    #[arg(long = "spike", value_name = "TIME", value_parser = parse::spike)]
    pub spike_ns: Option<u64>,

    /// Do not record kernel events: spikes are counted, not explained
    #[arg(long)]
    pub no_trace: bool,

    /// Keep each single sample, in a file .samples.csv beside the record
    #[arg(long)]
    pub keep_samples: bool,

    /// Where record and report go: a folder, or a file name without extension
    #[arg(short, long, value_name = "PATH", default_value = ".")]
    pub output: PathBuf,

    /// Print a row a second of each thread, on stdout, in place of the progress line
    #[arg(long, conflicts_with = "json")]
    pub rows: bool,

    /// Print the report as JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// How late wake-ups are judged.
#[derive(Clone, Debug, clap::Args)]
pub struct JudgedArgs {
    /// How late wake-ups count: soft, 95 (fewer than 1 in 20 late), 100 (late episodes rarer than
    /// --max-rate), safe (life-critical)
    #[arg(long, value_enum, default_value_t = ClassArg::Hundred)]
    pub class: ClassArg,

    /// Confidence of the verdict, percent
    #[arg(
        long = "confidence",
        value_name = "PERCENT",
        default_value = "95",
        value_parser = parse::confidence
    )]
    pub confidence_ppm: u32,

    /// Class 100: highest acceptable rate of late episodes, e.g. 1/h, at most 360/h; proving 3/day
    /// needs 26 h without one
    #[arg(
        long = "max-rate",
        value_name = "RATE",
        default_value = "3/day",
        value_parser = parse::rate
    )]
    pub rate_per_1000h: u64,

    /// Class 95: stretches of late wake-ups to allow for, e.g. 1s (takes 276 times as long);
    /// default: as long as the run can tell
    #[arg(long = "episode", value_name = "TIME", value_parser = parse::episode)]
    pub episode_ns: Option<u64>,
}

impl JudgedArgs {
    pub fn requirement(&self, budget_ns: Option<u64>) -> Requirement {
        Requirement {
            budget_ns,
            class: self.class.into(),
            confidence_ppm: self.confidence_ppm,
            rate_per_1000h: self.rate_per_1000h,
            episode_ns: self.episode_ns,
        }
    }
}

/// `--class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClassArg {
    /// Quantiles only.
    Soft,
    /// Fewer than 1 in 20 late.
    #[value(name = "95")]
    NinetyFive,
    /// Late episodes rarer than the rate asked for.
    #[value(name = "100")]
    Hundred,
    /// Life-critical.
    Safe,
}

impl From<ClassArg> for BudgetClass {
    fn from(class: ClassArg) -> Self {
        match class {
            ClassArg::Soft => Self::Soft,
            ClassArg::NinetyFive => Self::NinetyFive,
            ClassArg::Hundred => Self::Hundred,
            ClassArg::Safe => Self::Safe,
        }
    }
}

/// `--policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_OTHER.
    Other,
}

/// `--start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StartArg {
    /// One after the other over the period.
    Staggered,
    /// All at once.
    Aligned,
}

impl From<StartArg> for Start {
    fn from(start: StartArg) -> Self {
        match start {
            StartArg::Staggered => Self::Staggered,
            StartArg::Aligned => Self::Aligned,
        }
    }
}

impl Args {
    pub fn request(&self) -> Request {
        Request {
            duration_ns: self.duration_ns,
            samples: self.samples,
            budget_ns: self.budget_ns,
            class: self.judged.class.into(),
            confidence_ppm: self.judged.confidence_ppm,
            rate_per_1000h: self.judged.rate_per_1000h,
            episode_ns: self.judged.episode_ns,
            to_prove: self.to_prove,
            cpus: self.cpus.clone(),
            intent: self.intent.requested(),
            priority: self.priority,
            is_real_time: self.policy == PolicyArg::Fifo,
            period_ns: self.period_ns,
            start: self.start.into(),
            load: self.load.clone(),
            load_cpus: self.load_cpus.clone(),
            load_dir: self.load_dir.clone(),
            clock: self.clock,
            dma_latency_us: self.dma_latency_us,
            spike_ns: self.spike_ns,
            trace: !self.no_trace,
            output: self.output.clone(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong arguments (usage), an output that cannot be written, threads that cannot run.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    if args.rows && crate::is_quiet() {
        // Not clap's: `experiment boots` reads these options without those of the program.
        return Err(usage("--rows with --quiet: rows are what is left out; give one of both"));
    }
    let root = Root::live();
    let facts = Facts::read(&root);
    let request = args.request();
    let options = prove::resolve_options(&request, &facts)?;
    let can_prove = prove::can_prove(&options)?;
    let mut output = Output::choose(&args.output, &facts)?;
    if args.keep_samples {
        output = output.keeping_samples()?;
    }
    let text = TextOutput::new(args.json);
    let findings = checks::judge_all(&facts, &Intent::of(&options, &facts));
    text.print(|to| {
        rtproof_render::page::machine_head(
            to,
            &rtproof_judge::report::MachineSummary::of(&facts),
            &findings,
        )
    })?;
    if let Some(text) = can_prove.filter(|_| !crate::is_quiet()) {
        // Not of the answer: a closed stderr must not end a run.
        let _ = crate::stderr_line(&text);
    }

    let load_dir = request.load_dir.as_deref();
    let (mut switcher, mut now) = (NoSwitcher, CellDisplay::of_one(options.duration_ns, args.rows));
    let observer = now.observer();
    let finished =
        prove::measure(&root, facts, &options, load_dir, &output, &mut switcher, observer);
    now.end();
    let finished = finished?;
    let report = Report::new(&finished.run, &finished.integrity());
    let sealed = finished.seal(&report)?;
    let next = next::of_report(&report, &output.record);
    let html = crate::write_html(&output.html, &sealed.run, &report, None, next.as_deref());
    let answer = Answer::of_report(&report, next);
    text.print(|to| {
        rtproof_render::page::answer_text(to, &answer)?;
        rtproof_render::page::measured(to, &report)?;
        if crate::is_verbose() {
            rtproof_render::page::distribution(to, &report)?;
            rtproof_render::page::moving(to, &report, false)?;
        }
        rtproof_render::page::spikes_of(to, &sealed.run, &report)?;
        rtproof_render::page::verdict(to, &report)?;
        rtproof_render::page::file_list(
            to,
            &output.record,
            &output.html,
            sealed.failure.is_none(),
            html.is_ok(),
        )?;
        rtproof_render::page::next_text(to, answer.next.as_deref())
    })?;
    text.print_json(&answer.with(&report))?;
    // The measurement is reported; now what failed with the evidence.
    match (sealed.failure, html) {
        (Some(failure), Err(html)) => anyhow::bail!("{failure:#}; {html:#}"),
        (Some(failure), Ok(())) => return Err(failure),
        (None, html) => html?,
    }
    Ok(exit::of_report(&report))
}
