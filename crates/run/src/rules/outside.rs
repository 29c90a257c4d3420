//! What /proc says of the program where its events do not.

use rtproof_host::Root;
use rtproof_judge::rules::Outside;
use rtproof_measure::program::class_of;

pub(super) struct Live;

impl Outside for Live {
    fn descriptor(&mut self, pid: u32, number: u64) -> Option<String> {
        let number = u32::try_from(number).ok()?;
        let root = Root::live();
        let target = root.read_link(&format!("/proc/{pid}/fd/{number}")).value().cloned()?;
        if target != "anon_inode:[timerfd]" {
            return Some(target);
        }
        let about = root.read_text(&format!("/proc/{pid}/fdinfo/{number}"));
        let clock = about.value()?.lines().find_map(|line| line.strip_prefix("clockid:"))?;
        let is_settable = matches!(clock.trim(), "0" | "8" | "11");
        Some(if is_settable { format!("{target} settable") } else { target })
    }

    fn class(&mut self, tid: u32) -> Option<(bool, i32)> {
        class_of(tid)
    }

    fn is_same_mapping(&mut self, pid: u32, a: u64, b: u64) -> Option<bool> {
        let maps = Root::live().read_text(&format!("/proc/{pid}/maps")).value().cloned()?;
        let of = |address: u64| {
            maps.lines().position(|line| {
                let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                let number = |text: &str| u64::from_str_radix(text, 16).ok();
                range
                    .and_then(|(from, to)| Some((number(from)?, number(to)?)))
                    .is_some_and(|(from, to)| (from..to).contains(&address))
            })
        };
        Some(of(a)? == of(b)?)
    }
}
