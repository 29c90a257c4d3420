//! GRUB's environment block: what it boots by default, and what it boots once.

use crate::{
    boot::{error::BootError, view::View},
    change::{Bytes, Change},
    grubenv::{self, HEAD, SIZE},
};

/// A block as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment {
    /// Path as it was looked for.
    pub path: String,
    block: Bytes,
    /// Why GRUB cannot write a choice into it.
    pub unusable: Option<String>,
}

/// Reads the block at a path; without one, one that is unusable.
pub(crate) fn read(view: &View<'_>, path: &str) -> Result<Environment, BootError> {
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
        let value = grubenv::get(&self.block, name).ok()??;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// Whether a variable has a value now.
    pub(crate) fn now(&self, view: &View<'_>, name: &str, value: &str) -> Result<bool, BootError> {
        Ok(read(view, &self.path)?.get(name).as_deref() == Some(value))
    }

    /// The change that sets a variable.
    pub(crate) fn set(&self, key: &str, value: &str) -> Change {
        Change::GrubEnv { path: self.path.clone(), key: key.into(), value: value.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const SIGNATURE: &str = "# GRUB Environment Block\n";

    fn env(text: &str) -> Environment {
        let tree = Tree::new(&[("boot/grub/grubenv", text)]);
        read(&View::new(&tree.root()), "/boot/grub/grubenv").unwrap()
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
    fn others_say_what_is_wrong() {
        let short = env(&format!("{SIGNATURE}a=1\n"));
        assert!(short.unusable.as_ref().unwrap().contains("29 bytes"));
        assert_eq!(short.get("a").as_deref(), Some("1"));
        assert!(env("x").unusable.unwrap().contains("no environment block"));
        let none = read(&View::new(&Tree::new(&[]).root()), "/boot/grub/grubenv").unwrap();
        assert!(none.unusable.unwrap().contains("grub-editenv /boot/grub/grubenv create"));
    }
}
