//! CPUs: how busy, where they idled, how fast, and what interrupted them.

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style};

use rtproof_judge::units;
use rtproof_results::watch::{EventRate, IdleCounter, WatchCpu, WatchFrame, WatchTask};

use super::cells::{
    ScreenCell, ScreenColumn, ScreenLine, choose, count, head, number, percent, plain, shown, words,
};
use super::latency::WIDE_FROM;
use super::{Panel, ScreenStyle, ScreenView, cells};

/// Columns of the bar at least.
const BAR_MIN: u16 = 10;

/// Columns of the names of what interrupts, on wide screens.
const NAMES: u16 = 30;

const WITH_NAMES_FROM: u16 = 150;

pub(super) fn draw_cpus(
    frame: &WatchFrame,
    view: &ScreenView,
    look: ScreenStyle,
    area: Rect,
    to: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let has_names = area.width >= WITH_NAMES_FROM;
    let columns = cpu_columns(area.width, has_names);
    let bar = columns[3].columns;
    head(to, area, look, view.panel == Panel::Cpus, "", &columns);
    let rows = view.cpus(frame);
    let chosen = view.row(frame, Panel::Cpus);
    // The last line is about the chosen one.
    let lines = usize::from(area.height.saturating_sub(2).max(1));
    for (line, at) in shown(rows.len(), chosen, lines).enumerate() {
        let y = area.y + 1 + line as u16;
        if y >= area.bottom() {
            break;
        }
        let mut cells = cpu_cells(rows[at], bar, look);
        if has_names {
            cells.push(plain(names(rows[at].interrupts.as_ref())));
            cells.push(plain(names(rows[at].softirqs.as_ref())));
        }
        cells::row(to, (area.x + 2, y), area.right(), &columns, &cells);
        if at == chosen && view.panel == Panel::Cpus {
            choose(to, area, y, look, view);
        }
    }
    match rows.get(chosen) {
        Some(cpu) if area.height > 2 => {
            about(cpu, look).put(to, area.x + 2, area.bottom() - 1, area.width.saturating_sub(2));
        }
        Some(_) => {}
        None => {
            let text = "no CPU to show: / changes the filter";
            to.set_stringn(area.x + 2, area.y + 1, text, usize::from(area.width), look.dim());
        }
    }
}

fn cpu_columns(width: u16, has_names: bool) -> Vec<ScreenColumn> {
    let wide = u16::from(width >= WIDE_FROM);
    let mut columns = vec![
        number("CPU", 3 + wide),
        number("busy", 5 + wide),
        number("steal", 5 + wide),
        words("busy and idle", BAR_MIN),
        words("deepest idle", 13 + 6 * wide),
        number("MHz", 5 + 2 * wide),
        number("hot", 3 + wide),
        number("irq/s", 6 + 3 * wide),
        number("soft/s", 6 + 3 * wide),
        number("switch/s", 8 + wide),
    ];
    if has_names {
        columns.push(words("interrupts", NAMES));
        columns.push(words("softirqs", NAMES));
    }
    let used: u16 = columns.iter().map(|column| column.columns + 1).sum::<u16>() + 2;
    columns[3].columns += width.saturating_sub(used);
    columns
}

fn cpu_cells(cpu: &WatchCpu, bar: u16, look: ScreenStyle) -> Vec<ScreenCell> {
    let steal =
        if cpu.steal_permille.is_some_and(|steal| steal > 0) { look.warn() } else { Style::new() };
    let hot = if cpu.throttled.is_some_and(|n| n > 0) { look.bad() } else { Style::new() };
    let deepest = cpu.idle.last().map_or_else(
        || "-".into(),
        |state| format!("{:>5} {}", percent(Some(state.permille)), state.name),
    );
    let mhz = cpu.freq_hz.map(|hz| (hz + 500_000) / 1_000_000);
    let rate = |rate: &Option<EventRate>| plain(count(rate.as_ref().map(|rate| rate.per_s)));
    vec![
        plain(cpu.cpu.to_string()),
        plain(percent(cpu.busy_permille)),
        (percent(cpu.steal_permille), steal),
        plain(bar_of(cpu, bar, look)),
        plain(deepest),
        plain(mhz.map_or_else(|| "-".into(), |mhz| mhz.to_string())),
        (count(cpu.throttled), hot),
        rate(&cpu.interrupts),
        rate(&cpu.softirqs),
        plain(count(cpu.switches_per_s)),
    ]
}

