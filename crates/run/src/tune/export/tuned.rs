//! A profile for tuned 2.x: a folder for /etc/tuned or /etc/tuned/profiles.
//!
//! tuned's own sections are taken where they mean exactly what the plan says; the rest goes to the
//! profile's script, which tuned starts, stops and verifies with the profile.

use rtproof_host::tune::UnitState;

use super::{
    boot::Words,
    format::{Exported, Format, Missed, OutFile, Source},
    glob,
    layout::{Action, At, Layout, Value, named, sysctl_key},
    script, text,
    tree::gathered,
};

const SCRIPT: &str = "rtproof-tuning.sh";

pub(super) const TUNED: Format = Format {
    id: "tuned",
    title: "a profile of tuned",
    usage: "Copy the folder `rtproof` to `/etc/tuned/` (tuned before 2.23) or \
         `/etc/tuned/profiles/`, then `tuned-adm profile rtproof`; `tuned-adm verify` after the next boot. tuned writes the \
         words of `[bootloader]` where it knows the boot loader (GRUB 2, rpm-ostree). It puts the \
         values back when the profile changes, but not when it is killed.",
    write,
};

fn write(source: &Source<'_>) -> Exported {
    let mut layout = Layout::of(source, At::Running);
    let mut missed = std::mem::take(&mut layout.missed);
    // What an INI file of tuned would read as something else goes to the script.
    let (sysctls, odd) = split(std::mem::take(&mut layout.sysctls), |value| {
        is_ini(value) && !sysctl_key(value.path).contains('/')
    });
    let (plain, more) = split(std::mem::take(&mut layout.plain), is_ini);
    let mut actions: Vec<Action<'_>> = odd.into_iter().chain(more).map(Action::Write).collect();
    actions.append(&mut layout.actions);
    actions.extend(layout.properties.iter().copied().map(Action::Property));

    let mut conf = text::head(source, TUNED.id)
        + "\n[main]\nsummary=Real-time tuning of one machine, made by rtproof\n";
    section(
        &mut conf,
        "sysctl",
        sysctls.iter().map(|value| {
            (format!("{}={}", sysctl_key(value.path), value.value), text::why(value.reason()))
        }),
    );
    section(
        &mut conf,
        "sysfs",
        gathered(&plain).iter().flat_map(|(value, paths)| {
            let line = |path| (format!("{path}={}", value.value), text::why(value.reason()));
            glob::cover(paths).into_iter().map(line).collect::<Vec<_>>()
        }),
    );
    section(
        &mut conf,
        "cpu",
        layout
            .dma_latency
            .iter()
            .map(|(limit_us, step)| (format!("force_latency={limit_us}"), text::why(&step.reason))),
    );
    section(
        &mut conf,
        "service",
        layout.units.iter().map(|(unit, want, step)| {
            (format!("service.{unit}={}", service(*want)), text::why(&step.reason))
        }),
    );
    let words = Words::of(source);
    section(
        &mut conf,
        "bootloader",
        words.added.iter().enumerate().map(|(n, word)| {
            // An option a word, each with its reason; tuned adds after a plus sign.
            (format!("cmdline_rtproof{n}=+{}", word.parameter), text::why(&word.reason))
        }),
    );
    let script = script::write(source, TUNED.id, &actions);
    if script.is_some() {
        // Last: it is what needs the rest done.
        conf += &format!("\n[script]\nscript=${{i:PROFILE_DIR}}/{SCRIPT}\n");
    }

    let mut miss = |what: String, why: &str| missed.push(Missed { what, why: why.into() });
    for file in &layout.files {
        miss(named(file.step), "a profile holds no files; `--format systemd` has it");
    }
    for (_, step) in &layout.away {
        miss(named(step), "a profile takes no file away");
    }
    for (_, want, step) in &layout.units {
        if *want == UnitState::Masked {
            miss(named(step), "tuned stops and disables it; it cannot mask");
        }
    }
    for (name, _) in &words.removed {
        miss(
            format!("boot words {name} that were there"),
            "tuned takes away only words of its own; remove them in the boot loader's file",
        );
    }
    missed.extend(words.missed);
    let mut files = vec![OutFile::new("rtproof/tuned.conf", conf)];
    files.extend(script.map(|text| OutFile::program(format!("rtproof/{SCRIPT}"), text)));
    Exported { files, missed }
}

/// Words of tuned's plugin service.
fn service(want: UnitState) -> &'static str {
    match want {
        UnitState::Stopped => "stop",
        UnitState::Disabled | UnitState::Masked => "stop,disable",
        UnitState::Started => "start",
        UnitState::Enabled => "start,enable",
    }
}

/// A section with a comment before each line whose reason is new.
fn section(conf: &mut String, name: &str, lines: impl Iterator<Item = (String, String)>) {
    let mut last = None;
    for (line, why) in lines {
        if last.is_none() {
            *conf += &format!("\n[{name}]\n");
        }
        if last.as_ref() != Some(&why) {
            *conf += &format!("# {why}\n");
        }
        *conf += &format!("{line}\n");
        last = Some(why);
    }
}

/// Whether tuned's parser reads the line as it is: no comments, no variables, no modifiers.
fn is_ini(value: &Value<'_>) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !value.path.contains(['=', '#', ' ', '$'])
        && !value.value.contains(['#', ';', '$', '\''])
        && value.value.starts_with(first)
}

fn split<'a>(
    values: Vec<Value<'a>>,
    is_first: impl Fn(&Value<'a>) -> bool,
) -> (Vec<Value<'a>>, Vec<Value<'a>>) {
    values.into_iter().partition(is_first)
}
