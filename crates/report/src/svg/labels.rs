//! Texts within plots: the names of maxima, and the bands of the load phases.

use maud::{Markup, html};
use rtproof_record::options::Phase;

use super::{frame::Frame, px};

/// Width of a character, about.
const CHARACTER: f64 = 7.2;

/// A value marked on the horizontal axis, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Value on the scale.
    pub(crate) value: f64,
    pub(crate) text: String,
    /// Class of its colour.
    pub(crate) class: String,
}

/// Marks on the horizontal axis: a thin line up from it and the text at its end, the rightmost on
/// top, so that no line runs through a text.
pub(crate) fn marks(frame: &Frame, mut marks: Vec<Mark>) -> Markup {
    marks.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.text.cmp(&b.text)));
    html! {
        @for (row, mark) in marks.iter().enumerate() {
            @let x = frame.px_x(mark.value);
            @let y = frame.top + 14.0 + row as f64 * 18.0;
            @let fits = x - frame.left > mark.text.chars().count() as f64 * CHARACTER + 10.0;
            g class={ "mark " (mark.class) } {
                line x1=(px(x)) x2=(px(x)) y1=(px(y - 11.0)) y2=(px(frame.bottom + 5.0)) {}
                text.halo x=(px(if fits { x - 5.0 } else { x + 5.0 })) y=(px(y))
                    text-anchor=(if fits { "end" } else { "start" }) { (mark.text) }
            }
        }
    }
}

/// Bands of the load phases above a plot over time, and their limits in it.
pub(crate) fn phases(frame: &Frame, phases: &[Phase]) -> Markup {
    let end_ns = frame.x.ends().1;
    let (top, height) = (frame.top - 26.0, 18.0);
    html! {
        g.phases {
            @for phase in phases.iter().filter(|phase| (phase.from_ns as f64) < end_ns) {
                @let from = frame.px_x(phase.from_ns as f64);
                @let to = frame.px_x(phase.to_ns as f64);
                g {
                    title { (phase.name) }
                    rect class=(if phase.loads.is_empty() { "phase idle" } else { "phase" })
                        x=(px(from)) y=(px(top)) rx="2"
                        width=(px((to - from - 2.0).max(1.0))) height=(px(height)) {}
                    @if let Some(text) = fitted(&phase.name, to - from - 10.0) {
                        text x=(px(from + 5.0)) y=(px(top + 13.5)) { (text) }
                    }
                }
                @if phase.from_ns > 0 {
                    line.limit x1=(px(from - 1.0)) x2=(px(from - 1.0))
                        y1=(px(top)) y2=(px(frame.bottom)) {}
                }
            }
        }
    }
}

/// A text cut to a width; `None` where not even three characters fit.
pub(crate) fn fitted(text: &str, width: f64) -> Option<String> {
    let room = (width / CHARACTER).max(0.0) as usize;
    if text.chars().count() <= room {
        return Some(text.into());
    }
    (room >= 4).then(|| text.chars().take(room - 1).chain(['…']).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_they_do_not_fit() {
        assert_eq!(fitted("idle", 40.0).as_deref(), Some("idle"));
        assert_eq!(fitted("cpu+memory+net", 60.0).as_deref(), Some("cpu+mem…"));
        assert_eq!(fitted("cpu+memory", 20.0), None);
    }
}
