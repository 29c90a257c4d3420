//! GRUB 2: its menu (grub.cfg), its configuration in /etc/default and its environment block.

use super::grub_script::{GrubScript, MenuEntry, Statement};
use super::loader::{
    AFTER_A_TRIAL, BootEntry, ID, Loader, LoaderContext, LoaderKind, Method, PANIC, TITLE, Word,
    WrittenEntry,
};
use super::{BootError, BootView, KernelFiles, cmdline, efi, grub_script};
use crate::change::{Bytes, Change};

/// grub.cfg and what goes with it.
#[derive(Clone, Debug)]
pub(crate) struct GrubConfig {
    pub folder: String,
    pub text: String,
    pub(super) script: GrubScript,
    /// What GRUB keeps between boots.
    pub environment: Environment,
}

impl GrubConfig {
    pub(crate) fn path(&self) -> String {
        format!("{}/grub.cfg", self.folder)
    }

    pub(crate) fn custom(&self) -> String {
        format!("{}/custom.cfg", self.folder)
    }

    /// What `default` is set to when no boot was chosen once: variables put in, empty for the
    /// first.
    pub(super) fn default_spec(&self, custom: &GrubScript) -> String {
        let statements = self.script.top.iter().chain(&custom.top);
        let values = statements.filter_map(Statement::assignment);
        let mut defaults =
            values.filter(|(name, value)| *name == "default" && !value.contains("next_entry"));
        let value = defaults.next_back().map_or("0", |(_, value)| value);
        match value {
            "${saved_entry}" | "$saved_entry" => {
                self.environment.get("saved_entry").unwrap_or_default()
            }
            value => value.to_owned(),
        }
    }

    /// Whether grub.cfg takes a default from the environment.
    pub(crate) fn is_saved_default(&self) -> bool {
        let values = self.script.top.iter().filter_map(Statement::assignment);
        let mut defaults = values.filter(|(name, _)| *name == "default");
        defaults.any(|(_, value)| ["${saved_entry}", "$saved_entry"].contains(&value))
    }

    /// Whether grub.cfg reads custom.cfg after it has set the default.
    pub(crate) fn reads_custom(&self) -> bool {
        let mut is_after = false;
        for statement in &self.script.top {
            if statement.assignment().is_some_and(|(name, _)| name == "default") {
                is_after = false;
            }
            let is_source = ["source", "."].contains(&statement.command());
            if is_source && statement.words.iter().any(|word| word.text.ends_with("/custom.cfg")) {
                is_after = true;
            }
        }
        is_after
    }

    /// Why a choice for one boot cannot be made safely; `None` when it can.
    pub(crate) fn no_trial(&self, view: &BootView<'_>) -> Option<String> {
        let path = self.path();
        let has = |command: &str, word: &str| {
            self.script.top.iter().any(|statement| {
                statement.command() == command
                    && (word.is_empty() || statement.words.iter().any(|known| known.text == word))
            })
        };
        let takes = self.script.top.iter().filter_map(Statement::assignment);
        let takes = takes.into_iter().any(|assignment| assignment == ("default", "${next_entry}"));
        if !takes || !has("load_env", "") || !has("save_env", "next_entry") {
            return Some(format!(
                "{path} does not look at next_entry, so an entry cannot be booted once; make it \
                 anew with update-grub or grub2-mkconfig"
            ));
        }
        if let Some(why) = &self.environment.unusable {
            return Some(why.clone());
        }
        super::why_grub_cannot_write(view.root(), &self.environment.path)
    }
}

// GRUB's environment block: what it boots by default, and what it boots once.

/// A block as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// Path of the block, as the caller gave it.
    pub path: String,
    block: Bytes,
    /// Why GRUB cannot write a choice into it.
    pub unusable: Option<String>,
}

/// Reads the block at a path; without one, one that is unusable.
pub(crate) fn read_environment(view: &BootView<'_>, path: &str) -> Result<Environment, BootError> {
    let found = view.bytes(path)?;
    let is_there = found.is_some();
    let block = Bytes(found.unwrap_or_default());
    let wrong = match block.0.len() {
        _ if !is_there => Some("is not there".into()),
        _ if !block.0.starts_with(HEAD) => Some("is no environment block of GRUB".into()),
        SIZE => None,
        bytes => Some(format!("has {bytes} bytes, and GRUB keeps {SIZE}")),
    };
    let unusable =
        wrong.map(|why: String| format!("{path} {why}; make one with: grub-editenv {path} create"));
    Ok(Environment { path: path.into(), block, unusable })
}

