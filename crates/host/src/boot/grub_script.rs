//! GRUB's script, read: statements of words, and the menu that they make.
//!
//! Nothing is run. What is needed is which entries there are, where each one's body is, and a
//! few statements of the top level (`set default=`, `source`, ...). Words are split and quoted as
//! in the GRUB manual, "Shell-like scripting".

use std::ops::Range;

use super::BootError;
use super::cmdline::Token;

/// Blocks within blocks: a menu has two or three.
const DEPTH_MAX: usize = 64;

const ENTRIES_MAX: usize = 100_000;

/// A word, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// Quotes and escapes undone; `$name` stays.
    pub text: String,
    /// Bytes in the script.
    pub span: Range<usize>,
}

/// What the script is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Word(Word),
    Open(usize),
    Close(usize),
    /// A line's end or `;`.
    End,
}

/// Words of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub words: Vec<Word>,
    /// Its line, from 1.
    pub line: usize,
}

/// One entry of the menu, or a menu within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MenuEntry {
    pub title: String,
    /// Identity, from `--id` or `$menuentry_id_option`.
    pub id: Option<String>,
    /// Whether it is a `submenu`.
    pub is_submenu: bool,
    /// Its place in each menu on the way to it.
    pub place: Vec<usize>,
    /// Words of its head, from `menuentry` on.
    pub head: Vec<Word>,
    /// Bytes between its braces.
    pub body: Range<usize>,
    /// Line in which its body begins.
    pub line: usize,
}

/// A script, reduced to the statements that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GrubScript {
    /// Entries in the order of the file; a submenu before what is in it.
    pub entries: Vec<MenuEntry>,
    /// Statements that are in no menu entry and no function.
    pub top: Vec<Statement>,
}

/// Parses a GRUB script into statements; `path` is for errors.
///
/// # Errors
/// A quote or a block that is not closed, with its line.
pub(super) fn parse_script(path: &str, text: &str) -> Result<GrubScript, BootError> {
    Parser {
        path,
        scan: Scan::new(path, text),
        script: GrubScript::default(),
        entries: 0,
        open: vec![],
    }
    .run()
}

/// The commands of an entry's body, which begins in `first_line`, in order, with places in `text`.
pub(super) fn statements(
    path: &str,
    text: &str,
    body: Range<usize>,
    first_line: usize,
) -> Result<Vec<Statement>, BootError> {
    let mut scan = Scan::new(path, &text[..body.end]);
    scan.at = body.start;
    scan.line = first_line;
    let mut found = Vec::new();
    loop {
        let (statement, end) = scan.statement()?;
        found.extend(Some(statement).filter(|statement| !statement.words.is_empty()));
        if end.is_none() {
            return Ok(found);
        }
    }
}

/// A parameter as a word of the script.
pub(super) fn quoted(parameter: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || "=,.:/_-+@%~^*!?[]".contains(c) || !c.is_ascii();
    if !parameter.is_empty() && parameter.chars().all(is_plain) {
        return parameter.to_owned();
    }
    format!("'{}'", parameter.replace('\'', "'\\''"))
}

impl Word {
    /// As a word of a command line.
    pub(super) fn token(&self, text: &str) -> Token {
        Token { raw: text[self.span.clone()].to_owned(), text: self.text.clone() }
    }
}

impl Statement {
    pub(super) fn command(&self) -> &str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    /// `NAME` of `set NAME=VALUE` or `NAME=VALUE`, with the value.
    pub(super) fn assignment(&self) -> Option<(&str, &str)> {
        let is_open =
            |word: &&Word| ["do", "elif", "else", "if", "then"].contains(&word.text.as_str());
        let skipped = self.words.iter().take_while(is_open).count();
        let word = match &self.words[skipped..] {
            [set, word, ..] if set.text == "set" => word,
            [word] => word,
            _ => return None,
        };
        let (name, value) = word.text.split_once('=')?;
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then_some((name, value))
    }
}

/// What a brace opened.
struct Open {
    /// The entry whose body it is.
    entry: Option<usize>,
    /// Entries found in it.
    entries: usize,
    is_menu: bool,
    line: usize,
}

