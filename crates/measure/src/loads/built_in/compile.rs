//! Compiles, as building a kernel does: on each load CPU one compiler after the other reads many
//! small headers, after looking for each in folders that do not have it, and writes an object.
//! Brings out fork, exec and exit of large processes with their page tables and page faults, the
//! page cache, path lookup, and memory traffic.
//!
//! Where there is no `cc` that belongs to root (within a user namespace nothing is seen to) the
//! worker looks for, reads and writes the same files, and its own no-op is the compiler's process.
//!
//! Bounded: one compiler at a time on each load CPU; its files are in a file system in memory that
//! only the worker and its processes see.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rtproof_host::program;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use super::super::load::{Context, Load};
use crate::{apart, failure::Failure};

/// Folders of headers, in the order in which they are searched.
const FOLDERS: usize = 8;
const HEADERS: usize = 16;
/// Functions in each header.
const FUNCTIONS: usize = 8;
/// Most that the file system in memory holds.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// One compiler on each load CPU.
pub(super) const LOAD: Load = Load {
    name: "compile",
    about: "Compiles a file with 128 small headers over and over, one compiler at a time on each \
            load CPU (cc, else its own no-op). Its file system is in memory, and only it sees it",
    unit: "compilations",
    parameter: None,
    prepare: Some(|before| Ok(apart::folder(before.dir, MEMORY_BYTES_MAX)?.0)),
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
    let compiler = program::find("cc").ok();
    let what = match &compiler {
        Some(path) => format!("{} -O1", path.display()),
        None => "no cc that belongs to root: reading and a no-op process".to_owned(),
    };
    let dir = std::path::absolute(ctx.before.dir)?;
    (ctx.detail)(&format!(
        "{what}, {} headers, one at a time on CPU {}, in a tmpfs over {}",
        FOLDERS * HEADERS,
        ctx.before.cpus,
        dir.display()
    ));
    make_sources(&dir)?;
    ctx.on_each_cpu(|cpu| {
        let object = dir.join(format!("unit-{cpu}.o"));
        while !ctx.stopped() {
            let mut command = match &compiler {
                Some(compiler) => cc(ctx, compiler, &dir, &object),
                None => by_itself(ctx, &dir, &object)?,
            };
            let output = command.output().map_err(|error| {
                format!("cannot start a process: {error}; raise `ulimit -u` or pids.max")
            })?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stderr);
                let first: String = text.chars().take(300).collect();
                return Err(Failure(format!("the compiler ended with {}: {first}", output.status)));
            }
            ctx.counter.add(1);
        }
        Ok(())
    })
}

fn cc(ctx: &Context, compiler: &Path, dir: &Path, object: &Path) -> Command {
    let mut command = (ctx.program)(compiler);
    for folder in 0..FOLDERS {
        command.arg("-I").arg(dir.join(format!("include{folder}")));
    }
    command.args(["-O1", "-w", "-c"]).arg(dir.join("unit.c")).arg("-o").arg(object);
    // What it makes between its parts goes where all goes.
    command.env("TMPDIR", dir).stdin(Stdio::null());
    command
}

/// What a compiler does with files; the process that it would be.
fn by_itself(ctx: &Context, dir: &Path, object: &Path) -> Result<Command, Failure> {
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error: rustix::io::Errno| Failure(format!("{path}: {error}"))
    };
    let mut buffer = [0; 4096];
    for (folder, header) in headers() {
        // Looked for in the folders before its own, as by -I.
        for before in 0..folder {
            let _ = rustix::fs::statat(CWD, place(dir, before, folder, header), AtFlags::empty());
        }
        let path = place(dir, folder, folder, header);
        let file = rustix::fs::openat(CWD, &path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let file = file.map_err(at(&path))?;
        while rustix::io::read(&file, &mut buffer).map_err(at(&path))? > 0 {}
    }
    write(object, &buffer)?;
    Ok((ctx.no_op)())
}

fn headers() -> impl Iterator<Item = (usize, usize)> {
    (0..FOLDERS).flat_map(|folder| (0..HEADERS).map(move |header| (folder, header)))
}

/// Where the header of a folder would be in another.
fn place(dir: &Path, within: usize, folder: usize, header: usize) -> PathBuf {
    dir.join(format!("include{within}")).join(format!("part{folder}_{header}.h"))
}

fn make_sources(dir: &Path) -> Result<(), Failure> {
    for folder in 0..FOLDERS {
        let path = dir.join(format!("include{folder}"));
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut unit = String::new();
    for (folder, header) in headers() {
        let part = format!("{folder}_{header}");
        unit += &format!("#include \"part{part}.h\"\n");
        let function = |n: usize| {
            format!(
                "static int work{part}_{n}(int *a, int n)\n{{\n\tint sum = {n};\n\tfor (int i = 0; \
                 i < n; i++)\n\t\tsum += a[i] * {n} ^ (sum >> 3);\n\treturn sum;\n}}\n"
            )
        };
        let text: String = (0..FUNCTIONS).map(function).collect();
        write(&place(dir, folder, folder, header), text.as_bytes())?;
    }
    unit += "int all(int *a, int n)\n{\n\tint sum = 0;\n";
    for (folder, header) in headers() {
        unit += &format!("\tsum += work{folder}_{header}_0(a, n);\n");
    }
    unit += "\treturn sum;\n}\n";
    write(&dir.join("unit.c"), unit.as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "this load's own files")]
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_in_their_own_folder_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        make_sources(dir.path()).expect("sources");
        assert_eq!(headers().count(), FOLDERS * HEADERS);
        for (folder, header) in headers() {
            for within in 0..FOLDERS {
                let path = place(dir.path(), within, folder, header);
                assert_eq!(path.is_file(), within == folder, "{}", path.display());
            }
        }
        assert!(make_sources(dir.path()).is_err(), "they are there");
    }
}
