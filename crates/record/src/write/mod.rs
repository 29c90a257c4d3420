//! The writer: one transaction a second, so that a kill or a power cut loses at most one second.
//!
//! The journal is SQLite's rollback journal in DELETE mode: between two commits the record is one
//! complete file, which may be copied or read at any time. A write-ahead log would save one fsync
//! but would leave the last seconds in a second file that a copy forgets. `synchronous = EXTRA` is
//! FULL plus an fsync of the folder after the journal is gone; without it a power cut could bring
//! the journal back and take the last committed second away.
//!
//! A failed append leaves file and writer as they were: the same tick may be given again.

mod blocks;
mod effects;
mod measure;
mod plan;
mod rows;
mod spikes;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params};

use crate::{
    db::{close, open, transact},
    error::{Contradiction, WriteError},
    file,
    finished::Finished,
    imported::Imported,
    rows::insert,
    schema::{APPLICATION_ID, TABLES, VERSION},
    tick::{Head, Tail, Tick},
};

/// Writes one record. Use it from one thread on a housekeeping CPU.
#[derive(Debug)]
pub struct Writer {
    conn: Connection,
    path: PathBuf,
    threads: BTreeMap<u32, plan::ThreadState>,
    spikes: spikes::State,
    effects: effects::State,
    beside: measure::State,
    host: blocks::HostState,
}

impl Writer {
    /// Makes the record with all that is known before the first wake-up; it is on disk when this
    /// returns.
    ///
    /// # Errors
    /// If a file of that name exists, the folder cannot be written to, or the disk is full. A file
    /// that was begun is removed again.
    pub fn create(path: &Path, head: &Head) -> Result<Self, WriteError> {
        plan::check_head(path, head)?;
        match file::create_new(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(WriteError::Exists { path: path.into() });
            }
            Err(source) => {
                return Err(WriteError::Create { path: path.into(), source });
            }
        }
        Self::begin(path, head).inspect_err(|_| {
            // Nothing in it is worth keeping, and the name is wanted for the next try.
            let _ = fs::remove_file(path);
        })
    }

    fn begin(path: &Path, head: &Head) -> Result<Self, WriteError> {
        const DOING: &str = "making the record";
        let absolute = file::absolute(path).map_err(|error| WriteError::io(path, DOING, error))?;
        let mut conn = open(&absolute).map_err(|error| WriteError::sqlite(path, DOING, error))?;
        transact(&mut conn, |tx| {
            tx.pragma_update(None, "application_id", APPLICATION_ID)?;
            tx.pragma_update(None, "user_version", VERSION)?;
            for table in TABLES {
                tx.execute_batch(&table.create_sql(VERSION))?;
            }
            rows::head(tx, head)
        })
        .map_err(|error| WriteError::sqlite(path, DOING, error))?;
        file::sync_folder(&absolute).map_err(|error| WriteError::io(path, DOING, error))?;
        Ok(Self {
            conn,
            path: absolute,
            threads: BTreeMap::new(),
            spikes: spikes::State::default(),
            effects: effects::State::default(),
            beside: measure::State::default(),
            host: blocks::HostState::default(),
        })
    }

    /// Where the record is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one second; it is on disk when this returns. One transaction: all of it or nothing.
    ///
    /// # Errors
    /// If the disk is full or fails, a reader holds the file locked, or the tick contradicts itself
    /// or the seconds before it. The record then stands as before the call.
    pub fn append(&mut self, tick: &Tick) -> Result<(), WriteError> {
        let planned = plan::plan(&self.path, &self.threads, tick)?;
        let known =
            |number| self.threads.contains_key(&number) || planned.threads.contains_key(&number);
        let path = &self.path;
        let inconsistent = |subject: &'static str| {
            move |what: Contradiction| WriteError::inconsistent(path, subject, what)
        };
        let spikes = self.spikes.after(&tick.spikes, known).map_err(inconsistent("spikes"))?;
        let effects = self.effects.after(&tick.effects).map_err(inconsistent("effects"))?;
        let (before, has_host) = (self.beside, tick.host.is_some());
        let beside = before
            .after(&tick.beside, |number| known(*number), has_host)
            .map_err(inconsistent("watched"))?;
        let (host, host_block) = self.host.after(tick.host.as_ref());
        transact(&mut self.conn, |tx| {
            tick.started.iter().try_for_each(|row| insert(tx, &[], row))?;
            for (thread, step) in tick.threads.iter().zip(&planned.steps) {
                rows::second(tx, thread, step)?;
            }
            rows::histograms(tx, &tick.threads)?;
            rows::thread_ends(tx, &tick.ended)?;
            rows::rest(tx, tick)?;
            blocks::host(tx, &host_block)?;
            spikes::write(tx, &tick.spikes)?;
            effects::write(tx, &tick.effects)?;
            before.write(tx, &tick.beside)
        })
        .map_err(|error| WriteError::sqlite(&self.path, "writing a second", error))?;
        self.threads.extend(planned.threads);
        self.spikes = spikes;
        self.effects = effects;
        self.beside = beside;
        self.host = host;
        Ok(())
    }

    /// Writes what another tool measured: all of it, once, into a record without threads.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn import(&mut self, imported: &Imported) -> Result<(), WriteError> {
        let inconsistent = |what| WriteError::inconsistent(&self.path, "import", what);
        imported.check().map_err(inconsistent)?;
        if !self.threads.is_empty() {
            return Err(inconsistent("the record has threads of its own".into()));
        }
        transact(&mut self.conn, |tx| {
            insert(tx, params![1], imported)?;
            for (number, thread) in (0_i64..).zip(&imported.threads) {
                insert(tx, params![number], thread)?;
                thread.bins.iter().try_for_each(|bin| insert(tx, params![number], bin))?;
            }
            Ok(())
        })
        .map_err(|error| WriteError::sqlite(&self.path, "writing the import", error))
    }

    /// Writes the end of the run and closes the file, ready to be read back, judged and sealed.
    ///
    /// # Errors
    /// As [`Writer::append`]. The record stays a torn one then.
    pub fn finish(mut self, tail: &Tail) -> Result<Finished, WriteError> {
        const DOING: &str = "writing the end of the run";
        plan::check_ends(&self.path, &self.threads, &tail.threads)?;
        transact(&mut self.conn, |tx| rows::tail(tx, tail))
            .map_err(|error| WriteError::sqlite(&self.path, DOING, error))?;
        close(self.conn, &self.path, DOING)?;
        Ok(Finished::new(self.path))
    }
}
