//! What someone said of the firmware's set-up after looking through it: one line for each item of
//! the list of the check `bios-profile`, in a file of the machine's configuration.
//!
//! Most of what a set-up holds cannot be read from the system. A tick says who looked, when, and in
//! which firmware: another version may have reset it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root};

/// Where the ticks are.
pub const TICKS: &str = "/etc/rtproof-firmware.conf";

/// What the file begins with.
const HEAD: &str = "\
# The set-up of the firmware, as someone looked through it: `rtproof check tick`.
# item | set, kept or absent | date | who | version of the firmware | note
";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// It is as advised.
    Set,
    /// It is otherwise, on purpose.
    Kept,
    /// This firmware has no such setting.
    Absent,
}

impl Found {
    /// Every one, with its word in the file.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Set, "set"), (Self::Kept, "kept"), (Self::Absent, "absent")];

    /// The word in the file.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(found, _)| *found == self).map_or("", |(_, word)| word)
    }
}

/// One item that someone looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tick {
    /// Item, e.g. `smt`.
    pub item: String,
    pub found: Found,
    /// Day, as `2026-11-25`.
    pub date: String,
    pub who: String,
    /// Version and date of the firmware then.
    pub firmware: String,
    /// A remark; empty: none.
    pub note: String,
}

/// Reads the ticks; empty where there is no file.
pub(super) fn read(root: &Root) -> Reading<Vec<Tick>> {
    let text = root.read_text(TICKS);
    if text.is_absent() {
        return Reading::known(TICKS, Vec::new());
    }
    text.and_then(|path, text| match parse(&text) {
        Ok(ticks) => Reading::known(path, ticks),
        Err(line) => Reading::malformed(
            path,
            &line,
            "item | set, kept or absent | date | who | firmware | note",
        ),
    })
}

/// The ticks of a file; of two for one item the later one holds.
fn parse(text: &str) -> Result<Vec<Tick>, String> {
    let mut ticks: Vec<Tick> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [item, found, date, who, firmware, ref note @ ..] = fields[..] else {
            return Err(line.to_owned());
        };
        let found = Found::ALL.iter().find(|(_, word)| *word == found);
        let Some((found, _)) = found.filter(|_| !item.is_empty() && !firmware.is_empty()) else {
            return Err(line.to_owned());
        };
        ticks.retain(|tick| tick.item != item);
        ticks.push(Tick {
            item: item.into(),
            found: *found,
            date: date.into(),
            who: who.into(),
            firmware: firmware.into(),
            note: note.join(" "),
        });
    }
    Ok(ticks)
}

/// The text of the file.
pub fn text(ticks: &[Tick]) -> String {
    let plain = |text: &str| {
        text.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect::<String>()
    };
    let mut text = HEAD.to_owned();
    for tick in ticks {
        let fields = [&tick.item, tick.found.word(), &tick.date, &tick.who, &tick.firmware];
        let mut fields: Vec<String> = fields.map(plain).to_vec();
        fields.extend((!tick.note.is_empty()).then(|| plain(&tick.note)));
        text += &(fields.join(" | ") + "\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn what_is_written_is_read() {
        let tick = |item: &str, found, note: &str| Tick {
            item: item.into(),
            found,
            date: "2026-11-25".into(),
            who: "alice".into(),
            firmware: "2.1 01/02/2024".into(),
            note: note.into(),
        };
        let ticks = [tick("smt", Found::Set, ""), tick("aspm", Found::Kept, "needed")];
        let read = |text: &str| read(&Tree::new(&[("etc/rtproof-firmware.conf", text)]).root());
        assert_eq!(read(&text(&ticks)).value().unwrap(), &ticks);
        let odd = text(&[tick("smt", Found::Absent, "a | b\nturbo | set")]);
        assert_eq!(read(&odd).value().unwrap().len(), 1, "{odd}");
        assert_eq!(read("").value().unwrap().len(), 0);
        let twice = text(&[tick("smt", Found::Set, ""), tick("smt", Found::Kept, "")]);
        assert_eq!(read(&twice).value().unwrap()[0].found, Found::Kept);
        for wrong in ["smt", "smt | off | 1 | a | 2.1", "smt | set | 1 | a |", "| set | 1 | a | 2"]
        {
            assert!(read(wrong).why_unknown().is_some(), "{wrong}");
        }
    }

    #[test]
    fn no_file_is_no_tick_and_a_refusal_is_unknown() {
        let bare = Tree::new(&[("proc/version", "")]);
        assert_eq!(read(&bare.root()).value(), Some(&Vec::new()));
        let folder = Tree::new(&[("etc/rtproof-firmware.conf/x", "")]);
        assert!(read(&folder.root()).value().is_none());
    }
}
