//! A role and two playbooks for Ansible, with modules of `ansible.builtin` only: what is to be, and
//! the way back. Tasks change what differs, and say in check mode what they would change.

use rtproof_host::tune::{State, UnitState};

use super::layout::{At, ExportLayout, RuntimeValue, ScriptAction, named, sysctl_key};
use super::tree::{FileTree, SCRIPT, gathered};
use super::{
    ExportFormat, ExportSource, ExportWords, Exported, NotExported, OutFile, layout, tree, yaml,
};

pub(super) const ANSIBLE: ExportFormat = ExportFormat {
    id: "ansible",
    title: "a role and playbooks for Ansible",
    usage: "`ansible-playbook -i INVENTORY rtproof.yml --check --diff` says what would change, \
         without `--check` it is done; `rtproof-undo.yml` takes it back. The machines are the group \
         `rtproof`; they have to be like the one the plan was made on. `-e rtproof_root=/mnt/image` \
         fills the tree of an image and touches no unit.\n\n\
         Undo puts back what was known of the machine the plan was made on: values, where they are \
         still the playbook's, and units. With machines in another state before, take \
         `rtproof tune apply`, which saves what it finds.",
    write: write_ansible,
};

fn write_ansible(source: &ExportSource<'_>) -> Exported {
    let layout = ExportLayout::of(source, At::Boot);
    let tree = FileTree::of(source, &layout, ANSIBLE.id, true);
    let missed = missed(source, &layout, &tree);
    let head = super::file_head(source, ANSIBLE.id);
    let file = |path: &str, text: String| OutFile::new(path, format!("---\n{head}{text}"));
    let has_script = tree.files.iter().any(|file| file.path == SCRIPT);
    let mut tasks = TASKS.to_owned();
    if has_script {
        tasks += SCRIPT_TASKS;
    }
    let mut files = vec![
        file("rtproof.yml", PLAY.into()),
        file("rtproof-undo.yml", format!("{UNDO}  handlers:\n{}", handlers_of_play())),
        file("roles/rtproof/tasks/main.yml", tasks),
        file("roles/rtproof/handlers/main.yml", HANDLERS.into()),
        file("roles/rtproof/defaults/main.yml", DEFAULTS.into()),
        file("roles/rtproof/vars/main.yml", vars(source, &layout, &tree)),
    ];
    files.extend(tree.files.into_iter().map(|mut file| {
        file.path = format!("roles/rtproof/files/{}", file.path);
        file
    }));
    Exported { files, missed }
}

fn missed(
    source: &ExportSource<'_>,
    layout: &ExportLayout<'_>,
    tree: &FileTree,
) -> Vec<NotExported> {
    let mut missed = tree.missed.clone();
    let mut unknown =
        |step, why: &str| missed.push(NotExported { what: named(step), why: why.into() });
    let why = "what was there before is not known: rtproof-undo.yml leaves it as it is";
    for value in layout.sysctls.iter().chain(&layout.plain) {
        if old(source, value).is_none() {
            unknown(value.step, why);
        }
    }
    for (_, _, step) in &layout.units {
        if source.before(&step.change).is_none() {
            unknown(step, why);
        }
    }
    for file in &layout.files {
        if matches!(source.before(&file.step.change), Some(State::File { .. } | State::Link { .. }))
        {
            unknown(file.step, "it was there before: undo takes the file away; keep a copy");
        }
    }
    for (_, step) in &layout.away {
        unknown(step, "undo does not bring the file back; keep a copy");
    }
    missed
}

fn old(source: &ExportSource<'_>, value: &RuntimeValue<'_>) -> Option<String> {
    super::old(source.before(&value.step.change)?, value.value, value.compare)
}

