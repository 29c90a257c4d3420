//! Which file a program is: found before anything is set, so that a slip of the keys changes
//! nothing.

use std::{
    env,
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::error::LaunchError;

/// Looks the program up as execvp(3) does.
///
/// # Errors
/// It does not exist, or cannot be executed.
pub(super) fn find(program: &OsStr) -> Result<PathBuf, LaunchError> {
    let name = Path::new(program);
    if program.is_empty() {
        return Err(LaunchError::NotFound("the name of the program is empty".into()));
    }
    if program.as_bytes().contains(&b'/') {
        return match why_not(name) {
            None => Ok(name.to_owned()),
            Some(error) => Err(error),
        };
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = None;
    for folder in env::split_paths(&path) {
        let file = folder.join(name);
        match why_not(&file) {
            None => return Ok(file),
            Some(LaunchError::NotFound(_)) => {}
            Some(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(|| {
        LaunchError::NotFound(format!(
            "{}: no such program in PATH; nothing was changed; name it by its path, e.g. ./{}",
            name.display(),
            name.display()
        ))
    }))
}

fn why_not(file: &Path) -> Option<LaunchError> {
    let shown = file.display();
    let cannot = |why: &str| {
        Some(LaunchError::NotExecutable(format!("{shown}: {why}; nothing was changed")))
    };
    match file.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            cannot("a folder on the way to it may not be searched")
        }
        Err(_) => {
            Some(LaunchError::NotFound(format!("{shown}: no such program; nothing was changed")))
        }
        Ok(found) if found.is_dir() => cannot("a folder, not a program"),
        Ok(_) if access(file, Access::EXEC_OK).is_err() => {
            cannot("not executable; chmod +x makes it so")
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_the_shell_finds_them() {
        assert!(find(OsStr::new("true")).is_ok());
        assert!(find(OsStr::new("/bin/true")).is_ok());
        for missing in ["no-such-program-here", "/no/such", "./no-such", ""] {
            let error = find(OsStr::new(missing)).unwrap_err();
            assert!(matches!(error, LaunchError::NotFound(_)), "{missing}: {error}");
        }
        for wrong in ["/etc/passwd", "/etc"] {
            let error = find(OsStr::new(wrong)).unwrap_err();
            assert!(matches!(error, LaunchError::NotExecutable(_)), "{wrong}: {error}");
        }
    }
}