impl Environment {
    /// A variable; the last one of a name.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = variable(&self.block, name).ok()??;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// Whether a variable has a value now.
    pub(crate) fn now(
        &self,
        view: &BootView<'_>,
        name: &str,
        value: &str,
    ) -> Result<bool, BootError> {
        Ok(read_environment(view, &self.path)?.get(name).as_deref() == Some(value))
    }

    /// The change that sets a variable.
    pub(crate) fn set(&self, key: &str, value: &str) -> Change {
        Change::GrubEnv { path: self.path.clone(), key: key.into(), value: value.into() }
    }
}

// Keeps the default of the menu when a kernel comes: update-grub sorts by version, and the first
// one is the default. The lines stand before all others in custom.cfg: what others set there, and
// an entry of ours that is confirmed, still decides.

impl Menu {
    /// The change that names the default entry by its kernel; `None` where no name of it lasts.
    fn kept(&self, view: &BootView<'_>) -> Result<Option<Change>, BootError> {
        let Some(spec) = self.lasting()? else { return Ok(None) };
        let path = self.config.custom();
        let old = view.bytes(&path)?.unwrap_or_default();
        let lines = format!(
            "# Of rtproof tune: the default of before a kernel was installed; rtproof tune undo\n\
             # takes it away.\n{DEFAULT}  set default='{spec}'\nfi\n"
        );
        let mut text = lines.replace('\n', efi::line_end(&old)).into_bytes();
        text.extend(old);
        let changes = [super::file_change(&path, text)];
        let then = custom_entries(&BootView::with(view.root(), &changes), &path)?;
        let [change] = changes;
        Ok((self.config.default_spec(&then) == spec).then_some(change))
    }

    /// A name of the default entry that a new kernel does not take: identities of its menus and
    /// of an entry with the same kernel and command line, which has the kernel's release.
    fn lasting(&self) -> Result<Option<String>, BootError> {
        let Some(at) = self.default.filter(|_| self.config.reads_custom()) else {
            return Ok(None);
        };
        let Some(default) = self.entry_at(at)? else { return Ok(None) };
        let file = default.kernel.rsplit('/').next().unwrap_or_default();
        let Some((_, release)) = file.split_once('-') else { return Ok(None) };
        let entries = &self.config.script.entries;
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_submenu) {
            let has_release = entry.id.as_ref().is_some_and(|id| id.contains(release));
            let Some(found) = self.entry_at(at)?.filter(|_| has_release) else { continue };
            let is_same = (&found.kernel, &found.initrd, &found.cmdline)
                == (&default.kernel, &default.initrd, &default.cmdline);
            let ids: Option<Vec<&str>> = (1..=entry.place.len())
                .map(|depth| {
                    let menu = entries.iter().find(|it| it.place == entry.place[..depth])?;
                    menu.id.as_deref().filter(|id| !id.contains(['\'', '>']))
                })
                .collect();
            if let (true, Some(ids)) = (is_same, ids) {
                return Ok(Some(ids.join(">")));
            }
        }
        Ok(None)
    }
}

// Our entry in custom.cfg: a copy of an entry of grub.cfg with another command line.

/// Commands that load a kernel with a command line.
const LINUX: &[&str] = &["linux", "linux16", "linuxefi"];

/// Commands that load its initial RAM disk.
const INITRD: &[&str] = &["initrd", "initrd16", "initrdefi"];

/// Words of an entry that is for repairs.
const RESCUE: &[&str] = &["emergency", "recovery", "rescue", "single"];

/// What an entry of grub.cfg has after its title that ours keeps, with whether a value follows.
const KEPT: &[(&str, bool)] = &[("--class", true), ("--unrestricted", false), ("--users", true)];

/// Makes ours the default, but not when another entry was chosen for one boot.
pub(super) const DEFAULT: &str = "if [ -z \"${boot_once}\" ]; then\n";

/// A menu in grub.cfg.
#[derive(Debug)]
pub(super) struct Menu {
    pub(super) config: GrubConfig,
    pub(super) default: Option<usize>,
    base: Option<usize>,
    /// The kernel in place of the base's.
    own: Option<KernelFiles>,
}

