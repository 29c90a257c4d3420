//! The licences of every crate that is in the binary, with their texts: most of them ask that the
//! text goes where the binary goes.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::metadata::{Graph, Package};
use crate::tree::root;

/// How the names of licence files begin.
const PREFIXES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT"];

/// Prints one line for each crate, then each text once.
pub(crate) fn run() -> Result<ExitCode> {
    let graph = Graph::read(&root())?;
    let mut packages = graph.shipped_with("rtproof");
    packages.retain(|package| package.source.is_some());
    packages.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let mut texts: Vec<String> = Vec::new();
    let mut out = std::io::stdout().lock();
    writeln!(out, "# Third-party licences\n")?;
    writeln!(
        out,
        "The binary is made from these crates. SQLite, inside libsqlite3-sys, is in the"
    )?;
    writeln!(out, "public domain. The texts follow, each once.\n")?;
    for package in packages {
        let Package { name, version, license, .. } = package;
        write!(out, "- {name} {version}: {}", license.as_deref().unwrap_or("none stated"))?;
        for text in licence_texts(package)? {
            let known = texts.iter().position(|other| *other == text);
            let number = known.unwrap_or_else(|| {
                texts.push(text);
                texts.len() - 1
            });
            write!(out, " [{}](#text-{0})", number + 1)?;
        }
        writeln!(out)?;
    }
    for (index, text) in texts.iter().enumerate() {
        writeln!(out, "\n## Text {}\n\n```text\n{}\n```", index + 1, text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The licence texts that lie in a crate's folder.
fn licence_texts(package: &Package) -> Result<Vec<String>> {
    let folder = Path::new(&package.manifest_path).parent().context("a manifest has a folder")?;
    let mut files = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && PREFIXES.iter().any(|prefix| file.starts_with(prefix)) {
            files.push(path);
        }
    }
    files.sort();
    let mut texts = Vec::new();
    for path in files {
        let text = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
        let text = String::from_utf8_lossy(&text).replace('\r', "").replace("```", "'''");
        texts.push(text.trim().to_owned());
    }
    Ok(texts)
}
