//! Lines of files of ours: several findings may want lines of one file, which is one change.

use std::collections::BTreeMap;

use rtproof_host::Facts;
use rtproof_host::tune::{Bytes, Change};

use super::Reason;

/// First line of every file of ours.
const HEAD: &str = "# Made by rtproof tune; rtproof undo takes it away.";
/// Folder of the limits of logins.
const LIMITS: &str = "/etc/security/limits.d/";
/// Folder of settings of the kernel.
const SYSCTL: &str = "/etc/sysctl.d/";

/// Files in the making, by path.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<String, (Vec<String>, Reason)>);

impl Files {
    /// Adds lines to a file.
    pub(super) fn add(&mut self, path: String, text: &str, reason: Reason) {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
        match self.0.get_mut(&path) {
            Some((known, why)) => {
                known.extend(lines);
                why.merge(reason);
            }
            None => {
                self.0.insert(path, (lines.collect(), reason));
            }
        }
    }

    /// The files whole. What a file of ours holds already, as far as facts tell, stays in it.
    pub(super) fn finish(self, facts: &Facts) -> Vec<(Change, Reason)> {
        let whole = |(path, (lines, reason)): (String, (Vec<String>, Reason))| {
            let mut all = kept(facts, &path);
            all.extend(lines);
            let content = Some(Bytes::from(content(&all).as_str()));
            (Change::File { path, content, mode: None }, reason)
        };
        self.0.into_iter().map(whole).collect()
    }
}

/// Lines that the file has already.
fn kept(facts: &Facts, path: &str) -> Vec<String> {
    if path.starts_with(LIMITS) {
        let lines = facts.rights.limit_lines.value().into_iter().flatten();
        let own = lines.filter(|line| line.file == path);
        return own.map(|l| format!("{} {} {} {}", l.who, l.kind, l.item, l.value)).collect();
    }
    if path.starts_with(SYSCTL) {
        let lines = facts.platform.sysctl.value().into_iter().flatten();
        let own = lines.filter(|line| line.file == path);
        return own.map(|line| format!("{} = {}", line.name, line.value)).collect();
    }
    Vec::new()
}

/// What a line sets: of two lines that set the same, the later stays.
fn subject(line: &str) -> String {
    match line.split_once('=') {
        Some((key, _)) => key.trim().to_owned(),
        // `@realtime - rtprio 95`, `options kvm x`: all but the value.
        None => line.rsplit_once(char::is_whitespace).map_or(line, |(rest, _)| rest).to_owned(),
    }
}

/// The text of a file: sections (`[Service]`) once each, lines in the order in which they came.
fn content(lines: &[String]) -> String {
    let mut sections: Vec<(String, Vec<String>)> = vec![(String::new(), Vec::new())];
    let mut now = 0;
    for line in lines {
        let mut rest = line.as_str();
        if let Some((name, after)) = rest.strip_prefix('[').and_then(|text| text.split_once(']')) {
            let head = format!("[{name}]");
            now = sections.iter().position(|(known, _)| *known == head).unwrap_or_else(|| {
                sections.push((head, Vec::new()));
                sections.len() - 1
            });
            rest = after.trim();
        }
        let body = &mut sections[now].1;
        if !rest.is_empty() {
            body.retain(|known| subject(known) != subject(rest));
            body.push(rest.to_owned());
        }
    }
    let mut text = format!("{HEAD}\n");
    for (head, body) in sections {
        if !head.is_empty() {
            text.push_str(&format!("{head}\n"));
        }
        body.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    text
}