impl Menu {
    pub(super) fn read(view: &BootView<'_>, config: GrubConfig) -> Result<Self, BootError> {
        let custom = custom_entries(view, &config.custom())?;
        let spec = config.default_spec(&custom);
        // An entry that was written into custom.cfg by hand: what it boots is not known.
        let is_custom = custom
            .entries
            .iter()
            .any(|entry| entry.title == spec || entry.id.as_ref().is_some_and(|id| *id == spec));
        let default = if is_custom { None } else { find(&config.script, &spec) };
        Ok(Self { config, default, base: default, own: None })
    }

    pub(super) fn loader(
        mut self,
        view: &BootView<'_>,
        around: &LoaderContext,
    ) -> Result<Loader, BootError> {
        let default = self.default.map_or(Ok(None), |at| self.entry_at(at))?;
        let is_running = |entry: &BootEntry| around.is_running(&entry.kernel);
        if !default.as_ref().is_some_and(is_running) {
            self.base = self.running(around)?.or(self.default);
        }
        let base = self.base.map_or(Ok(None), |at| self.entry_at(at))?;
        if base.is_none() {
            let why = "no entry that boots Linux, neither the default nor one of the running \
                       kernel; see what boots this machine";
            return Err(BootError::file(self.config.path(), why));
        }
        let no_entry = (!self.config.reads_custom()).then(|| {
            format!(
                "{} does not read {} after it has set the default (41_custom of grub-mkconfig is \
                 not there)",
                self.config.path(),
                self.config.custom()
            )
        });
        let is_of_release = base.as_ref().is_some_and(is_running);
        let kernels = self.kernels()?;
        let files =
            [self.config.path(), self.config.custom(), self.config.environment.path.clone()];
        Ok(Loader {
            kind: LoaderKind::Grub,
            name: "GRUB 2".into(),
            files: files.into_iter().filter(|path| view.exists(path)).collect(),
            default,
            base,
            is_of_release,
            kernels,
            secure_boot: around.firmware.secure_boot,
            no_trial: no_entry.clone().or_else(|| self.config.no_trial(view)),
            no_entry,
            id: ID.into(),
            limit: around.limit,
            method: Box::new(self),
        })
    }

