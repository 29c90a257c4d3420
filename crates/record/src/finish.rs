//! A record whose run has ended: it is judged, then sealed.
//!
//! Sealing writes a compact copy beside the record (`VACUUM INTO`), puts the digest into it and
//! renames it over the record. A kill at any step leaves either the unsealed record or the sealed
//! one. Only where the disk has no room for the copy is the record sealed in place.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};

use crate::run::Judgement;
use crate::seal::SealMark;
use crate::{ReadError, SealState, WriteError, read, rows, seal};

/// A record that is complete but not sealed.
#[derive(Debug)]
pub struct Finished {
    path: PathBuf,
}

impl Finished {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Takes up a record that was never sealed, e.g. of a killed run, to judge and seal it. Rolls a
    /// cut-off write back.
    ///
    /// # Errors
    /// If it cannot be read, or is sealed already.
    pub fn open(path: &Path) -> Result<Self, WriteError> {
        let what = match read(path)?.state {
            SealState::Torn => {
                let absolute = crate::absolute(path)
                    .map_err(|source| ReadError::Open { path: path.into(), source })?;
                return Ok(Self::new(absolute));
            }
            SealState::Sealed { .. } => "sealed".into(),
            SealState::Altered { why } => format!("altered after it was sealed: {why}"),
        };
        let next = "a sealed record is never written to; work on a new run";
        Err(WriteError::State { path: path.into(), what, next })
    }

    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores what was judged; an earlier judgement is replaced.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store_judgement(&self, judgement: &Judgement) -> Result<(), WriteError> {
        self.change("storing the verdict", |conn| {
            crate::transact(conn, |tx| {
                tx.execute(
                    "INSERT OR REPLACE INTO finding VALUES (1, ?1)",
                    [rows::put::json(&judgement.findings)?],
                )?;
                tx.execute(
                    "INSERT OR REPLACE INTO verdict VALUES (1, ?1, ?2)",
                    params![rows::put::json(&judgement.verdict)?, judgement.summary],
                )
                .map(drop)
            })
        })
    }

    /// Seals the record; nothing can be added afterwards. Returns the digest, 64 hex digits.
    ///
    /// # Errors
    /// If the file or its folder cannot be written. The record stays unsealed then.
    pub fn seal(self) -> Result<String, WriteError> {
        const DOING: &str = "sealing the record";
        let mut run_id = String::new();
        self.change(DOING, |conn| {
            crate::transact(conn, |tx| {
                run_id = tx.query_row("SELECT run_id FROM run", [], |row| row.get(0))?;
                tx.execute("INSERT OR REPLACE INTO seal VALUES (1, ?1)", [seal::open_mark(&run_id)])
                    .map(drop)
            })
        })?;
        let copy = temporary_path(&self.path);
        let sealed = self.seal_file(&copy, &run_id, DOING);
        if sealed.is_err() {
            let _ = fs::remove_file(&copy);
        }
        sealed
    }

    fn seal_file(
        &self,
        copy: &Path,
        run_id: &str,
        doing: &'static str,
    ) -> Result<String, WriteError> {
        let io = |error| WriteError::io(&self.path, doing, error);
        remove_if_there(copy).map_err(io)?;
        if !self.compact(copy, doing)? {
            remove_if_there(copy).map_err(io)?;
            return self.close_mark(&self.path, run_id, doing);
        }
        let digest = self.close_mark(copy, run_id, doing)?;
        fs::rename(copy, &self.path).map_err(io)?;
        crate::sync_folder(&self.path).map_err(io)?;
        Ok(digest)
    }

    fn change(
        &self,
        doing: &'static str,
        body: impl FnOnce(&mut Connection) -> rusqlite::Result<()>,
    ) -> Result<(), WriteError> {
        let error = |error| WriteError::sqlite(&self.path, doing, error);
        let mut conn = crate::open_database(&self.path).map_err(error)?;
        body(&mut conn).map_err(error)?;
        crate::close(conn, &self.path, doing)
    }

    /// Writes the compact copy; `false` where there is no room for it.
    fn compact(&self, copy: &Path, doing: &'static str) -> Result<bool, WriteError> {
        let Some(name) = copy.to_str() else {
            return Ok(false); // SQL text is UTF-8; sealing in place needs no second name
        };
        // An empty file of that name is filled: it has the mode of a record then.
        if crate::create_new(copy).is_err() {
            return Ok(false);
        }
        let vacuum = |conn: &mut Connection| conn.execute("VACUUM INTO ?1", [name]).map(drop);
        match self.change(doing, vacuum) {
            Ok(()) => Ok(true),
            Err(WriteError::Full { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Fills the digest in and makes the file durable.
    fn close_mark(
        &self,
        record: &Path,
        run_id: &str,
        doing: &'static str,
    ) -> Result<String, WriteError> {
        let io = |error| WriteError::io(&self.path, doing, error);
        let marks = seal::find(record).map_err(io)?;
        let own: Vec<&SealMark> = marks.iter().filter(|mark| mark.run_id == run_id).collect();
        let [mark] = own[..] else {
            let what = format!("its mark stands in the file {} times, expected once", own.len());
            return Err(WriteError::inconsistent(&self.path, "seal", what));
        };
        let digest = seal::digest(record, mark.digits_at).map_err(io)?;
        let open = crate::open_to_write(record).map_err(io)?;
        open.write_all_at(digest.as_bytes(), mark.digits_at).map_err(io)?;
        open.sync_all().map_err(io)?;
        Ok(digest)
    }
}

/// Name of the compact copy while it is made.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push("-sealing");
    name.into()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
