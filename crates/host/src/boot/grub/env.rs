//! GRUB's environment block: a file of 1024 bytes that GRUB can write at boot.

use crate::boot::{error::BootError, view::View};

/// Its first line.
const SIGNATURE: &str = "# GRUB Environment Block\n";
/// Its length: GRUB writes into the blocks that are there and cannot make a file longer.
pub(crate) const BYTES: usize = 1024;

/// Variables of an environment block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// The file.
    pub path: String,
    /// Names and values in the order of the file.
    variables: Vec<(String, String)>,
    /// Why GRUB could not keep a choice in it.
    pub unusable: Option<String>,
}

/// Reads it; one that is not there or is no block has no variables and says why.
pub(crate) fn read(view: &View<'_>, path: &str) -> Result<Environment, BootError> {
    let unusable = |why: String| Environment {
        path: path.into(),
        variables: vec![],
        unusable: Some(format!("{path} {why}; make one with: grub-editenv {path} create")),
    };
    let Some(bytes) = view.bytes(path)? else {
        return Ok(unusable("is not there".into()));
    };
    if !bytes.starts_with(SIGNATURE.as_bytes()) {
        return Ok(unusable("is no environment block of GRUB".into()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut environment = Environment { path: path.into(), ..Environment::default() };
    let mut lines = text.split('\n').skip(1);
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let mut value = value.to_owned();
        // A backslash keeps the character after it, a line's end among them.
        while ends_open(&value) {
            let Some(more) = lines.next() else { break };
            value = format!("{value}\n{more}");
        }
        environment.variables.push((name.to_owned(), unescaped(&value)));
    }
    if bytes.len() != BYTES {
        let why = format!("has {} bytes, and GRUB keeps {BYTES}", bytes.len());
        environment.unusable = unusable(why).unusable;
    }
    Ok(environment)
}

/// Whether the last character is a backslash that escapes what comes after.
fn ends_open(value: &str) -> bool {
    value.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next()),
            _ => text.push(c),
        }
    }
    text
}

impl Environment {
    /// A variable; the last one of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn env(text: &str) -> Environment {
        let tree = Tree::new(&[("boot/grub/grubenv", text)]);
        read(&View::new(&tree.root()), "/boot/grub/grubenv").unwrap()
    }

    #[test]
    fn a_block_of_1024_bytes() {
        let mut text =
            format!("{SIGNATURE}saved_entry=a b\nkernelopts=x\\\\y\\\nz\nsaved_entry=c\n");
        text += &"#".repeat(BYTES - text.len());
        let env = env(&text);
        assert_eq!(env.get("saved_entry"), Some("c"));
        assert_eq!(env.get("kernelopts"), Some("x\\y\nz"));
        assert_eq!((env.get("none"), &env.unusable), (None, &None));
    }

    #[test]
    fn others_say_what_is_wrong() {
        let short = env(&format!("{SIGNATURE}a=1\n"));
        assert!(short.unusable.as_ref().unwrap().contains("29 bytes"));
        assert_eq!(short.get("a"), Some("1"));
        assert!(env("x").unusable.unwrap().contains("no environment block"));
        let none = read(&View::new(&Tree::new(&[]).root()), "/boot/grub/grubenv").unwrap();
        assert!(none.unusable.unwrap().contains("grub-editenv /boot/grub/grubenv create"));
    }
}
