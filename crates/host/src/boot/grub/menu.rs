//! Our entry in custom.cfg: a copy of an entry of grub.cfg with another command line.

use super::{
    config::Config,
    script::{self, MenuEntry, Script, Statement},
};
use crate::boot::loader::{
    AFTER_A_TRIAL, Around, BootError, Change, Entry, ID, Kind, Loader, Method, PANIC, TITLE, View,
    Word, Written, block, cmdline, view,
};
use crate::boot::own::Files;

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
    pub(super) config: Config,
    pub(super) default: Option<usize>,
    base: Option<usize>,
    /// The kernel in place of the base's.
    own: Option<Files>,
}

impl Menu {
    pub(super) fn read(view: &View<'_>, config: Config) -> Result<Self, BootError> {
        let custom = others(view, &config.custom())?;
        let spec = config.default_spec(&custom);
        // An entry that was written into custom.cfg by hand: what it boots is not known.
        let is_custom = custom
            .entries
            .iter()
            .any(|entry| entry.title == spec || entry.id.as_ref().is_some_and(|id| *id == spec));
        let default = if is_custom { None } else { find(&config.script, &spec) };
        Ok(Self { config, default, base: default, own: None })
    }

    pub(super) fn loader(mut self, view: &View<'_>, around: &Around) -> Result<Loader, BootError> {
        let default = self.default.map_or(Ok(None), |at| self.entry_at(at))?;
        let is_running = |entry: &Entry| around.is_running(&entry.kernel);
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
            kind: Kind::Grub,
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
    fn running(&self, around: &Around) -> Result<Option<usize>, BootError> {
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

    pub(super) fn entry_at(&self, at: usize) -> Result<Option<Entry>, BootError> {
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
        let statements = script::statements(&path, text, base.body.clone(), base.line)?;
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
                    let mut tokens = cmdline::edit(tokens, words, script::quoted)?;
                    // Behind a condition there may be one more line, without what the other has.
                    if !cmdline::has(&cmdline::kernel_line(&tokens), PANIC) {
                        tokens = cmdline::edit(tokens, &[Word::set(PANIC)], script::quoted)?;
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
    fn write(&self, view: &View<'_>, words: &[Word]) -> Result<Written, BootError> {
        let lines = self.lines(words)?;
        if !self.config.reads_custom() {
            let printed = format!(
                "Add to /etc/grub.d/40_custom and make {} anew (update-grub or grub2-mkconfig \
                 -o):\n\n{lines}",
                self.config.path()
            );
            return Ok(Written { changes: vec![], printed: Some(printed) });
        }
        let change = block::put(view, &self.config.custom(), &lines)?;
        Ok(Written { changes: vec![change], printed: None })
    }

    fn entry(&self, view: &View<'_>) -> Result<Option<Entry>, BootError> {
        let path = self.config.custom();
        let Some(text) = view.text(&path)? else { return Ok(None) };
        let script = script::parse(&path, &text)?;
        let ours = script.entries.iter().find(|entry| entry.id.as_deref() == Some(ID));
        ours.map_or(Ok(None), |entry| read_entry(&path, &text, entry))
    }

    fn take(&mut self, files: Files) -> Result<(), String> {
        self.own = Some(files);
        Ok(())
    }

    fn trial(&self, _: &View<'_>) -> Result<Vec<Change>, BootError> {
        Ok(vec![self.config.environment.set("next_entry", ID)])
    }

    fn confirm(&self, view: &View<'_>) -> Result<Vec<Change>, BootError> {
        let path = self.config.custom();
        let lines = block::ours(view, &path)?;
        let script = script::parse(&path, &lines)?;
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
        Ok(vec![block::put(view, &path, &lines)?])
    }

    fn keep(&self, view: &View<'_>) -> Result<Option<Change>, BootError> {
        self.kept(view)
    }

    fn is_armed(&self, view: &View<'_>) -> Result<bool, BootError> {
        self.config.environment.now(view, "next_entry", ID)
    }

    fn is_default(&self, view: &View<'_>) -> Result<bool, BootError> {
        is_default(view, &self.config.custom(), ID)
    }

    fn removal(&self, view: &View<'_>) -> Result<Vec<Change>, BootError> {
        removal(view, &self.config.custom())
    }

    fn added_bytes(&self, entry: &Entry) -> usize {
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
pub(super) fn is_default(view: &View<'_>, path: &str, id: &str) -> Result<bool, BootError> {
    let text = view.text(path)?.unwrap_or_default();
    let script = script::parse(path, &text)?;
    let mut defaults = script.top.iter().filter_map(Statement::assignment);
    Ok(defaults.rfind(|(name, _)| *name == "default").is_some_and(|(_, value)| value == id))
}

/// What GRUB does when the entry does not come up.
pub(super) fn fallback_sentence() -> String {
    format!("GRUB forgets the choice before it starts the kernel: {AFTER_A_TRIAL}")
}

/// Our lines taken out of custom.cfg; the file too when it held nothing else.
pub(super) fn removal(view: &View<'_>, path: &str) -> Result<Vec<Change>, BootError> {
    let removal = block::removal(view, path)?.map(|change| match &change {
        Change::File { content: Some(rest), .. } if rest.0.is_empty() => view::gone(path),
        _ => change,
    });
    Ok(removal.into_iter().collect())
}

/// custom.cfg as others wrote it.
pub(super) fn others(view: &View<'_>, path: &str) -> Result<Script, BootError> {
    script::parse(path, &block::others(view, path)?)
}

/// What an entry boots; `None` for one that boots no Linux.
fn read_entry(path: &str, text: &str, entry: &MenuEntry) -> Result<Option<Entry>, BootError> {
    let statements = script::statements(path, text, entry.body.clone(), entry.line)?;
    // Of several, behind conditions, the last one is where no condition holds.
    let Some(linux) = statements.iter().rev().find(|s| LINUX.contains(&s.command())) else {
        return Ok(None);
    };
    let Some((kernel, rest)) = linux.words[1..].split_first() else { return Ok(None) };
    let tokens: Vec<_> = rest.iter().map(|word| word.token(text)).collect();
    let initrd = statements.iter().rev().find(|s| INITRD.contains(&s.command()));
    let initrd = initrd.map_or(&[][..], |initrd| &initrd.words[1..]);
    let place: Vec<String> = entry.place.iter().map(usize::to_string).collect();
    Ok(Some(Entry {
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
fn find(script: &Script, spec: &str) -> Option<usize> {
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
