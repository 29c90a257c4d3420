//! Texts in the picture of a spike: how wide they are, what of them fits, and where names with
//! leader lines go so that neither runs through the other.

/// Size of names, and of what is written in thin lanes.
pub(super) const SIZE: f64 = 13.0;
/// Size of texts in thin lanes.
pub(super) const SMALL: f64 = 11.5;

/// Width of a text, rather too wide: of a font of wide letters (DejaVu Sans), so that narrower
/// ones fit, too.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        '\u{202f}' => 0.25,
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '!' | '\'' | ' ' => 0.35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.42,
        'm' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        'w' | 'N' | 'O' | 'Q' | 'G' | 'D' | 'H' | '<' | '>' | '_' => 0.84,
        c if c.is_ascii_uppercase() => 0.7,
        c if c.is_ascii_digit() => 0.64,
        c if c.is_ascii() || c == 'µ' => 0.63,
        _ => 1.0,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// A text cut to a width; `None` where not even four characters are left.
pub(super) fn fitted(text: &str, room: f64, size: f64) -> Option<String> {
    if width(text, size) <= room {
        return Some(text.into());
    }
    let room = room - width("…", size);
    let mut used = 0.0;
    let cut: String = text
        .chars()
        .take_while(|c| {
            used += width(c.encode_utf8(&mut [0; 4]), size);
            used <= room
        })
        .collect();
    let cut = cut.trim_end();
    (cut.chars().count() >= 4).then(|| format!("{cut}…"))
}

/// Where a name with a leader line goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Row: 0 is the nearest to what is named.
    pub(super) row: usize,
    /// The text ends at its leader, else it starts there.
    pub(super) is_end: bool,
}

/// Places names at `(x, width)`: those with room to their right start at their leader; the others,
/// and whatever lies under their texts, end there. No text meets another, nor another's leader.
pub(super) fn place(names: &[(f64, f64)], right: f64) -> Vec<Place> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[a].0.total_cmp(&names[b].0).then(a.cmp(&b)));
    let mut is_end = vec![false; names.len()];
    let mut reach = f64::INFINITY;
    for &i in order.iter().rev() {
        let (x, width) = names[i];
        if x + width > right || x > reach - GAP {
            is_end[i] = true;
            reach = reach.min(x - width);
        }
    }
    // Those that end at their leader from the left, then the others from the right: a row beyond
    // all before is always free, so that the search ends.
    let ends = order.iter().filter(|&&i| is_end[i]);
    let starts = order.iter().rev().filter(|&&i| !is_end[i]);
    let mut places = vec![Place { row: 0, is_end: false }; names.len()];
    let mut placed: Vec<Placed> = Vec::new();
    for &i in ends.chain(starts) {
        let (x, width) = names[i];
        let (from, to) = if is_end[i] { (x - width, x) } else { (x, x + width) };
        let is_free = |row: &usize| placed.iter().all(|other| other.allows(x, from, to, *row));
        let row = (0..=names.len()).find(is_free).unwrap_or(names.len());
        placed.push(Placed { x, from, to, row });
        places[i] = Place { row, is_end: is_end[i] };
    }
    places
}

/// Free space round texts and leaders.
const GAP: f64 = 6.0;

struct Placed {
    x: f64,
    from: f64,
    to: f64,
    row: usize,
}

impl Placed {
    /// Whether another name may go to a row beside this one.
    fn allows(&self, x: f64, from: f64, to: f64, row: usize) -> bool {
        let meet = from < self.to + GAP && self.from < to + GAP;
        let inside = |x: f64, from: f64, to: f64| x > from + 0.5 && x < to - 0.5;
        match row.cmp(&self.row) {
            std::cmp::Ordering::Equal => !meet,
            std::cmp::Ordering::Greater => !inside(x, self.from, self.to),
            std::cmp::Ordering::Less => !inside(self.x, from, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_they_do_not_fit() {
        assert_eq!(fitted("idle", 40.0, SIZE).as_deref(), Some("idle"));
        assert_eq!(fitted("multipathd [RR 99]", 80.0, SIZE).as_deref(), Some("multipath…"));
        assert_eq!(fitted("multipathd", 20.0, SIZE), None);
    }

    #[test]
    fn names_meet_neither_each_other_nor_a_leader() {
        let dense: Vec<(f64, f64)> =
            (0..12).map(|i| (500.0 + 40.0 * f64::from(i), 160.0)).collect();
        let same = vec![(700.0, 200.0); 3];
        let spread: Vec<(f64, f64)> =
            (0..4).map(|i| (100.0 + 200.0 * f64::from(i), 90.0)).collect();
        for names in [&dense, &spread, &same] {
            let places = place(names, 946.0);
            for (i, a) in places.iter().enumerate() {
                for (j, b) in places.iter().enumerate().filter(|&(j, _)| j != i) {
                    let extent = |(x, width): (f64, f64), is_end: bool| {
                        if is_end { (x - width, x) } else { (x, x + width) }
                    };
                    let (from, to) = extent(names[i], a.is_end);
                    let (other_from, other_to) = extent(names[j], b.is_end);
                    assert!(a.row != b.row || to < other_from || other_to < from, "{i} {j}");
                    let crosses = names[j].0 > from && names[j].0 < to;
                    assert!(b.row <= a.row || !crosses, "leader of {j} through {i}");
                    assert!(to <= 946.0);
                }
            }
        }
        assert!(place(&spread, 946.0).iter().all(|place| place.row == 0), "one row is enough");
        let rows: std::collections::BTreeSet<usize> =
            place(&same, 946.0).iter().map(|place| place.row).collect();
        assert_eq!(rows.len(), 3);
    }
}
