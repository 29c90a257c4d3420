//! Real-time tasks: where, in which class, how much of a CPU, and who outranks them.

use ratatui_core::{buffer::Buffer, layout::Rect};
use rtproof_results::watch::{Frame, Task};

use super::{
    Look,
    cells::{self, Cell, Column, choose, head, number, percent, plain, shown, words},
    view::{Panel, View},
};

pub(super) fn draw(frame: &Frame, view: &View, look: Look, area: Rect, to: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let columns = columns(area.width);
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
        cells::row(to, (area.x + 2, y), area.right(), &columns, &cells_of(rows[at]));
        if at == chosen && view.panel == Panel::Tasks {
            choose(to, area, y, look, view);
        }
    }
}

fn columns(width: u16) -> Vec<Column> {
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

fn cells_of(task: &Task) -> Vec<Cell> {
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
