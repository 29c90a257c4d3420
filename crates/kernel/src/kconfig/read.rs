//! Reads Kconfig files: options, what surrounds them, what they source.

use std::path::Path;

use super::{Definition, KconfigOptions};

/// How deep files source each other at most; the kernel stays below 10.
const DEPTH_MAX: u32 = 40;

/// Lines of an option's help that are kept.
const HELP_MAX: usize = 4;

/// Something that surrounds options.
#[derive(Clone, Debug, Default)]
struct Frame {
    kind: &'static str,
    depends: Vec<String>,
}

/// What `depends on` belongs to.
enum Entry {
    Option(String),
    Frame,
    Other,
}

struct Reader<'a> {
    source: &'a Path,
    srcarch: &'a str,
    options: KconfigOptions,
    frames: Vec<Frame>,
}

/// The options of the source for an architecture, named as its folder below `arch`.
pub fn read(source: &Path, srcarch: &str) -> KconfigOptions {
    let mut reader =
        Reader { source, srcarch, options: KconfigOptions::default(), frames: Vec::new() };
    reader.file("Kconfig", 0);
    reader.options
}

impl Reader<'_> {
    fn file(&mut self, path: &str, depth: u32) {
        let path = path.replace("$(SRCARCH)", self.srcarch).replace("$SRCARCH", self.srcarch);
        let bytes = rtproof_host::door::read_bytes(&self.source.join(&path), crate::CONFIG_MAX);
        match bytes.ok().filter(|_| depth < DEPTH_MAX && !path.contains('$')) {
            Some(bytes) => self.text(&String::from_utf8_lossy(&bytes), depth),
            None => self.options.unread.push(path),
        }
    }

    fn text(&mut self, text: &str, depth: u32) {
        let text = text.replace("\\\n", " ");
        let mut entry = Entry::Other;
        let mut help: Option<usize> = None;
        let mut in_help = false;
        for line in text.lines() {
            let indent = indent(line);
            if in_help && line.trim().is_empty() {
                continue;
            }
            if in_help {
                let from = *help.get_or_insert(indent);
                if indent >= from && indent > 0 {
                    if let Entry::Option(name) = &entry
                        && let Some(last) = self.last(name)
                        && last.help.len() < HELP_MAX
                    {
                        last.help.push(line.trim().to_owned());
                    }
                    continue;
                }
                in_help = false;
            }
            let line = uncommented(line).trim();
            let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let rest = rest.trim();
            match word {
                "help" | "---help---" => (help, in_help) = (None, true),
                "config" | "menuconfig" => {
                    self.define(rest);
                    entry = Entry::Option(rest.to_owned());
                }
                "if" => self.open("if", vec![rest.to_owned()]),
                "menu" | "choice" => {
                    self.open(if word == "menu" { "menu" } else { "choice" }, Vec::new());
                    entry = Entry::Frame;
                }
                "endif" | "endmenu" | "endchoice" => {
                    let kind = word.trim_start_matches("end");
                    if self.frames.last().is_some_and(|frame| frame.kind == kind) {
                        self.frames.pop();
                    }
                    entry = Entry::Other;
                }
                "comment" | "mainmenu" => entry = Entry::Other,
                "source" | "rsource" => {
                    self.file(rest.trim_matches('"'), depth + 1);
                    entry = Entry::Other;
                }
                "depends" => {
                    let condition = rest.strip_prefix("on").unwrap_or(rest).trim();
                    self.depends(&entry, condition);
                }
                _ => {
                    if let Entry::Option(name) = &entry {
                        self.of_option(name, word, rest);
                    }
                }
            }
        }
    }

    fn open(&mut self, kind: &'static str, depends: Vec<String>) {
        self.frames.push(Frame { kind, depends });
    }

    fn define(&mut self, name: &str) {
        let definition = Definition {
            depends: self.frames.iter().flat_map(|frame| frame.depends.clone()).collect(),
            prompt: None,
            in_choice: self.frames.iter().any(|frame| frame.kind == "choice"),
            text: None,
            help: Vec::new(),
        };
        self.options.defined.entry(name.to_owned()).or_default().push(definition);
    }

    fn depends(&mut self, entry: &Entry, condition: &str) {
        let depends = match entry {
            Entry::Option(name) => self.last(name).map(|it| &mut it.depends),
            Entry::Frame => self.frames.last_mut().map(|frame| &mut frame.depends),
            Entry::Other => None,
        };
        if let Some(depends) = depends {
            depends.push(condition.to_owned());
        }
    }

    fn last(&mut self, name: &str) -> Option<&mut Definition> {
        self.options.defined.get_mut(name)?.last_mut()
    }

    fn of_option(&mut self, name: &str, word: &str, rest: &str) {
        match word {
            "bool" | "tristate" | "int" | "hex" | "string" | "prompt" if !rest.is_empty() => {
                let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
                let parts = quote.and_then(|quote| rest[1..].rsplit_once(quote));
                let condition = parts.map_or("", |it| it.1).trim();
                let condition = condition.strip_prefix("if ").unwrap_or_default().to_owned();
                if let Some(last) = self.last(name) {
                    last.prompt = Some(condition);
                    last.text = parts.map(|it| it.0.to_owned());
                }
            }
            "select" | "imply" => {
                let target = rest.split_whitespace().next().unwrap_or_default();
                let by = self.options.selects.entry(target.to_owned()).or_default();
                if word == "select" && !by.iter().any(|known| known == name) {
                    by.push(name.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// Columns before the first character; a tab ends at each eighth.
fn indent(line: &str) -> usize {
    let mut column = 0;
    for c in line.chars() {
        match c {
            ' ' => column += 1,
            '\t' => column = column / 8 * 8 + 8,
            _ => break,
        }
    }
    column
}

/// Without a comment; `#` within quotes does not begin one.
fn uncommented(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the test's own files")]

    use std::collections::BTreeMap;

    use super::*;

    const TOP: &str = "\
mainmenu \"x\"\nsource \"arch/$(SRCARCH)/Kconfig\"\n\
config EXPERT\n\tbool \"experts\"\n\thelp\n\t  config NOT_ONE\n\n\t  more help\n\
config ARCH_SUPPORTS_RT\n\tbool\n\
choice\n\tprompt \"model\"\n\
config PREEMPT_NONE\n\tbool \"none\"\n\
config PREEMPT_RT\n\tbool \"RT\"\n\tdepends on EXPERT && ARCH_SUPPORTS_RT\n\tselect PREEMPTION\n\
endchoice\n\
config PREEMPTION\n\tbool\n\
menu \"debug\"\n\tdepends on DEBUG_KERNEL\n\
config DEBUG_PREEMPT\n\tbool \"check # counts\" if EXPERT\n\tdepends on PREEMPTION # here\n\
endmenu\n";

    fn options(arch: &str) -> KconfigOptions {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("arch/x86")).unwrap();
        std::fs::write(tree.path().join("Kconfig"), TOP).unwrap();
        std::fs::write(tree.path().join("arch/x86/Kconfig"), arch).unwrap();
        read(tree.path(), "x86")
    }

    fn config(set: &[&str]) -> BTreeMap<String, String> {
        set.iter().map(|name| ((*name).to_owned(), "y".to_owned())).collect()
    }

    #[test]
    fn the_condition_that_fails_is_named() {
        let plain = options("config X86\n\tdef_bool y\n");
        let said = plain.why_not("PREEMPT_RT", "y", &config(&["EXPERT"]));
        assert_eq!(
            said,
            [
                "depends on ARCH_SUPPORTS_RT, which does not hold; nothing in this source selects it \
              for this architecture"
            ]
        );
        let patched = options("config X86\n\tdef_bool y\n\tselect ARCH_SUPPORTS_RT\n");
        let said = patched.why_not("PREEMPT_RT", "y", &config(&["ARCH_SUPPORTS_RT"]));
        assert_eq!(said, ["depends on EXPERT, which does not hold"]);
        let all = config(&["EXPERT", "ARCH_SUPPORTS_RT"]);
        assert_eq!(
            patched.why_not("PREEMPT_RT", "y", &all),
            ["another option of its choice is set"]
        );
        let said = patched.why_not("DEBUG_PREEMPT", "y", &config(&["EXPERT", "PREEMPTION"]));
        assert_eq!(
            said,
            ["depends on DEBUG_KERNEL, which does not hold; this source does not \
                           define it"]
        );
        assert_eq!(
            patched.why_not("NOT_ONE", "y", &all),
            ["no Kconfig file of this source defines NOT_ONE"]
        );
        let said = patched.why_not("PREEMPTION", "n", &config(&["PREEMPT_RT"]));
        assert_eq!(said, ["selected by PREEMPT_RT"]);
    }

    #[test]
    fn a_file_that_is_not_there_is_not_taken_as_empty() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("Kconfig"), "source \"gone/Kconfig\"\n").unwrap();
        let said = read(tree.path(), "x86").why_not("A", "y", &BTreeMap::new());
        assert!(said[0].contains("that could be read"), "{said:?}");
    }
}
