//! `rtproof watch`: the machine live, with the latencies of a run or an application and the cause
//! of each spike.

mod screen;

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui_core::layout::Rect;
use screen::SECOND;

use rtproof_host::{CpuList, Facts, Root, facts::tasks::Policy, text};
use rtproof_render::screen::{Panel, ScreenPage, ScreenStyle, ScreenView, TypedInput};
use rtproof_results::{
    measure::Common,
    watch::{WatchFrame, WatchSourceKind},
};
use rtproof_run::{
    explain::ProcessTarget,
    measure::{self, Block, WorkloadChoice, cells, matrix::default_block},
    parse,
    prove::{self, Output, Signals},
    watch::{LatencySource, MeasuringRun, Watch},
};

use super::prove::StartArg;
use crate::exit;

/// A run without `--for` ends when the user does; this bounds its options.
const ENDLESS_NS: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// Longest wait of `--once` for something that was measured.
const ONCE_MAX: Duration = Duration::from_secs(20);

type Choices = Vec<WorkloadChoice>;

/// Arguments of `watch`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  rtproof watch
  rtproof watch --measure --cpus 1 --budget 100us
  rtproof watch --record prove-pi5-20261121T020304.rtproof
  rtproof watch --pid 4711 --over 200us
  rtproof watch --rows --for 60s
  rtproof watch --once

Without a source nothing is measured, and no CPU is interrupted for what is shown. Press ? for the \
keys. What watch switches on (kernel events, loads, threads) ends with it.")]
pub struct Args {
    /// Measure: threads, recorder and record as in rtproof measure
    #[arg(long, group = "source")]
    pub measure: bool,

    /// Follow a running prove or measure by its record
    #[arg(long, value_name = "FILE", group = "source")]
    pub record: Option<PathBuf>,

    /// Observe all threads of a running process
    #[arg(long, value_name = "PID", group = "source")]
    pub pid: Option<u32>,

    /// Observe all running threads of this name
    #[arg(long, value_name = "NAME", group = "source")]
    pub comm: Option<String>,

    /// Explain wake-ups of an application that are later than this
    #[arg(
        long = "over",
        value_name = "TIME",
        default_value = "100us",
        value_parser = parse::budget
    )]
    pub over_ns: u64,

    /// Print a line for each CPU or thread a second instead of the screen, until Ctrl-C
    #[arg(long, conflicts_with_all = ["json", "once"])]
    pub rows: bool,

    /// Print a line of JSON a second instead of the screen
    #[arg(long)]
    pub json: bool,

    /// Print one frame as text and end
    #[arg(long)]
    pub once: bool,

    /// End after this time, e.g. 60s; default: when you quit
    #[arg(long = "for", value_name = "TIME", value_parser = parse::run_duration)]
    pub duration_ns: Option<u64>,

    /// Read idle residency from hardware counters (Intel, the msr module, root). Each reading
    /// interrupts its CPU: isolated and measured CPUs are left out
    #[arg(long)]
    pub msr: bool,

    /// With --measure: what the threads do (docs/workloads.md); NAME, or NAME@CPUS,NAME@CPUS.
    /// Default: timer-wakeup
    #[arg(
        long,
        value_name = "NAME[@CPUS]",
        value_parser = measure::workloads,
        requires = "measure"
    )]
    pub workload: Option<Choices>,

    /// With --measure: CPUs to measure; default: the isolated CPUs if there are any, else all
    #[arg(long, value_name = "LIST", requires = "measure")]
    pub cpus: Option<String>,

    /// With --measure: policy: other, fifo, rr, deadline; default: fifo
    #[arg(long, value_name = "POLICY", value_parser = measure::policy, requires = "measure")]
    pub policy: Option<Policy>,

    /// With --measure: priority of fifo and rr; default: 80
    #[arg(long, value_name = "N", value_parser = parse::priority, requires = "measure")]
    pub priority: Option<u32>,

    /// With --measure: period, 5us to 10s; default: 1ms
    #[arg(
        long = "period",
        value_name = "TIME",
        value_parser = parse::period,
        requires = "measure"
    )]
    pub period_ns: Option<u64>,

    /// With --measure: load from the start on, as in prove; key l switches it. Default: idle, and l
    /// starts cpu+memory+net+disk
    #[arg(long, value_name = "LOAD", value_parser = measure::load, requires = "measure")]
    pub load: Option<String>,

    /// With --measure: CPUs the load runs on; default: all that are not isolated
    #[arg(long, value_name = "LIST", requires = "measure")]
    pub load_cpus: Option<String>,

    /// With --measure: folder for the files of the disk load; default: that of the record
    #[arg(long, value_name = "DIR", requires = "measure")]
    pub load_dir: Option<PathBuf>,

    /// With --measure: latency above which a wake-up is late
    #[arg(
        long = "budget",
        value_name = "TIME",
        value_parser = parse::budget,
        requires = "measure"
    )]
    pub budget_ns: Option<u64>,

    /// With --measure: wake-ups above this are spikes; default: the budget, and without one a
    /// threshold that follows the machine
    #[arg(
        long = "spike",
        value_name = "TIME",
        value_parser = parse::spike,
        requires = "measure"
    )]
    pub spike_ns: Option<u64>,

    /// With --measure: do not record kernel events: spikes are counted, not explained
    #[arg(long, requires = "measure")]
    pub no_trace: bool,

    /// With --measure: wake the CPUs one after the other over the period, or all at once
    #[arg(long, value_enum, requires = "measure")]
    pub start: Option<StartArg>,

    /// With --measure: hold /dev/cpu_dma_latency at US microseconds; default: not touched
    #[arg(long = "dma-latency", value_name = "US", requires = "measure")]
    pub dma_latency_us: Option<u32>,

    /// With --measure: folder or name of the record; default: watch-HOST-TIME.rtproof here
    #[arg(
        short,
        long,
        value_name = "PATH",
        value_parser = NonEmptyStringValueParser::new(),
        requires = "measure"
    )]
    pub output: Option<String>,
}