/// Time as a bar: not idle, then the idle states from shallow to deep; the rest is not counted.
fn bar_of(cpu: &WatchCpu, columns: u16, look: ScreenStyle) -> String {
    let [shallow, between, deep, busy] = look.shades();
    let mut bar = String::new();
    let mut done = 0;
    let mut add = |permille: u32, shade: char| {
        done = (done + permille).min(1000);
        let until = (done * u32::from(columns) + 500) / 1000;
        while (bar.chars().count() as u32) < until {
            bar.push(shade);
        }
    };
    let Some(busy_permille) = cpu.busy_permille else { return "-".into() };
    add(busy_permille, busy);
    let last = cpu.idle.len().saturating_sub(1);
    for (at, state) in cpu.idle.iter().enumerate() {
        let shade = match at {
            at if at == last => deep,
            0 => shallow,
            _ => between,
        };
        add(state.permille, shade);
    }
    bar
}

/// The most frequent by name: `LOC 250, 36 virtio1 3`.
fn names(rate: Option<&EventRate>) -> String {
    let Some(rate) = rate else { return "-".into() };
    let name = |(name, n): &(String, u64)| format!("{name} {}", units::grouped(*n));
    rate.top.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// All values of the chosen CPU, in a line.
fn about(cpu: &WatchCpu, look: ScreenStyle) -> ScreenLine {
    let mut line = ScreenLine::new(look);
    line.bold(&format!("CPU {}", cpu.cpu));
    if cpu.isolated {
        line.text(" isolated");
    }
    if let Some(mc) = cpu.temp_mc {
        line.text(&format!("  {:.0} °C", mc as f64 / 1000.0));
    }
    line.dim("  irq/s ").text(&names(cpu.interrupts.as_ref()));
    line.dim("  soft/s ").text(&names(cpu.softirqs.as_ref()));
    let states: Vec<String> = cpu
        .idle
        .iter()
        .map(|state| format!("{} {}", state.name, percent(Some(state.permille))))
        .collect();
    match cpu.idle_by {
        Some(IdleCounter::Hardware) => line.dim("  idle by hardware ").text(&states.join(", ")),
        Some(IdleCounter::Kernel) => line.dim("  idle by kernel ").text(&states.join(", ")),
        None => line.dim("  idle states unknown"),
    };
    line
}

// Real-time tasks: where, in which class, how much of a CPU, and what outranks them.

pub(super) fn draw_tasks(
    frame: &WatchFrame,
    view: &ScreenView,
    look: ScreenStyle,
    area: Rect,
    to: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let columns = task_columns(area.width);
    head(to, area, look, view.panel == Panel::Tasks, "", &columns);
    let rows = view.tasks(frame);
    if rows.is_empty() {
        let text = match frame.tasks {
            None => "not known: see ?",
            Some(_) => "no real-time task on the CPUs that are shown",
        };
        to.set_stringn(area.x + 2, area.y + 1, text, usize::from(area.width), look.dim());
        return;
    }
    let chosen = view.row(frame, Panel::Tasks);
    let lines = usize::from(area.height.saturating_sub(1));
    for (line, at) in shown(rows.len(), chosen, lines).enumerate() {
        let y = area.y + 1 + line as u16;
        cells::row(to, (area.x + 2, y), area.right(), &columns, &task_cells(rows[at]));
        if at == chosen && view.panel == Panel::Tasks {
            choose(to, area, y, look, view);
        }
    }
}

fn task_columns(width: u16) -> Vec<ScreenColumn> {
    let mut columns = vec![
        number("CPU", 3),
        words("real-time task", 16),
        number("tid", 8),
        words("class", 9),
        number("share", 6),
        words("may use", 9),
        words("outranked by", 12),
    ];
    let used: u16 = columns.iter().map(|column| column.columns + 1).sum::<u16>() + 2;
    columns[6].columns += width.saturating_sub(used);
    columns
}

fn task_cells(task: &WatchTask) -> Vec<ScreenCell> {
    let class = match task.priority {
        0 => task.policy.name().to_owned(),
        priority => format!("{} {priority}", task.policy.name()),
    };
    let above = match (task.outranked, task.outranked_by.len()) {
        (0, _) => "nobody".into(),
        (all, named) => {
            let names = task.outranked_by.join(", ");
            let more = all as usize - named.min(all as usize);
            if more > 0 { format!("{all}: {names}, ...") } else { format!("{all}: {names}") }
        }
    };
    vec![
        plain(task.cpu.to_string()),
        plain(task.comm.clone()),
        plain(task.tid.to_string()),
        plain(class),
        plain(percent(task.share_permille)),
        plain(task.cpus.as_ref().map_or_else(|| "?".into(), ToString::to_string)),
        plain(above),
    ]
}
