//! A role and two playbooks for Ansible, with modules of `ansible.builtin` only: what is to be, and
//! the way back. Tasks change what differs, and say in check mode what they would change.

use rtproof_host::tune::{State, UnitState};

use super::{
    boot::Words,
    format::{Exported, Format, Missed, OutFile, Source},
    layout::{At, Layout, Value, named},
    readback,
    text::{self, yaml},
    tree::{SCRIPT, Tree, gathered},
};

pub(super) const ANSIBLE: Format = Format {
    id: "ansible",
    title: "a role and playbooks for Ansible",
    usage: "`ansible-playbook -i INVENTORY rtproof.yml --check --diff` says what would change, \
         without `--check` it is done; `rtproof-undo.yml` takes it back. The machines are the group \
         `rtproof`; they have to be like the one the plan was made on. `-e rtproof_root=/mnt/image` \
         fills the tree of an image and touches no unit.\n\n\
         Undo puts back what was known of the machine the plan was made on: values, where they are \
         still the playbook's, and units. With machines in another state before, take \
         `rtproof tune apply`, which saves what it finds.",
    write,
};

fn write(source: &Source<'_>) -> Exported {
    let layout = Layout::of(source, At::Boot);
    let tree = Tree::of(source, &layout, ANSIBLE.id, true);
    let missed = missed(source, &layout, &tree);
    let head = text::head(source, ANSIBLE.id);
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

fn missed(source: &Source<'_>, layout: &Layout<'_>, tree: &Tree) -> Vec<Missed> {
    let mut missed = tree.missed.clone();
    let mut unknown = |step, why: &str| missed.push(Missed { what: named(step), why: why.into() });
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

fn old(source: &Source<'_>, value: &Value<'_>) -> Option<String> {
    readback::old(source.before(&value.step.change)?, value.value, value.compare)
}

/// The role's data: what is to be, and what was.
fn vars(source: &Source<'_>, layout: &Layout<'_>, tree: &Tree) -> String {
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
            .map(|(path, step)| format!("{} # {}", yaml(path), text::why(&step.reason))),
    );
    text += &values(layout);
    text += &list(
        "rtproof_units",
        layout.units.iter().map(|(unit, want, step)| {
            let (state, enabled, masked) = wish(*want);
            let enabled = enabled.map(|is| format!(", enabled: {is}")).unwrap_or_default();
            let masked = if masked { ", masked: true" } else { "" };
            let why = text::why(&step.reason);
            format!("{{name: {}, state: {state}{enabled}{masked}}} # {why}", yaml(unit))
        }),
    );
    text += &list("rtproof_own_units", tree.enabled.iter().map(|unit| yaml(unit)));
    text += &before(source, layout);
    let words = Words::of(source);
    let removed = words.removed.iter().map(|(name, _)| yaml(name));
    text + &words.comments()
        + &format!("rtproof_words: {}\n", yaml(&words.text()))
        + &list("rtproof_words_removed", removed)
}

/// The values, in an order the kernel takes: sysctls as planned, then those without order.
fn values(layout: &Layout<'_>) -> String {
    let one = |value: &Value<'_>, paths: &[&str]| {
        let expression = readback::python(&value.expression());
        let paths: String = paths.iter().map(|path| format!("\n      - {}", yaml(path))).collect();
        format!(
            "value: {}\n    expected: {}\n    why: {}\n    paths:{paths}",
            yaml(value.value),
            yaml(&expression),
            yaml(&text::why(value.reason()))
        )
    };
    let sysctls = layout.sysctls.iter().map(|value| one(value, &[value.path]));
    let plain = gathered(&layout.plain);
    list("rtproof_values", sysctls.chain(plain.iter().map(|(value, paths)| one(value, paths))))
}

/// What was there before, for the undo playbook; the last change first.
fn before(source: &Source<'_>, layout: &Layout<'_>) -> String {
    let values = layout.sysctls.iter().chain(&layout.plain).rev().filter_map(|value| {
        let old = old(source, value)?;
        let ours = readback::python(&value.expression());
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
fn wish(want: UnitState) -> (&'static str, Option<bool>, bool) {
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
