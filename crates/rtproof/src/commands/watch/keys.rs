//! What keys and the mouse do.

use crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui_core::layout::Rect;
use rtproof_host::CpuList;
use rtproof_report::screen::{self, Input, Look, Page, Panel, View};
use rtproof_results::watch::Frame;
use rtproof_run::watch::Watch;

/// Letters of a note or a list, at most.
const TYPED_MAX: usize = 200;
/// Rows that a turn of the wheel moves.
const WHEEL: isize = 3;

/// What the loop has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Redraw,
    Quit,
    Suspend,
}

pub(super) fn key(
    key: KeyEvent,
    watch: &mut Watch,
    frame: &Frame,
    view: &mut View,
    look: Look,
    area: (u16, u16),
) -> Next {
    if key.kind == KeyEventKind::Release {
        return Next::Nothing;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Next::Quit,
            KeyCode::Char('z') => Next::Suspend,
            KeyCode::Char('l') => Next::Redraw,
            _ => Next::Nothing,
        };
    }
    view.message = None;
    if let Some(input) = view.input.take() {
        typed(input, key.code, watch, view);
        return Next::Nothing;
    }
    let page = isize::try_from(area.1 / 2).unwrap_or(10);
    match key.code {
        KeyCode::Char('q') => return Next::Quit,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => turn(view, Page::Help),
        KeyCode::Esc | KeyCode::Backspace => back(view),
        KeyCode::Up | KeyCode::Char('k') => view.step(frame, -1),
        KeyCode::Down | KeyCode::Char('j') => view.step(frame, 1),
        KeyCode::PageUp => view.step(frame, -page),
        KeyCode::PageDown => view.step(frame, page),
        KeyCode::Home => view.home(frame),
        KeyCode::End => view.step(frame, 9_000),
        _ if view.page != Page::Main => {}
        KeyCode::Tab => view.next_panel(frame, true),
        KeyCode::BackTab => view.next_panel(frame, false),
        KeyCode::Char('>') | KeyCode::Right | KeyCode::F(6) => view.sort(true),
        KeyCode::Char('<') | KeyCode::Left => view.sort(false),
        KeyCode::Char(' ') => view.frozen = !view.frozen,
        KeyCode::Char('r') => view.message = Some(watch.reset()),
        KeyCode::Char('/' | 'c') => view.input = Some(Input::Filter(String::new())),
        KeyCode::Char('l') => view.message = Some(watch.switch_load()),
        KeyCode::Char('m') => view.input = Some(Input::Mark(String::new())),
        KeyCode::Char('s') => view.message = Some(watch.record()),
        KeyCode::Enter => enter(watch, frame, view, look, area),
        _ => {}
    }
    Next::Nothing
}

fn turn(view: &mut View, page: Page) {
    view.scroll = 0;
    view.page = if view.page == page { Page::Main } else { page };
}

fn back(view: &mut View) {
    view.scroll = 0;
    if view.page == Page::Main {
        view.filter = None;
    }
    view.page = Page::Main;
}

/// Opens what is chosen.
fn enter(watch: &Watch, frame: &Frame, view: &mut View, look: Look, area: (u16, u16)) {
    let row = view.row(frame, view.panel);
    match view.panel {
        Panel::Spikes => {
            let Some(&spike) = view.spikes(frame).get(row) else { return };
            match watch.picture(spike.thread, spike.due_ns) {
                Ok(picture) => {
                    let window = picture.window.as_ref();
                    let lines = screen::picture(&picture.explanation, window, area.0, look);
                    turn(view, Page::Picture(lines));
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
fn typed(input: Input, code: KeyCode, watch: &mut Watch, view: &mut View) {
    let (Input::Filter(text) | Input::Mark(text)) = &input;
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
        Input::Filter(_) => Input::Filter(text),
        Input::Mark(_) => Input::Mark(text),
    });
}

fn done(input: &Input, watch: &mut Watch, view: &mut View) {
    match input {
        Input::Mark(text) if text.trim().is_empty() => {}
        Input::Mark(text) => view.message = Some(watch.mark(text.trim())),
        Input::Filter(text) if text.trim().is_empty() => view.filter = None,
        Input::Filter(text) => match CpuList::parse(text.trim(), None) {
            Ok(cpus) => view.filter = Some(cpus),
            Err(error) => view.message = Some(format!("CPUs {}: {error}", text.trim())),
        },
    }
}

/// The wheel moves, a click chooses, a click on what is chosen opens nothing: that is Enter's.
pub(super) fn mouse(
    mouse: MouseEvent,
    frame: &Frame,
    view: &mut View,
    (columns, lines): (u16, u16),
) -> Next {
    let area = Rect::new(0, 0, columns, lines);
    match mouse.kind {
        MouseEventKind::ScrollDown => view.step(frame, WHEEL),
        MouseEventKind::ScrollUp => view.step(frame, -WHEEL),
        MouseEventKind::Down(MouseButton::Left) if view.page == Page::Main => {
            match screen::place(frame, view, area, mouse.column, mouse.row) {
                Some(screen::Place { panel, row: Some(row) }) => view.choose(frame, panel, row),
                Some(screen::Place { panel, row: None }) => view.panel = panel,
                None => {}
            }
        }
        _ => {}
    }
    Next::Nothing
}