/// Runs the command. 0: shown until the user, the time or the run ended it.
///
/// # Errors
/// No terminal, wrong arguments (usage); those of the source.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let is_screen = !(args.rows || args.json || args.once);
    if is_screen && !is_terminal() {
        return Err(exit::usage(
            "stdout is no terminal that a screen can be drawn on: use --rows for a line a second, \
             --json for the same as JSON, --once for one frame as text",
        ));
    }
    let root = Root::live();
    let facts = Facts::read(&root);
    let from = args.from(&facts)?;
    let signals = Signals::catch(&root).context("cannot catch signals")?;
    let mut watch = Watch::start(&root, &facts, from, args.msr, &signals)?;
    // A run of our own ends by itself, when it has measured for so long.
    let duration_ns = args.duration_ns.filter(|_| !args.measure);
    let end = duration_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
    let shown = match () {
        () if is_screen => {
            screen::run_terminal(&mut watch, &signals, end, screen_style(), args.measure)
        }
        () if args.once => once(&mut watch, &signals, args.json),
        () => screen::run_rows(&mut watch, &signals, end, args.json),
    };
    // A started source is ended, even if showing it failed.
    let finished = watch.finish();
    shown?;
    if let Some(finished) = finished? {
        let record = finished.record.display().to_string();
        crate::stderr_line(&format!("record {record}; see it with rtproof report {record}"))?;
        if let Some(failure) = finished.failure {
            return Err(failure);
        }
    }
    Ok(exit::ACCEPTED)
}

impl Args {
    fn from(&self, facts: &Facts) -> anyhow::Result<LatencySource> {
        if let Some(path) = &self.record {
            return Ok(LatencySource::Record(path.clone()));
        }
        match (self.pid, &self.comm) {
            (Some(pid), _) => {
                return Ok(LatencySource::Application(ProcessTarget::Process(pid), self.over_ns));
            }
            (_, Some(name)) => {
                return Ok(LatencySource::Application(
                    ProcessTarget::Named(name.clone()),
                    self.over_ns,
                ));
            }
            (None, None) => {}
        }
        if self.measure {
            Ok(LatencySource::Run(Box::new(self.measured(facts)?)))
        } else {
            Ok(LatencySource::Nothing)
        }
    }