    /// The first entry of the running kernel that is not for repairs.
    fn running(&self, around: &LoaderContext) -> Result<Option<usize>, BootError> {
        for at in 0..self.config.script.entries.len() {
            if self.config.script.entries[at].is_submenu {
                continue;
            }
            let Some(entry) = self.entry_at(at)? else { continue };
            let is_rescue = cmdline::split(&entry.cmdline).iter().any(|token| {
                RESCUE.contains(&token.text.as_str()) || token.text.starts_with("systemd.unit=")
            });
            if around.is_running(&entry.kernel) && !is_rescue {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Kernels of all entries.
    fn kernels(&self) -> Result<Vec<String>, BootError> {
        let mut kernels = Vec::new();
        for at in 0..self.config.script.entries.len() {
            if !self.config.script.entries[at].is_submenu {
                kernels.extend(self.entry_at(at)?.map(|entry| entry.kernel));
            }
        }
        Ok(kernels)
    }

    fn entry_at(&self, at: usize) -> Result<Option<BootEntry>, BootError> {
        let entry = &self.config.script.entries[at];
        read_entry(&self.config.path(), &self.config.text, entry)
    }

    /// The lines of our entry.
    fn lines(&self, words: &[Word]) -> Result<String, BootError> {
        let path = self.config.path();
        let text = &self.config.text;
        let Some(at) = self.base else { return Ok(String::new()) };
        let base = &self.config.script.entries[at];
        let mut body = text[base.body.clone()].to_owned();
        let start = base.body.start;
        let statements = grub_script::statements(&path, text, base.body.clone(), base.line)?;
        let has_initrd = statements.iter().any(|it| INITRD.contains(&it.command()));
        for statement in statements.iter().rev() {
            let whole = statement.words[0].span.start
                ..statement.words.last().unwrap_or(&statement.words[0]).span.end;
            match statement.command() {
                // It would make a trial the default of a menu that keeps the last choice.
                "savedefault" => {
                    body.replace_range(whole.start - start..whole.end - start, "true");
                }
                command if LINUX.contains(&command) => {
                    let Some((first, rest)) = statement.words[1..].split_first() else { continue };
                    let tokens = rest.iter().map(|word| word.token(text)).collect();
                    let mut tokens = cmdline::edit(tokens, words, grub_script::quoted)?;
                    // Behind a condition there may be one more line, without what the other has.
                    if !cmdline::has(&cmdline::kernel_line(&tokens), PANIC) {
                        tokens = cmdline::edit(tokens, &[Word::set(PANIC)], grub_script::quoted)?;
                    }
                    let kernel = match &self.own {
                        Some(own) => &own.kernel,
                        None => &text[first.span.clone()],
                    };
                    let line = format!("{kernel} {}", cmdline::join(&tokens));
                    let mut line = line.trim_end().to_owned();
                    if let Some(path) = self.own.as_ref().and_then(|own| own.initrd.as_ref())
                        && !has_initrd
                    {
                        line += &format!("\n\tinitrd\t{path}");
                    }
                    body.replace_range(first.span.start - start..whole.end - start, &line);
                }
                command if INITRD.contains(&command) => {
                    let Some(own) = &self.own else { continue };
                    let of_base = statement.words[1..].iter().map(|it| &text[it.span.clone()]);
                    let line = match own.initrds(of_base).as_slice() {
                        [] => "true".into(),
                        paths => format!("{command}\t{}", paths.join(" ")),
                    };
                    body.replace_range(whole.start - start..whole.end - start, &line);
                }
                // `Loading Linux 6.1.0-50-amd64 ...`: it would name another kernel.
                "echo" => {
                    let Some(own) = &self.own else { continue };
                    let Some(old) = &own.base else { continue };
                    let line = text[whole.clone()].replace(old, &own.release);
                    body.replace_range(whole.start - start..whole.end - start, &line);
                }
                _ => {}
            }
        }
        let mut head = format!("menuentry '{TITLE}'");
        let mut options = base.head.iter().skip(2);
        while let Some(option) = options.next() {
            let Some((_, has_value)) = KEPT.iter().find(|(name, _)| *name == option.text) else {
                continue;
            };
            head += &format!(" {}", option.text);
            if let Some(value) = options.next().filter(|_| *has_value) {
                head += &format!(" {}", &text[value.span.clone()]);
            }
        }
        Ok(format!("{head} --id '{ID}' {{{body}}}\n"))
    }
}

impl Method for Menu {
    fn write(&self, view: &BootView<'_>, words: &[Word]) -> Result<WrittenEntry, BootError> {
        let lines = self.lines(words)?;
        if !self.config.reads_custom() {
            let printed = format!(
                "Add to /etc/grub.d/40_custom and make {} anew (update-grub or grub2-mkconfig \
                 -o):\n\n{lines}",
                self.config.path()
            );
            return Ok(WrittenEntry { changes: vec![], printed: Some(printed) });
        }
        let change = efi::with_lines(view, &self.config.custom(), &lines)?;
        Ok(WrittenEntry { changes: vec![change], printed: None })
    }

    fn entry(&self, view: &BootView<'_>) -> Result<Option<BootEntry>, BootError> {
        let path = self.config.custom();
        let Some(text) = view.text(&path)? else { return Ok(None) };
        let script = grub_script::parse_script(&path, &text)?;
        let ours = script.entries.iter().find(|entry| entry.id.as_deref() == Some(ID));
        ours.map_or(Ok(None), |entry| read_entry(&path, &text, entry))
    }

    fn take(&mut self, files: KernelFiles) -> Result<(), String> {
        self.own = Some(files);
        Ok(())
    }

    fn trial(&self, _: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![self.config.environment.set("next_entry", ID)])
    }

    fn confirm(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        let path = self.config.custom();
        let lines = efi::lines_between_marks(view, &path)?;
        let script = grub_script::parse_script(&path, &lines)?;
        let ours = script.entries.iter().find(|entry| entry.id.as_deref() == Some(ID));
        let Some(ours) = ours else { return Err(BootError::not_written(path)) };
        let entry = &lines[..=ours.body.end];
        // By number: a fallback by identity is known to newer GRUBs alone, and one within a
        // submenu to none.
        let fallback = self.default.map(|at| &self.config.script.entries[at].place[..]);
        let fallback = match fallback {
            Some(&[place]) => place,
            _ => 0,
        };
        let lines = format!("{entry}\n{}", default_lines(ID, fallback));
        Ok(vec![efi::with_lines(view, &path, &lines)?])
    }

    fn keep(&self, view: &BootView<'_>) -> Result<Option<Change>, BootError> {
        self.kept(view)
    }

    fn is_armed(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        self.config.environment.now(view, "next_entry", ID)
    }

    fn is_default(&self, view: &BootView<'_>) -> Result<bool, BootError> {
        is_default(view, &self.config.custom(), ID)
    }

    fn removal(&self, view: &BootView<'_>) -> Result<Vec<Change>, BootError> {
        removal(view, &self.config.custom())
    }

    fn added_bytes(&self, entry: &BootEntry) -> usize {
        "BOOT_IMAGE= ".len() + entry.kernel.len()
    }

    fn fallback(&self) -> String {
        fallback_sentence()
    }
}

/// Lines that make an entry the default.
pub(super) fn default_lines(id: &str, fallback: usize) -> String {
    format!("{DEFAULT}  set default='{id}'\n  set fallback='{fallback}'\nfi\n")
}

/// Whether custom.cfg makes an entry the default.
pub(super) fn is_default(view: &BootView<'_>, path: &str, id: &str) -> Result<bool, BootError> {
    let text = view.text(path)?.unwrap_or_default();
    let script = grub_script::parse_script(path, &text)?;
    let mut defaults = script.top.iter().filter_map(Statement::assignment);
    Ok(defaults.rfind(|(name, _)| *name == "default").is_some_and(|(_, value)| value == id))
}

/// What GRUB does when the entry does not come up.
pub(super) fn fallback_sentence() -> String {
    format!("GRUB forgets the choice before it starts the kernel: {AFTER_A_TRIAL}")
}

/// Our lines taken out of custom.cfg; the file too when it held nothing else.
pub(super) fn removal(view: &BootView<'_>, path: &str) -> Result<Vec<Change>, BootError> {
    let removal = efi::removal(view, path)?.map(|change| match &change {
        Change::File { content: Some(rest), .. } if rest.0.is_empty() => super::removed_file(path),
        _ => change,
    });
    Ok(removal.into_iter().collect())
}

/// custom.cfg as others wrote it.
pub(super) fn custom_entries(view: &BootView<'_>, path: &str) -> Result<GrubScript, BootError> {
    grub_script::parse_script(path, &efi::lines_outside_marks(view, path)?)
}

/// What an entry boots; `None` for one that boots no Linux.
fn read_entry(path: &str, text: &str, entry: &MenuEntry) -> Result<Option<BootEntry>, BootError> {
    let statements = grub_script::statements(path, text, entry.body.clone(), entry.line)?;
    // Of several, behind conditions, the last one is where no condition holds.
    let Some(linux) = statements.iter().rev().find(|s| LINUX.contains(&s.command())) else {
        return Ok(None);
    };
    let Some((kernel, rest)) = linux.words[1..].split_first() else { return Ok(None) };
    let tokens: Vec<_> = rest.iter().map(|word| word.token(text)).collect();
    let initrd = statements.iter().rev().find(|s| INITRD.contains(&s.command()));
    let initrd = initrd.map_or(&[][..], |initrd| &initrd.words[1..]);
    let place: Vec<String> = entry.place.iter().map(usize::to_string).collect();
    Ok(Some(BootEntry {
        title: entry.title.clone(),
        id: entry.id.clone().unwrap_or_else(|| place.join(">")),
        kernel: kernel.text.clone(),
        initrd: initrd.iter().map(|word| word.text.clone()).collect(),
        cmdline: cmdline::kernel_line(&tokens),
        file: path.into(),
        line: linux.line,
    }))
}

/// The entry that `default` names: by number, title or identity, `>` between menus (`>>` is one
/// in a title); the first where nothing is named so.
fn find(script: &GrubScript, spec: &str) -> Option<usize> {
    let mut above: Vec<usize> = Vec::new();
    let mut found = None;
    for part in levels(spec) {
        let in_menu = |entry: &MenuEntry| {
            entry.place.len() == above.len() + 1 && entry.place.starts_with(&above)
        };
        let is_named = |entry: &MenuEntry| match part.parse::<usize>() {
            Ok(number) => entry.place.last() == Some(&number),
            Err(_) => entry.title == part || entry.id.as_ref() == Some(&part),
        };
        let at = script.entries.iter().position(|entry| in_menu(entry) && is_named(entry));
        let Some(at) = at else { break };
        above.clone_from(&script.entries[at].place);
        found = Some(at);
    }
    let is_entry = |at: &usize| !script.entries[*at].is_submenu;
    // A submenu alone shows that menu; its first entry is what boots in the end.
    let first_of = |at: usize| {
        let menu = &script.entries[at].place;
        (at..script.entries.len())
            .take_while(|&at| script.entries[at].place.starts_with(menu))
            .find(is_entry)
    };
    match found {
        Some(at) => first_of(at),
        None => (0..script.entries.len()).find(is_entry),
    }
}

/// Parts of a default between single `>`.
fn levels(spec: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut chars = spec.chars().peekable();
    while let Some(c) = chars.next() {
        let is_doubled = c == '>' && chars.next_if_eq(&'>').is_some();
        match parts.last_mut() {
            Some(last) if c != '>' || is_doubled => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts
}

// GRUB's environment block: 1024 bytes that GRUB itself can rewrite in place, so the size never
// changes (GRUB manual, "The GRUB environment block").

pub(crate) const HEAD: &[u8] = b"# GRUB Environment Block\n";

/// Size of a new block; an existing one keeps its own.
pub(crate) const SIZE: usize = 1024;

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockError {
    #[error("no environment block of GRUB; make one with grub-editenv FILE create")]
    Malformed,
    #[error("no room for the variable; remove others with grub-editenv FILE unset NAME")]
    Full,
    #[error("not a name of a variable")]
    Name,
}

pub(crate) fn empty() -> Bytes {
    let mut block = HEAD.to_vec();
    block.resize(SIZE, b'#');
    Bytes(block)
}

/// The lines of a block with their ends: `NAME=value\n`. A backslash keeps a line going: GRUB
/// escapes line ends and backslashes in values.
fn lines(block: &[u8]) -> Result<Vec<&[u8]>, BlockError> {
    let mut rest = block.strip_prefix(HEAD).ok_or(BlockError::Malformed)?;
    let mut lines = Vec::new();
    while !rest.is_empty() && rest.iter().any(|&byte| byte != b'#') {
        let mut is_escaped = false;
        let is_end = |&byte: &u8| {
            let is_end = byte == b'\n' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        };
        let end = rest.iter().position(is_end).ok_or(BlockError::Malformed)?;
        let (line, after) = rest.split_at(end + 1);
        lines.push(line);
        rest = after;
    }
    Ok(lines)
}

fn value_of<'l>(line: &'l [u8], key: &str) -> Option<&'l [u8]> {
    line.strip_prefix(key.as_bytes())?.strip_prefix(b"=")?.strip_suffix(b"\n")
}

/// The value of a variable, unescaped.
pub(crate) fn variable(block: &Bytes, key: &str) -> Result<Option<Vec<u8>>, BlockError> {
    let value = lines(&block.0)?.into_iter().rev().find_map(|line| value_of(line, key));
    Ok(value.map(|escaped| {
        let mut value = Vec::new();
        let mut bytes = escaped.iter();
        while let Some(&byte) = bytes.next() {
            value.push(if byte == b'\\' { bytes.next().copied().unwrap_or(byte) } else { byte });
        }
        value
    }))
}

/// The block with a variable set, or removed for `None`; all other bytes in their order.
pub(crate) fn with_variable(
    block: &Bytes,
    key: &str,
    value: Option<&[u8]>,
) -> Result<Bytes, BlockError> {
    if key.is_empty() || key.contains(['=', '\n', '#', '\\']) {
        return Err(BlockError::Name);
    }
    let mut new = HEAD.to_vec();
    let line = value.map(|value| {
        let mut line = format!("{key}=").into_bytes();
        for &byte in value {
            if matches!(byte, b'\\' | b'\n') {
                line.push(b'\\');
            }
            line.push(byte);
        }
        line.push(b'\n');
        line
    });
    let mut todo = line.as_deref();
    for old in lines(&block.0)? {
        match value_of(old, key) {
            Some(_) => new.extend_from_slice(todo.take().unwrap_or_default()),
            None => new.extend_from_slice(old),
        }
    }
    new.extend_from_slice(todo.unwrap_or_default());
    if new.len() > block.0.len() {
        return Err(BlockError::Full);
    }
    new.resize(block.0.len(), b'#');
    Ok(Bytes(new))
}

/// Whether two blocks have the same variables but for one, in the same order.
pub(crate) fn is_same_but_for(a: &Bytes, b: &Bytes, key: &str) -> bool {
    let others = |block: &Bytes| -> Option<Vec<Vec<u8>>> {
        let lines = lines(&block.0).ok()?;
        let other = |line: &&[u8]| value_of(line, key).is_none();
        Some(lines.into_iter().filter(other).map(<[u8]>::to_vec).collect())
    };
    a.0.len() == b.0.len() && others(a).is_some_and(|a| Some(a) == others(b))
}

#[cfg(test)]
mod env_tests {
    use super::*;
    use crate::testing::Tree;

    const SIGNATURE: &str = "# GRUB Environment Block\n";

    fn env(text: &str) -> Environment {
        let tree = Tree::new(&[("boot/grub/grubenv", text)]);
        read_environment(&BootView::new(&tree.root()), "/boot/grub/grubenv").unwrap()
    }

    #[test]
    fn a_block_of_1024_bytes() {
        let mut text =
            format!("{SIGNATURE}saved_entry=a b\nkernelopts=x\\\\y\\\nz\nsaved_entry=c\n");
        text += &"#".repeat(SIZE - text.len());
        let env = env(&text);
        assert_eq!(env.get("saved_entry").as_deref(), Some("c"));
        assert_eq!(env.get("kernelopts").as_deref(), Some("x\\y\nz"));
        assert_eq!((env.get("none"), &env.unusable), (None, &None));
    }

    #[test]
    fn invalid_blocks_are_errors_with_a_reason() {
        let short = env(&format!("{SIGNATURE}a=1\n"));
        assert!(short.unusable.as_ref().unwrap().contains("29 bytes"));
        assert_eq!(short.get("a").as_deref(), Some("1"));
        assert!(env("x").unusable.unwrap().contains("no environment block"));
        let none =
            read_environment(&BootView::new(&Tree::new(&[]).root()), "/boot/grub/grubenv").unwrap();
        assert!(none.unusable.unwrap().contains("grub-editenv /boot/grub/grubenv create"));
    }
}

#[cfg(test)]
mod grubenv_tests {
    use super::*;

    fn block(lines: &str) -> Bytes {
        let mut block = [HEAD, lines.as_bytes()].concat();
        block.resize(SIZE, b'#');
        Bytes(block)
    }

    #[test]
    fn a_variable_is_set_and_removed_and_the_rest_stays() {
        let old = block("saved_entry=0\nkernelopts=root=/dev/sda1 ro\nmenu_auto_hide=1\n");
        assert_eq!(variable(&old, "kernelopts").unwrap().unwrap(), b"root=/dev/sda1 ro");
        assert_eq!(variable(&old, "next_entry").unwrap(), None);
        let new = with_variable(&old, "next_entry", Some(b"real-time")).unwrap();
        assert_eq!(new.0.len(), SIZE);
        assert_eq!(variable(&new, "next_entry").unwrap().unwrap(), b"real-time");
        assert!(is_same_but_for(&old, &new, "next_entry") && old != new);
        assert_eq!(with_variable(&new, "next_entry", None).unwrap(), old);
        let changed = with_variable(&old, "saved_entry", Some(b"a\\b\nc")).unwrap();
        assert_eq!(variable(&changed, "saved_entry").unwrap().unwrap(), b"a\\b\nc");
        assert_eq!(with_variable(&changed, "saved_entry", Some(b"0")).unwrap(), old);
        assert!(!is_same_but_for(&changed, &old, "next_entry"));
        assert_eq!(with_variable(&empty(), "x", None).unwrap(), empty());
    }

    #[test]
    fn what_is_no_block_or_does_not_fit_is_refused() {
        for bad in [&b""[..], b"# GRUB", b"x=1\n", b"# GRUB Environment Block\nx=1"] {
            assert_eq!(variable(&Bytes(bad.to_vec()), "x"), Err(BlockError::Malformed));
        }
        let long = "x".repeat(SIZE);
        assert_eq!(with_variable(&empty(), "k", Some(long.as_bytes())), Err(BlockError::Full));
        assert_eq!(with_variable(&empty(), "k=", Some(b"1")), Err(BlockError::Name));
        // The last byte may be used.
        let fits = SIZE - HEAD.len() - "k=\n".len();
        assert!(with_variable(&empty(), "k", Some(&long.as_bytes()[..fits])).is_ok());
        assert!(with_variable(&empty(), "k", Some(&long.as_bytes()[..=fits])).is_err());
    }
}
