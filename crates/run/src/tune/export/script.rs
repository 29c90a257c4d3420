//! A small shell script for what no table of values can say: what has to keep its order, and
//! interrupts and kernel threads, which are found by their names. It saves what it finds and puts
//! it back. It needs a POSIX shell, and chrt and taskset for kernel threads; BusyBox will do.

use super::{
    format::Source,
    glob,
    layout::{Action, Value},
    readback,
    text::{self, shell},
};

/// The script, or nothing where there is nothing to do.
pub(super) fn write(source: &Source<'_>, format: &str, actions: &[Action<'_>]) -> Option<String> {
    if actions.is_empty() {
        return None;
    }
    let mut script =
        format!("#!/bin/sh\n{}{}", text::head(source, format), include_str!("script.sh"));
    let mut last_why = String::new();
    let mut because = |script: &mut String, why: String| {
        if why != last_why {
            *script += &format!("# {why}\n");
            last_why = why;
        }
    };
    let mut rest = actions;
    while let Some((first, _)) = rest.split_first() {
        let run = match first {
            Action::Write(value) => rest.iter().take_while(|next| is_like(value, next)).count(),
            _ => 1,
        };
        let (these, others) = rest.split_at(run);
        because(&mut script, text::why(&step(first).reason));
        script += &line(these);
        rest = others;
    }
    script += "\nexit \"$failed\"\n";
    Some(script)
}

fn step<'a>(action: &Action<'a>) -> &'a rtproof_judge::plan::Step {
    match action {
        Action::Write(value) => value.step,
        Action::Folder(_, step) | Action::Irq(_, _, step) | Action::Thread { step, .. } => step,
        Action::Property(property) => property.step,
    }
}

/// Whether it is the same value for the same file of another folder: files of one folder keep their
/// order, which the shell's patterns would not.
fn is_like(value: &Value<'_>, next: &Action<'_>) -> bool {
    let Action::Write(next) = next else { return false };
    let name = |value: &Value<'_>| value.path.rsplit('/').next().map(str::to_owned);
    (next.value, next.compare, next.reason()) == (value.value, value.compare, value.reason())
        && name(next) == name(value)
}

/// The line of an action, or of several that write one value.
fn line(actions: &[Action<'_>]) -> String {
    let rooted = |path: &str| format!("\"$root\"{path}");
    match &actions[0] {
        Action::Write(value) => {
            let paths: Vec<&str> = actions
                .iter()
                .filter_map(|action| match action {
                    Action::Write(value) => Some(value.path),
                    _ => None,
                })
                .collect();
            let paths: Vec<String> = glob::cover(&paths).iter().map(|path| pattern(path)).collect();
            format!(
                "put {} {} {} {}\n",
                shell(value.value),
                shell(&value.expression()),
                shell(&readback::reverse(value.value, value.compare)),
                paths.join(" \\\n    "),
            )
        }
        Action::Folder(path, _) => format!("folder {}\n", rooted(&shell(path))),
        Action::Irq(irq, cpus, _) => {
            let expression = format!("^{cpus}$");
            let words = [&*irq.actions, &irq.hwirq, &cpus.to_string(), &expression];
            format!("irq {}\n", words.map(shell).join(" "))
        }
        Action::Thread { pattern, set, .. } => {
            let priority = set.priority.unwrap_or(0).to_string();
            let cpus = set.cpus.as_ref().map(ToString::to_string);
            let policy = set.policy.as_deref().unwrap_or("-");
            let words = [pattern, policy, &priority, cpus.as_deref().unwrap_or("-")];
            format!("thread {}\n", words.map(shell).join(" "))
        }
        Action::Property(property) => {
            let words = [property.unit, property.property, property.value];
            format!("property {}\n", words.map(shell).join(" "))
        }
    }
}

/// A pattern for the shell: classes stay, what is special to the shell is quoted.
fn pattern(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+=@%[]*?".contains(c);
    let quoted = |c: char| if is_plain(c) { c.to_string() } else { format!("\\{c}") };
    format!("\"$root\"{}", path.chars().map(quoted).collect::<String>())
}