    /// The run: one cell of `measure`.
    fn measured(&self, facts: &Facts) -> anyhow::Result<MeasuringRun> {
        let base = default_block();
        let block = Block {
            workloads: self.workload.clone().unwrap_or(base.workloads),
            cpus: self.cpus.clone(),
            policies: self.policy.map_or(base.policies, |policy| vec![policy]),
            priorities: self.priority.map_or(base.priorities, |priority| vec![priority]),
            periods_ns: self.period_ns.map_or(base.periods_ns, |period_ns| vec![period_ns]),
            loads: self.load.as_ref().map_or(base.loads, |load| vec![load.clone()]),
            duration_ns: Some(self.duration_ns.unwrap_or(ENDLESS_NS)),
            ..default_block()
        };
        let common = Common {
            budget_ns: self.budget_ns,
            spike_ns: self.spike_ns,
            trace: !self.no_trace,
            is_aligned: self.start == Some(StartArg::Aligned),
            clock: rtproof_measure::clock::Clock::Monotonic,
            keep_samples: false,
            dma_latency_us: self.dma_latency_us,
            load_cpus: self.load_cpus.clone(),
            load_dir: self.load_dir.clone(),
        };
        let plan = cells::plan(&[block], Vec::new(), common, facts)?;
        let [cell] = &plan.cells[..] else {
            return Err(exit::usage(
                "--workload: name one for all CPUs, or one for each as NAME@CPU,NAME@CPU: watch \
                 measures one cell; rtproof measure takes lists",
            ));
        };
        Ok(MeasuringRun {
            options: cells::options(cell, &plan.common, facts)?,
            workloads: cell.workloads.clone(),
            load_dir: self.load_dir.clone(),
            output: self.output(facts)?,
        })
    }

    fn output(&self, facts: &Facts) -> anyhow::Result<Output> {
        let path = Path::new(self.output.as_deref().unwrap_or("."));
        let named = path.is_dir().then(|| path.join(prove::default_name("watch", facts)));
        // A host name may have dots: what follows them is no extension.
        let named = named.map(|mut path| {
            path.as_mut_os_string().push(".rtproof");
            path
        });
        Output::choose(named.as_deref().unwrap_or(path), facts)
    }
}

/// One frame as text or JSON; of a measurement the first that has samples.
fn once(watch: &mut Watch, signals: &Signals, json: bool) -> anyhow::Result<()> {
    let start = Instant::now();
    let frame = loop {
        std::thread::sleep(SECOND);
        let frame = watch.frame();
        let is_waiting = frame.source.kind != WatchSourceKind::Passive
            && frame.latencies.iter().all(|latency| latency.n == 0);
        let is_over = watch.is_over() || signals.received().is_some() || start.elapsed() > ONCE_MAX;
        if !is_waiting || is_over {
            break frame;
        }
    };
    let text = match json {
        true => text::json(&serde_json::to_string(&frame)?) + "\n",
        false => rtproof_render::screen::once(&frame, exit::columns(), screen_style()),
    };
    Ok(exit::print_bytes(text.as_bytes())?)
}

/// Whether a screen can be drawn: a terminal on both sides that knows where its cursor is.
fn is_terminal() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    std::io::stdout().is_terminal() && !is_dumb
}

/// What the terminal can show: by NO_COLOR (<https://no-color.org>) and by the locale.
fn screen_style() -> ScreenStyle {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    ScreenStyle {
        colours: set("NO_COLOR").is_none(),
        unicode: locale.contains("utf-8") || locale.contains("utf8"),
    }
}

// What keys and the mouse do.

/// Letters of a note or a list, at most.
const TYPED_MAX: usize = 200;

/// Rows that a turn of the wheel moves.
const WHEEL: isize = 3;

/// What the loop has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyAction {
    Nothing,
    Redraw,
    Quit,
    Suspend,
}

fn key(
    key: KeyEvent,
    watch: &mut Watch,
    frame: &WatchFrame,
    view: &mut ScreenView,
    look: ScreenStyle,
    area: (u16, u16),
) -> KeyAction {
    if key.kind == KeyEventKind::Release {
        return KeyAction::Nothing;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => KeyAction::Quit,
            KeyCode::Char('z') => KeyAction::Suspend,
            KeyCode::Char('l') => KeyAction::Redraw,
            _ => KeyAction::Nothing,
        };
    }
    view.message = None;
    if let Some(input) = view.input.take() {
        typed(input, key.code, watch, view);
        return KeyAction::Nothing;
    }
    let page = isize::try_from(area.1 / 2).unwrap_or(10);
    match key.code {
        KeyCode::Char('q') => return KeyAction::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => turn(view, ScreenPage::Help),
        KeyCode::Esc | KeyCode::Backspace => back(view),
        KeyCode::Up | KeyCode::Char('k') => view.step(frame, -1),
        KeyCode::Down | KeyCode::Char('j') => view.step(frame, 1),
        KeyCode::PageUp => view.step(frame, -page),
        KeyCode::PageDown => view.step(frame, page),
        KeyCode::Home => view.home(frame),
        KeyCode::End => view.step(frame, 9_000),
        _ if view.page != ScreenPage::Main => {}
        KeyCode::Tab => view.next_panel(frame, true),
        KeyCode::BackTab => view.next_panel(frame, false),
        KeyCode::Char('>') | KeyCode::Right | KeyCode::F(6) => view.sort(true),
        KeyCode::Char('<') | KeyCode::Left => view.sort(false),
        KeyCode::Char(' ') => view.frozen = !view.frozen,
        KeyCode::Char('r') => view.message = Some(watch.reset()),
        KeyCode::Char('/' | 'c') => view.input = Some(TypedInput::Filter(String::new())),
        KeyCode::Char('l') => view.message = Some(watch.switch_load()),
        KeyCode::Char('m') => view.input = Some(TypedInput::Mark(String::new())),
        KeyCode::Char('s') => view.message = Some(watch.record()),
        KeyCode::Enter => enter(watch, frame, view, look, area),
        _ => {}
    }
    KeyAction::Nothing
}

