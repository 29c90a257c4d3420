//! The thread that writes the record. A disk that stalls delays it and nothing else.

use std::{
    sync::mpsc::{self, Receiver, Sender},
    thread::JoinHandle,
    time::Duration,
};

use rtproof_record::{Finished, Tail, Tick, WriteError, Writer};

/// Each try waits some seconds by itself.
const BUSY_TRIES: u32 = 12;
/// Times that a full disk is tried again, [`FULL_WAIT`] apart: what fills it may go, as a log does.
const FULL_TRIES: u32 = 20;
const FULL_WAIT: Duration = Duration::from_secs(1);

enum Message {
    Tick(Box<Tick>),
    Finish(Box<Tail>),
}

/// The other end of the writing thread.
pub(crate) struct WriterThread {
    to: Sender<Message>,
    failures: Receiver<WriteError>,
    join: JoinHandle<Option<Finished>>,
}

impl WriterThread {
    pub(crate) fn start(writer: Writer) -> std::io::Result<Self> {
        let (to, messages) = mpsc::channel();
        let (failed, failures) = mpsc::channel();
        let join = std::thread::Builder::new()
            .name("rtproof/record".into())
            .spawn(move || write(writer, &messages, &failed))?;
        Ok(Self { to, failures, join })
    }

    /// Hands a tick over. Never waits.
    pub(crate) fn tick(&self, tick: Tick) {
        // A writer that is gone has said why, or says so when it is joined.
        let _ = self.to.send(Message::Tick(Box::new(tick)));
    }

    /// Why writing failed, once.
    pub(crate) fn failure(&self) -> Option<WriteError> {
        self.failures.try_recv().ok()
    }

    /// Ends the record. Without a finished one, the reason, unless [`WriterThread::failure`]
    /// returned it.
    pub(crate) fn finish(self, tail: Tail) -> (Option<Finished>, Option<WriteError>) {
        let _ = self.to.send(Message::Finish(Box::new(tail)));
        let finished = self.join.join().unwrap_or(None);
        (finished, self.failures.try_recv().ok())
    }
}

/// Writes until the end or the first failure; what was committed by then stays readable.
fn write(
    mut writer: Writer,
    messages: &Receiver<Message>,
    failed: &Sender<WriteError>,
) -> Option<Finished> {
    let outcome = loop {
        match messages.recv().ok()? {
            Message::Finish(tail) => break writer.finish(&tail).map(Some),
            Message::Tick(tick) => {
                if let Err(error) = append(&mut writer, &tick) {
                    break Err(error);
                }
            }
        }
    };
    outcome.unwrap_or_else(|error| {
        // The receiver goes only together with the run.
        let _ = failed.send(error);
        None
    })
}

/// Appends; waits a minute at most for another process that reads the record, and some seconds for
/// room on the disk. What comes meanwhile is kept in memory.
fn append(writer: &mut Writer, tick: &Tick) -> Result<(), WriteError> {
    let (mut busy, mut full) = (BUSY_TRIES, FULL_TRIES);
    loop {
        match writer.append(tick) {
            Err(WriteError::Busy { .. }) if busy > 0 => busy -= 1,
            Err(WriteError::Full { .. }) if full > 0 => {
                full -= 1;
                std::thread::sleep(FULL_WAIT);
            }
            outcome => return outcome,
        }
    }
}