/// The role's data: what is to be, and what was.
fn vars(source: &ExportSource<'_>, layout: &ExportLayout<'_>, tree: &FileTree) -> String {
    let mut text = list(
        "rtproof_files",
        tree.files
            .iter()
            .map(|file| format!("{{path: {}, mode: \"{:04o}\"}}", yaml(&file.path), file.mode)),
    );
    text += &list(
        "rtproof_away",
        layout
            .away
            .iter()
            .map(|(path, step)| format!("{} # {}", yaml(path), super::why(&step.reason))),
    );
    text += &values(layout);
    text += &list(
        "rtproof_units",
        layout.units.iter().map(|(unit, want, step)| {
            let (state, enabled, masked) = service_words(*want);
            let enabled = enabled.map(|is| format!(", enabled: {is}")).unwrap_or_default();
            let masked = if masked { ", masked: true" } else { "" };
            let why = super::why(&step.reason);
            format!("{{name: {}, state: {state}{enabled}{masked}}} # {why}", yaml(unit))
        }),
    );
    text += &list("rtproof_own_units", tree.enabled.iter().map(|unit| yaml(unit)));
    text += &before(source, layout);
    let words = ExportWords::of(source);
    let removed = words.removed.iter().map(|(name, _)| yaml(name));
    text + &words.comments()
        + &format!("rtproof_words: {}\n", yaml(&words.text()))
        + &list("rtproof_words_removed", removed)
}

/// The values, in an order the kernel takes: sysctls as planned, then those without order.
fn values(layout: &ExportLayout<'_>) -> String {
    let one = |value: &RuntimeValue<'_>, paths: &[&str]| {
        let expression = super::python(&value.expression());
        let paths: String = paths.iter().map(|path| format!("\n      - {}", yaml(path))).collect();
        format!(
            "value: {}\n    expected: {}\n    why: {}\n    paths:{paths}",
            yaml(value.value),
            yaml(&expression),
            yaml(&super::why(value.reason()))
        )
    };
    let sysctls = layout.sysctls.iter().map(|value| one(value, &[value.path]));
    let plain = gathered(&layout.plain);
    list("rtproof_values", sysctls.chain(plain.iter().map(|(value, paths)| one(value, paths))))
}

/// What was there before, for the undo playbook; the last change first.
fn before(source: &ExportSource<'_>, layout: &ExportLayout<'_>) -> String {
    let values = layout.sysctls.iter().chain(&layout.plain).rev().filter_map(|value| {
        let old = old(source, value)?;
        let ours = super::python(&value.expression());
        Some(format!(
            "{{path: {}, value: {}, ours: {}}}",
            yaml(value.path),
            yaml(&old),
            yaml(&ours)
        ))
    });
    let text = list("rtproof_before", values);
    let units = layout.units.iter().filter_map(|(unit, _, step)| {
        let Some(State::Unit { active, links, .. }) = source.before(&step.change) else {
            return None;
        };
        let masked = links.iter().any(|(_, to)| to == "/dev/null");
        let wants = |path: &str| path.contains(".wants/") || path.contains(".requires/");
        let enabled = links.iter().any(|(path, _)| wants(path));
        let state = if *active { "started" } else { "stopped" };
        let name = yaml(unit);
        // What is masked cannot be asked whether it is enabled.
        Some(match masked {
            true => format!("{{name: {name}, masked: true}}"),
            false => {
                format!("{{name: {name}, masked: false, enabled: {enabled}, state: {state}}}")
            }
        })
    });
    text + &list("rtproof_units_before", units)
}

/// State, enabled, masked in the words of `systemd_service`.
fn service_words(want: UnitState) -> (&'static str, Option<bool>, bool) {
    match want {
        UnitState::Stopped => ("stopped", None, false),
        UnitState::Disabled => ("stopped", Some(false), false),
        UnitState::Masked => ("stopped", None, true),
        UnitState::Started => ("started", None, false),
        UnitState::Enabled => ("started", Some(true), false),
    }
}

fn list(name: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("  - {item}\n")).collect();
    if items.is_empty() { format!("{name}: []\n") } else { format!("{name}:\n{items}") }
}

const PLAY: &str = include_str!("ansible/play.yml");

const DEFAULTS: &str = include_str!("ansible/defaults.yml");

const TASKS: &str = include_str!("ansible/tasks.yml");

const SCRIPT_TASKS: &str = include_str!("ansible/script-tasks.yml");

const HANDLERS: &str = include_str!("ansible/handlers.yml");

/// The role's handlers as those of a play.
fn handlers_of_play() -> String {
    let line = |line: &str| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("    {line}\n"),
    };
    HANDLERS.lines().map(line).collect()
}