struct Parser<'a> {
    path: &'a str,
    scan: Scan<'a>,
    script: GrubScript,
    /// Entries at the top.
    entries: usize,
    open: Vec<Open>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<GrubScript, BootError> {
        loop {
            let (statement, end) = self.scan.statement()?;
            if let Some(Piece::Open(at)) = end {
                self.opened(statement, at + 1)?;
                continue;
            }
            if !statement.words.is_empty() && self.open.is_empty() {
                self.script.top.push(statement);
            }
            match end {
                Some(Piece::Close(at)) => {
                    let Some(open) = self.open.pop() else {
                        return self.scan.wrong("a } without its {");
                    };
                    if let Some(entry) = open.entry {
                        self.script.entries[entry].body.end = at;
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        match self.open.last() {
            Some(open) => Err(BootError::Text {
                path: self.path.into(),
                line: open.line,
                what: "a { that is not closed".into(),
                next: "repair the script; grub-script-check shows the line",
            }),
            None => Ok(self.script),
        }
    }

    fn opened(&mut self, head: Statement, body: usize) -> Result<(), BootError> {
        let Statement { words, line } = head;
        if self.open.len() >= DEPTH_MAX {
            return self.scan.wrong("blocks within blocks, more than 64 deep");
        }
        let command = words.first().map_or("", |word| word.text.as_str());
        let is_submenu = command == "submenu";
        let is_entry = is_submenu || command == "menuentry";
        // What a function or an entry would make when it runs is in no menu yet.
        let in_menu = self.open.iter().all(|open| open.is_menu);
        let mut open = Open { entry: None, entries: 0, is_menu: false, line };
        if is_entry && in_menu {
            if self.script.entries.len() >= ENTRIES_MAX {
                return self.scan.wrong("more than 100000 menu entries");
            }
            let count = self.open.last_mut().map_or(&mut self.entries, |open| &mut open.entries);
            let place = *count;
            *count += 1;
            let menu = self.open.last().and_then(|open| open.entry);
            let above = menu.map_or(&[][..], |menu| &self.script.entries[menu].place);
            let place = [above, &[place]].concat();
            open.entry = Some(self.script.entries.len());
            open.is_menu = is_submenu;
            self.script.entries.push(MenuEntry {
                title: words.get(1).map(|word| word.text.clone()).unwrap_or_default(),
                id: id_of(&words),
                is_submenu,
                place,
                head: words,
                body: body..body,
                line: self.scan.line,
            });
        }
        self.open.push(open);
        Ok(())
    }
}

fn id_of(words: &[Word]) -> Option<String> {
    let at = words.iter().position(|word| {
        ["--id", "$menuentry_id_option", "${menuentry_id_option}"].contains(&word.text.as_str())
    });
    match at {
        Some(at) => words.get(at + 1).map(|word| word.text.clone()),
        None => words.iter().find_map(|word| word.text.strip_prefix("--id=")).map(str::to_owned),
    }
}

/// Splits a script into pieces.
struct Scan<'a> {
    path: &'a str,
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Scan<'a> {
    const fn new(path: &'a str, text: &'a str) -> Self {
        Self { path, text, at: 0, line: 1 }
    }

    fn wrong<T>(&self, what: &str) -> Result<T, BootError> {
        Err(BootError::Text {
            path: self.path.into(),
            line: self.line,
            what: what.into(),
            next: "repair the script; grub-script-check shows the line",
        })
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }

    /// The words up to the next piece that is no word, and that piece.
    fn statement(&mut self) -> Result<(Statement, Option<Piece>), BootError> {
        let mut statement = Statement { words: Vec::new(), line: self.line };
        loop {
            match self.next()? {
                Some(Piece::Word(word)) => {
                    if statement.words.is_empty() {
                        statement.line = self.line;
                    }
                    statement.words.push(word);
                }
                end => return Ok((statement, end)),
            }
        }
    }

    fn next(&mut self) -> Result<Option<Piece>, BootError> {
        loop {
            let at = self.at;
            let Some(c) = self.peek() else { return Ok(None) };
            match c {
                ' ' | '\t' | '\r' => drop(self.bump()),
                '\\' if self.text[at..].starts_with("\\\n") => {
                    self.bump();
                    self.bump();
                }
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                // The end is noted before the line is counted, for the words before it.
                '\n' | ';' | '&' | '|' | '<' | '>' => {
                    self.bump();
                    return Ok(Some(Piece::End));
                }
                '{' => {
                    self.bump();
                    return Ok(Some(Piece::Open(at)));
                }
                '}' => {
                    self.bump();
                    return Ok(Some(Piece::Close(at)));
                }
                _ => return self.word().map(|word| Some(Piece::Word(word))),
            }
        }
    }

    fn word(&mut self) -> Result<Word, BootError> {
        let start = self.at;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '{' | '}' => break,
                '\'' => {
                    self.bump();
                    loop {
                        match self.bump() {
                            Some('\'') => break,
                            Some(c) => text.push(c),
                            None => return self.wrong("a ' that is not closed"),
                        }
                    }
                }
                '"' => {
                    self.bump();
                    self.double_quoted(&mut text)?;
                }
                '\\' => {
                    self.bump();
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(c) => text.push(c),
                    }
                }
                '$' => self.variable(&mut text),
                _ => {
                    text.push(c);
                    self.bump();
                }
            }
        }
        Ok(Word { text, span: start..self.at })
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), BootError> {
        loop {
            match self.peek() {
                Some('"') => {
                    self.bump();
                    return Ok(());
                }
                Some('\\') => {
                    self.bump();
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(c @ ('"' | '\\' | '$')) => text.push(c),
                        Some(c) => text.extend(['\\', c]),
                    }
                }
                Some('$') => self.variable(text),
                Some(c) => {
                    text.push(c);
                    self.bump();
                }
                None => return self.wrong("a \" that is not closed"),
            }
        }
    }

    /// `$name` and `${name}` stay as they are.
    fn variable(&mut self, text: &mut String) {
        let rest = &self.text[self.at..];
        let length = match rest.strip_prefix("${") {
            Some(inner) => {
                let name = inner.find(|c: char| !(c.is_alphanumeric() || c == '_'));
                match name {
                    Some(at) if inner[at..].starts_with('}') => at + 3,
                    _ => 1,
                }
            }
            None => 1,
        };
        text.push_str(&rest[..length]);
        self.at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> GrubScript {
        parse_script("grub.cfg", text).unwrap()
    }

    #[test]
    fn menus_within_menus() {
        let text = "set a=1\nfunction f {\n  if [ x ]; then menuentry no { }; fi\n}\n\
                    menuentry 'Debian' --class os $menuentry_id_option 'simple-1' {\n\tlinux /v ro\n}\n\
                    submenu \"More > \\\"x\\\"\" --id=more {\n  menuentry A { echo ${x}; }\n\
                    menuentry 'B' {\n}\n}\nmenuentry C --id c {}\n";
        let found = script(text);
        let names: Vec<(&str, Option<&str>, &[usize])> = found
            .entries
            .iter()
            .map(|e| (e.title.as_str(), e.id.as_deref(), e.place.as_slice()))
            .collect();
        assert_eq!(
            names,
            [
                ("Debian", Some("simple-1"), &[0][..]),
                ("More > \"x\"", Some("more"), &[1]),
                ("A", None, &[1, 0]),
                ("B", None, &[1, 1]),
                ("C", Some("c"), &[2]),
            ]
        );
        assert_eq!(&text[found.entries[0].body.clone()], "\n\tlinux /v ro\n");
        assert_eq!(found.entries[0].line, 5);
        assert_eq!(found.top[0].assignment(), Some(("a", "1")));
        assert_eq!(found.top.len(), 1);
    }

    #[test]
    fn words_quotes_and_comments() {
        let text =
            "linux /v 'a b'=\"c $d \\\"e\\\"\" f\\ g \\\n  h#i # comment { '\n echo x;echo y";
        let found = statements("f", text, 0..text.len(), 1).unwrap();
        let words: Vec<&str> = found[0].words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(words, ["linux", "/v", "a b=c $d \"e\"", "f g", "h#i"]);
        assert_eq!(found.len(), 3);
        assert_eq!((found[1].line, found[2].command()), (3, "echo"));
        let token = found[0].words[3].token(text);
        assert_eq!((token.raw.as_str(), token.text.as_str()), ("f\\ g", "f g"));
        assert_eq!(quoted("isolcpus=managed_irq,domain,2-3"), "isolcpus=managed_irq,domain,2-3");
        for parameter in ["a b", "x=$y", "it's", "a;b", "{}", "\\", "#x", "a\"b", ""] {
            let line = format!("linux {}", quoted(parameter));
            let read = statements("f", &line, 0..line.len(), 1).unwrap();
            assert_eq!(read[0].words[1].text, parameter, "{line}");
        }
    }

    #[test]
    fn what_is_not_closed_is_an_error_with_its_line() {
        for (text, line, what) in [
            ("a\nmenuentry x {\n", 2, "not closed"),
            ("a\n}\n", 2, "without"),
            ("a\n'b\n", 3, "' that"),
            ("\"b", 1, "\" that"),
        ] {
            let error = parse_script("/boot/grub/grub.cfg", text).unwrap_err().to_string();
            assert!(error.contains(&format!("grub.cfg:{line}")) && error.contains(what), "{error}");
        }
        assert!(parse_script("f", &"{".repeat(1000)).is_err());
        assert_eq!(script(&"menuentry x {\n}\n".repeat(50_000)).entries.len(), 50_000);
        assert!(parse_script("f", &"menuentry x {\n}\n".repeat(100_001)).is_err());
    }
}
