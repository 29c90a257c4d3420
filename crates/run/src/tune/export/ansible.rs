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

const PLAY: &str = "\
- name: Real-time tuning
  hosts: rtproof
  become: true
  gather_subset: [\"!all\"]
  roles:
    - rtproof
";

const DEFAULTS: &str = "\
# Put before every path: the tree of an image. Nothing but files is touched then.
rtproof_root: \"\"
";

const TASKS: &str = r#"- name: Files are in place
  ansible.builtin.copy:
    src: "{{ item.path }}"
    # With a slash at its end the folder is made where it is missing.
    dest: "{{ rtproof_root }}/{{ item.path | dirname }}/"
    owner: "{{ 'root' if rtproof_root == '' else omit }}"
    group: "{{ 'root' if rtproof_root == '' else omit }}"
    mode: "{{ item.mode }}"
  loop: "{{ rtproof_files }}"
  loop_control:
    label: "{{ item.path }}"
  notify:
    - Systemd reads its units
    - GRUB's menu is written

- name: Files are away
  ansible.builtin.file:
    path: "{{ rtproof_root }}{{ item }}"
    state: absent
  loop: "{{ rtproof_away }}"

- name: Handlers run before units are started
  ansible.builtin.meta: flush_handlers

- name: Units that stand in the way
  ansible.builtin.systemd_service:
    name: "{{ item.name }}"
    state: "{{ item.state }}"
    enabled: "{{ item.enabled | default(omit) }}"
    masked: "{{ item.masked | default(omit) }}"
  loop: "{{ rtproof_units }}"
  loop_control:
    label: "{{ item.name }}"
  register: rtproof_unit
  # What is not installed needs no stopping.
  failed_when:
    - rtproof_unit is failed
    - "'Could not find' not in (rtproof_unit.msg | default(''))"
  when: rtproof_root == ''

- name: Values of the running kernel are read
  ansible.builtin.command:
    argv: "{{ ['grep', '-sH', ''] + rtproof_paths }}"
  vars: &paths
    rtproof_paths: "{{ rtproof_values | map(attribute='paths') | flatten | map('regex_replace', '^', rtproof_root) }}"
  register: rtproof_lines
  changed_when: false
  # 2: one of them is not there.
  failed_when: rtproof_lines.rc > 2
  check_mode: false
  when: rtproof_values | length > 0

- name: Values that this machine has not
  ansible.builtin.debug:
    msg: "{{ rtproof_root }}{{ item.1 }}: not there, or empty"
  loop: "{{ rtproof_values | subelements('paths') }}"
  loop_control: &label
    label: "{{ item.1 }}"
  vars: &value
    rtproof_line: "{{ '^' ~ ((rtproof_root ~ item.1) | regex_escape) ~ ':' }}"
    rtproof_found: "{{ rtproof_lines.stdout_lines | select('match', rtproof_line) | map('regex_replace', rtproof_line, '') | map('trim') }}"
  when: rtproof_found | length == 0

- name: Values of the running kernel that are to change
  ansible.builtin.debug:
    msg: "{{ item.1 }}: {{ rtproof_found[0] }} -> {{ item.0.value }} ({{ item.0.why }})"
  loop: "{{ rtproof_values | subelements('paths') }}"
  loop_control: *label
  vars: *value
  when: rtproof_found | length > 0 and rtproof_found[0] is not search(item.0.expected)
  changed_when: ansible_check_mode

- name: Values of the running kernel are written
  ansible.builtin.command:
    argv: [tee, "{{ rtproof_root }}{{ item.1 }}"]
    stdin: "{{ item.0.value }}"
  loop: "{{ rtproof_values | subelements('paths') }}"
  loop_control: *label
  vars: *value
  when: rtproof_found | length > 0 and rtproof_found[0] is not search(item.0.expected)
  changed_when: true

- name: Values of the running kernel are read back
  ansible.builtin.command:
    argv: "{{ ['grep', '-sH', ''] + rtproof_paths }}"
  vars: *paths
  register: rtproof_lines
  changed_when: false
  failed_when: rtproof_lines.rc > 2
  check_mode: false
  when: rtproof_values | length > 0

- name: Values that the kernel did not take
  ansible.builtin.fail:
    msg: "{{ item.1 }} is {{ rtproof_found[0] }} after writing {{ item.0.value }}"
  loop: "{{ rtproof_values | subelements('paths') }}"
  loop_control: *label
  vars: *value
  when:
    - not ansible_check_mode
    - rtproof_found | length > 0 and rtproof_found[0] is not search(item.0.expected)

- name: Units of ours
  ansible.builtin.systemd_service:
    name: "{{ item }}"
    enabled: true
    state: started
  loop: "{{ rtproof_own_units }}"
  when: rtproof_root == '' and not ansible_check_mode

- name: Words for a boot loader other than GRUB on Debian
  ansible.builtin.debug:
    msg: "add to the kernel's command line: {{ rtproof_words }}; take away first: {{ rtproof_words_removed }}"
  when: rtproof_words != '' and ansible_facts['os_family'] | default('') != 'Debian'
"#;

const SCRIPT_TASKS: &str = r#"
- name: What has an order, interrupts and kernel threads are looked at
  ansible.builtin.command:
    argv: [/usr/local/sbin/rtproof-tuning, check]
  register: rtproof_checked
  changed_when: rtproof_checked.rc != 0 and ansible_check_mode
  failed_when: false
  check_mode: false
  when: rtproof_root == ''

- name: What has an order, interrupts and kernel threads are set
  ansible.builtin.command:
    argv: [/usr/local/sbin/rtproof-tuning, start]
  when: rtproof_root == '' and rtproof_checked.rc | default(0) != 0
  changed_when: true
"#;

const HANDLERS: &str = r#"- name: Systemd reads its units
  ansible.builtin.systemd_service:
    daemon_reload: true
  when: rtproof_root == ''

- name: GRUB's menu is written
  ansible.builtin.command:
    argv: [update-grub]
  changed_when: true
  when:
    - rtproof_root == ''
    - rtproof_words != '' or rtproof_words_removed | length > 0
    - ansible_facts['os_family'] | default('') == 'Debian'
"#;

/// The role's handlers as those of a play.
fn handlers_of_play() -> String {
    let line = |line: &str| match line.is_empty() {
        true => "\n".to_owned(),
        false => format!("    {line}\n"),
    };
    HANDLERS.lines().map(line).collect()
}

const UNDO: &str = r#"- name: Real-time tuning is taken back
  hosts: rtproof
  become: true
  gather_subset: ["!all"]
  vars_files:
    - roles/rtproof/defaults/main.yml
    - roles/rtproof/vars/main.yml
  tasks:
    - name: Units of ours end
      ansible.builtin.systemd_service:
        name: "{{ item }}"
        enabled: false
        state: stopped
      loop: "{{ rtproof_own_units }}"
      register: rtproof_unit
      failed_when:
        - rtproof_unit is failed
        - "'Could not find' not in (rtproof_unit.msg | default(''))"
      when: rtproof_root == ''

    - name: Values of the running kernel are read
      ansible.builtin.command:
        argv: "{{ ['grep', '-sH', ''] + rtproof_paths }}"
      vars:
        rtproof_paths: "{{ rtproof_before | map(attribute='path') | map('regex_replace', '^', rtproof_root) }}"
      register: rtproof_lines
      changed_when: false
      failed_when: rtproof_lines.rc > 2
      check_mode: false
      when: rtproof_before | length > 0

    - name: Values that are still ours are put back
      ansible.builtin.command:
        argv: [tee, "{{ rtproof_root }}{{ item.path }}"]
        stdin: "{{ item.value }}"
      loop: "{{ rtproof_before }}"
      loop_control:
        label: "{{ item.path }}"
      vars:
        rtproof_line: "{{ '^' ~ ((rtproof_root ~ item.path) | regex_escape) ~ ':' }}"
        rtproof_found: "{{ rtproof_lines.stdout_lines | select('match', rtproof_line) | map('regex_replace', rtproof_line, '') | map('trim') }}"
      when: rtproof_found | length > 0 and rtproof_found[0] is search(item.ours)
      changed_when: true

    - name: Files are taken away
      ansible.builtin.file:
        path: "{{ rtproof_root }}/{{ item.path }}"
        state: absent
      loop: "{{ rtproof_files }}"
      loop_control:
        label: "{{ item.path }}"
      notify:
        - Systemd reads its units
        - GRUB's menu is written

    - name: Units are as they were
      ansible.builtin.systemd_service:
        name: "{{ item.name }}"
        masked: "{{ item.masked }}"
        enabled: "{{ item.enabled | default(omit) }}"
        state: "{{ item.state | default(omit) }}"
      loop: "{{ rtproof_units_before }}"
      loop_control:
        label: "{{ item.name }}"
      register: rtproof_unit
      failed_when:
        - rtproof_unit is failed
        - "'Could not find' not in (rtproof_unit.msg | default(''))"
      when: rtproof_root == ''
"#;