fn turn(view: &mut ScreenView, page: ScreenPage) {
    view.scroll = 0;
    view.page = if view.page == page { ScreenPage::Main } else { page };
}

fn back(view: &mut ScreenView) {
    view.scroll = 0;
    if view.page == ScreenPage::Main {
        view.filter = None;
    }
    view.page = ScreenPage::Main;
}

/// Opens what is chosen.
fn enter(
    watch: &Watch,
    frame: &WatchFrame,
    view: &mut ScreenView,
    look: ScreenStyle,
    area: (u16, u16),
) {
    let row = view.row(frame, view.panel);
    match view.panel {
        Panel::Spikes => {
            let Some(&spike) = view.spikes(frame).get(row) else { return };
            match watch.picture(spike.thread, spike.due_ns) {
                Ok(picture) => {
                    let window = picture.window.as_ref();
                    let lines =
                        rtproof_render::screen::picture(&picture.explanation, window, area.0, look);
                    turn(view, ScreenPage::Picture(lines));
                }
                Err(why) => view.message = Some(why),
            }
        }
        Panel::Cpus | Panel::Latency => {
            let cpu = view.chosen_cpu(frame);
            view.filter = match view.filter {
                None => cpu.map(|cpu| CpuList::new([cpu])),
                Some(_) => None,
            };
        }
        Panel::Tasks => {}
    }
}

/// A letter of what is being typed.
fn typed(input: TypedInput, code: KeyCode, watch: &mut Watch, view: &mut ScreenView) {
    let (TypedInput::Filter(text) | TypedInput::Mark(text)) = &input;
    let mut text = text.clone();
    match code {
        KeyCode::Esc => return,
        KeyCode::Enter => return done(&input, watch, view),
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(letter) if text.chars().count() < TYPED_MAX => text.push(letter),
        _ => {}
    }
    view.input = Some(match input {
        TypedInput::Filter(_) => TypedInput::Filter(text),
        TypedInput::Mark(_) => TypedInput::Mark(text),
    });
}

fn done(input: &TypedInput, watch: &mut Watch, view: &mut ScreenView) {
    match input {
        TypedInput::Mark(text) if text.trim().is_empty() => {}
        TypedInput::Mark(text) => view.message = Some(watch.mark(text.trim())),
        TypedInput::Filter(text) if text.trim().is_empty() => view.filter = None,
        TypedInput::Filter(text) => match CpuList::parse(text.trim(), None) {
            Ok(cpus) => view.filter = Some(cpus),
            Err(error) => view.message = Some(format!("CPUs {}: {error}", text.trim())),
        },
    }
}

/// The wheel moves, a click chooses, a click on what is chosen opens nothing: that is Enter's.
fn mouse(
    mouse: MouseEvent,
    frame: &WatchFrame,
    view: &mut ScreenView,
    (columns, lines): (u16, u16),
) -> KeyAction {
    let area = Rect::new(0, 0, columns, lines);
    match mouse.kind {
        MouseEventKind::ScrollDown => view.step(frame, WHEEL),
        MouseEventKind::ScrollUp => view.step(frame, -WHEEL),
        MouseEventKind::Down(MouseButton::Left) if view.page == ScreenPage::Main => {
            match rtproof_render::screen::panel_row_at(frame, view, area, mouse.column, mouse.row) {
                Some(rtproof_render::screen::PanelRow { panel, row: Some(row) }) => {
                    view.choose(frame, panel, row)
                }
                Some(rtproof_render::screen::PanelRow { panel, row: None }) => view.panel = panel,
                None => {}
            }
        }
        _ => {}
    }
    KeyAction::Nothing
}
