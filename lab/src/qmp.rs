//! The few words of QEMU's machine protocol that saving and resuming a state need
//! (docs/interop/qmp-spec.rst of QEMU).

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// A connection to the monitor of a running QEMU.
#[derive(Debug)]
pub struct Monitor {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Monitor {
    /// Connects to the monitor of this QEMU; waits until it listens.
    ///
    /// # Errors
    /// It has ended, does not listen within the time, or does not speak the protocol.
    pub fn connect(socket: &Path, qemu: &mut Child, limit: Duration) -> Result<Self> {
        let until = Instant::now() + limit;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(_) if qemu.try_wait()?.is_some() => bail!("QEMU has ended"),
                Err(error) if Instant::now() > until => {
                    return Err(error).with_context(|| format!("{}: connect", socket.display()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        // A monitor that hangs must not hang the run.
        stream.set_read_timeout(Some(limit))?;
        let mut monitor = Self { reader: BufReader::new(stream.try_clone()?), writer: stream };
        monitor.line().context("greeting of the monitor")?;
        monitor.call("qmp_capabilities", &json!({}))?;
        Ok(monitor)
    }

    /// One command; its answer.
    ///
    /// # Errors
    /// The monitor refuses it or is gone.
    pub fn call(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let text = json!({ "execute": command, "arguments": arguments }).to_string();
        writeln!(self.writer, "{text}").with_context(|| format!("monitor: {command}"))?;
        loop {
            let mut answer = self.line().with_context(|| format!("monitor: {command}"))?;
            if let Some(error) = answer.get("error") {
                bail!("monitor: {command}: {error}");
            }
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    /// Waits until `command` answers with a `status` that is none of `while_in`; that status.
    ///
    /// # Errors
    /// It takes longer than the limit.
    pub fn wait(&mut self, command: &str, while_in: &[&str], limit: Duration) -> Result<String> {
        let until = Instant::now() + limit;
        loop {
            let answer = self.call(command, &json!({}))?;
            let status = answer["status"].as_str().unwrap_or("none").to_owned();
            if !while_in.contains(&status.as_str()) {
                return Ok(status);
            }
            if Instant::now() > until {
                bail!("monitor: {command} still says {status} after {limit:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            bail!("QEMU has ended");
        }
        serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))
    }
}