const UNDO: &str = include_str!("ansible/undo.yml");

// A profile for tuned 2.x: a folder for /etc/tuned or /etc/tuned/profiles.
//
// tuned's own sections are taken where they mean exactly what the plan says; the rest goes to the
// profile's script, which tuned starts, stops and verifies with the profile.

const TUNED_SCRIPT: &str = "rtproof-tuning.sh";

pub(super) const TUNED: ExportFormat = ExportFormat {
    id: "tuned",
    title: "a profile of tuned",
    usage: "Copy the folder `rtproof` to `/etc/tuned/` (tuned before 2.23) or \
         `/etc/tuned/profiles/`, then `tuned-adm profile rtproof`; `tuned-adm verify` after the next boot. tuned writes the \
         words of `[bootloader]` where it knows the boot loader (GRUB 2, rpm-ostree). It puts the \
         values back when the profile changes, but not when it is killed.",
    write: write_tuned,
};

fn write_tuned(source: &ExportSource<'_>) -> Exported {
    let mut layout = ExportLayout::of(source, At::Running);
    let mut missed = std::mem::take(&mut layout.missed);
    // What an INI file of tuned would read as something else goes to the script.
    let (sysctls, odd) = split(std::mem::take(&mut layout.sysctls), |value| {
        is_ini(value) && !sysctl_key(value.path).contains('/')
    });
    let (plain, more) = split(std::mem::take(&mut layout.plain), is_ini);
    let mut actions: Vec<ScriptAction<'_>> =
        odd.into_iter().chain(more).map(ScriptAction::Write).collect();
    actions.append(&mut layout.actions);
    actions.extend(layout.properties.iter().copied().map(ScriptAction::Property));

    let mut conf = super::file_head(source, TUNED.id)
        + "\n[main]\nsummary=Real-time tuning of one machine, made by rtproof\n";
    section(
        &mut conf,
        "sysctl",
        sysctls.iter().map(|value| {
            (format!("{}={}", sysctl_key(value.path), value.value), super::why(value.reason()))
        }),
    );
    section(
        &mut conf,
        "sysfs",
        gathered(&plain).iter().flat_map(|(value, paths)| {
            let line = |path| (format!("{path}={}", value.value), super::why(value.reason()));
            layout::cover(paths).into_iter().map(line).collect::<Vec<_>>()
        }),
    );
    section(
        &mut conf,
        "cpu",
        layout.dma_latency.iter().map(|(limit_us, step)| {
            (format!("force_latency={limit_us}"), super::why(&step.reason))
        }),
    );
    section(
        &mut conf,
        "service",
        layout.units.iter().map(|(unit, want, step)| {
            (format!("service.{unit}={}", service(*want)), super::why(&step.reason))
        }),
    );
    let words = ExportWords::of(source);
    section(
        &mut conf,
        "bootloader",
        words.added.iter().enumerate().map(|(n, word)| {
            // An option a word, each with its reason; tuned adds after a plus sign.
            (format!("cmdline_rtproof{n}=+{}", word.parameter), super::why(&word.reason))
        }),
    );
    let script = tree::write_script(source, TUNED.id, &actions);
    if script.is_some() {
        // Last: it is what needs the rest done.
        conf += &format!("\n[script]\nscript=${{i:PROFILE_DIR}}/{TUNED_SCRIPT}\n");
    }

    let mut miss = |what: String, why: &str| missed.push(NotExported { what, why: why.into() });
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
    files.extend(script.map(|text| OutFile::program(format!("rtproof/{TUNED_SCRIPT}"), text)));
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
fn is_ini(value: &RuntimeValue<'_>) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !value.path.contains(['=', '#', ' ', '$'])
        && !value.value.contains(['#', ';', '$', '\''])
        && value.value.starts_with(first)
}

fn split<'a>(
    values: Vec<RuntimeValue<'a>>,
    is_first: impl Fn(&RuntimeValue<'a>) -> bool,
) -> (Vec<RuntimeValue<'a>>, Vec<RuntimeValue<'a>>) {
    values.into_iter().partition(is_first)
}
